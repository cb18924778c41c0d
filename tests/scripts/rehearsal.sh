#!/usr/bin/env bash
# rehearsal.sh BUILD: runs scripts/gpu_check as a rehearsal on the CPU, with toy models and all steps of rows on a GPU.
# Every row must be good, and a second call must find them all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
check() {
  python3 scripts/gpu_check/main.py --bin="$(dirname "$1")" --device=cpu --json="$folder/result.json" "${@:2}"
}

check "$1" --slice=table
check "$1" --slice=losses --models=trivial,lenet
state=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["rows"])' "$folder/result.json")
for row in table/trivial/fp32/b4/bn/graph table/trivial/fp32/b8/bn/graph table/lenet/fp32/b4/bn/graph \
  losses/fp32/1; do
  [[ $state == *"'$row': {'slice': '${row%%/*}', 'status': 'ok'"* ]] || { echo "no good row $row in: $state"; exit 1; }
done
check "$1" --slice=table 2>"$folder/said"
[[ ! -s $folder/said ]] || { echo "the second call ran rows: $(<"$folder/said")"; exit 1; }
