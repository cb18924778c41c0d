#!/usr/bin/env bash
# Runs each fuzz target with a bounded number of inputs, always the same ones. Skips if no target can be built.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
passed=0

for source in "$root"/tests/fuzz/*.cpp; do
  target=$(basename "$source" .cpp)
  runs=4000
  [[ $target != flags ]] || runs=400  # slow, because each input makes the table of all flags
  log=$root/build/fuzz_$target.log
  rm -rf "$root/build/fuzz/$target/found"  # findings of earlier runs would change the inputs
  status=0
  "$root/scripts/fuzz.sh" "$target" -seed=1 -runs=$runs >"$log" 2>&1 || status=$?
  if ((status == 77)); then
    echo "$target: $(tail -n 1 "$log")"
    continue
  fi
  if ((status != 0)); then
    tail -n 30 "$log"
    exit "$status"
  fi
  # There may be more: libFuzzer runs an input again that left memory allocated.
  ran=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  ((${ran:-0} >= runs)) || {
    echo "$target: fewer inputs ran than were asked for"
    exit 1
  }
  passed=$((passed + 1))
done
((passed > 0)) || exit 77
echo "fuzz targets: $passed passed"
