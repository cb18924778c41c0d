#!/usr/bin/env bash
# A bounded number of inputs for each fuzz target, always the same ones.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

for source in "$root"/tests/fuzz/*.cpp; do
  target=$(basename "$source" .cpp)
  rm -rf "$root/build/fuzz/$target/found"  # what earlier runs found would change the inputs
  status=0
  "$root/scripts/fuzz.sh" "$target" -seed=1 -runs=20000 >"$root/build/fuzz_$target.log" 2>&1 || status=$?
  if ((status != 0)); then
    tail -n 30 "$root/build/fuzz_$target.log"
    exit "$status"
  fi
  grep -q 'stat::number_of_executed_units: 20000' "$root/build/fuzz_$target.log" || {
    echo "$target: fewer inputs ran than were asked for"
    exit 1
  }
done
echo "fuzz targets: passed"
