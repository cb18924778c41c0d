#!/usr/bin/env bash
# Checks what shard.sh prints of cases that pass, fail, crash, hang or are skipped, and its exit codes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

fake=$(mktemp -d)
trap 'rm -rf "$fake"' EXIT
fail() {
  echo "shard_test: $*"
  exit 1
}

# runs CODE LINES: shard.sh of a program that prints the lines and ends with that code; sets said and code.
runs() {
  printf '#!/bin/sh\ncat <<END\n%s\nEND\n%s\n' "$2" "$1" >"$fake/program"
  chmod +x "$fake/program"
  code=0
  said=$(bash shard.sh 1 "$fake/program") || code=$?
}

begin=$'[==========] Running 2 tests from 1 test suite.\n[----------] 2 tests from A'
passed=$'[ RUN      ] A.passes\nnoise\n[       OK ] A.passes (0 ms)'
failed=$'[ RUN      ] A.fails\na_test.cpp:7: Failure\n[  FAILED  ] A.fails (0 ms)'
skipped=$'[ RUN      ] A.skips\nno GPU\n[  SKIPPED ] A.skips (0 ms)'

runs 'exit 0' "$begin"$'\n'"$passed"$'\n'"$skipped"$'\n[  PASSED  ] 1 test.\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.skips'
((code == 0)) || fail "exit code $code where a case passes and one is skipped: $said"
[[ $said != *noise* && $said != *"no GPU"* && $said != *SKIPPED* && $said == *"[  PASSED  ] 1 test."* ]] || fail "passed: $said"

runs 'exit 1' "$begin"$'\n'"$passed"$'\n'"$failed"$'\n[  FAILED  ] A.fails\n'
((code == 1)) || fail "exit code $code where a case fails: $said"
[[ $said == *"[ RUN      ] A.fails"*"a_test.cpp:7: Failure"*"[  FAILED  ] A.fails (0 ms)"* && $said != *noise* ]] || fail "failed: $said"

runs 'kill -SEGV $$' "$begin"$'\n'"$passed"$'\n[ RUN      ] A.crashes\nlast words'
((code == 139)) || fail "exit code $code where a case crashes: $said"
[[ $said == *"A.crashes"*"last words"*"the program ended in this case"* ]] || fail "crashed: $said"

runs 'exec sleep 20' "$begin"$'\n[ RUN      ] A.hangs'
((code == 124)) || fail "exit code $code where a case hangs: $said"
[[ $said == *"A.hangs"*"the program ended in this case"*"ended after 1 s"* ]] || fail "hung: $said"

runs 'exit 0' "$begin"$'\n'"$skipped"
((code == 77)) || fail "exit code $code where all cases are skipped: $said"
runs 'exit 0' "$begin"
((code == 0)) || fail "exit code $code where the shard has no case: $said"
