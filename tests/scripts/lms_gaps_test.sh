#!/usr/bin/env bash
# Checks the table of gaps on a program whose plans are known: its rows, and that a slower plan than in an earlier table
# is found.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

fail() {
  echo "$1"
  exit 1
}

# The step needs 100 MiB and takes 1 s without a limit; a plan takes 1 s and what FACTOR makes of the missing bytes.
cat >"$folder/program" <<'END'
#!/usr/bin/env python3
import json, os, sys
flags = dict(word[2:].split("=", 1) for word in sys.argv[1:] if "=" in word)
limit, need, floor = int(flags["lms_limit"]), 100, 25
if limit < floor:
    sys.exit(3)
plan = {"necessary": limit < need, "need_bytes": need << 20, "floor_bytes": floor << 20, "unlimited_step_seconds": 1.0,
        "predicted_step_seconds": 1 + float(os.environ["FACTOR"]) * max(0, need - limit), "lower_bound_seconds": 1.0}
with open(flags["result_json"], "w") as file:
    json.dump({"plan": {"arena_bytes": min(need, limit) << 20, "lms": plan}}, file)
END
chmod +x "$folder/program"

table() {
  python3 scripts/plots/lms_gaps.py "$folder/program" --networks=resnet50:64,lenet:8:mnist --machines=p100-pcie3 --points=3 "$@"
}

FACTOR=0.01 table >"$folder/before.tsv"
grep -q $'^resnet50:64\tp100-pcie3\t25\t1.000\t57.1\t75.0\t1750.000\t1000.000\t' "$folder/before.tsv" || fail "no row of the smallest budget"
[[ $(grep -c $'^lenet:8\t' "$folder/before.tsv") == 3 ]] || fail "not three budgets of a network"
FACTOR=0.009 table --against="$folder/before.tsv" >"$folder/faster.tsv" || fail "faster plans are called slower"
if FACTOR=0.02 table --against="$folder/before.tsv" >"$folder/slower.tsv"; then
  fail "slower plans are not found"
fi
grep -q '^# slower: ' "$folder/slower.tsv" || fail "the slower plans are not named"
