#!/usr/bin/env bash
# Runs a command with the instruction sets up to ISA, as CNN_MAX_CPU_ISA names them.
#
#   tests/scripts/at_most.sh ISA TESTS FLAG...  TESTS: a GoogleTest program. Exit code 77 if the processor lacks ISA, or
#                                               has nothing beyond it: then the tests without a limit are the same
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

isa=$1
shift
flags=" $(sed -n 's/^flags[^:]*: //p;T;q' /proc/cpuinfo) "
sets=(avx2 avx512 avx512_bf16 avx512_fp16 amx_bf16)
has() { [[ $flags == *" ${1/%avx512/avx512vl} "* ]]; }  # /proc/cpuinfo has other names

has "$isa" || skip "this processor has no $isa"
for i in "${!sets[@]}"; do
  if [[ ${sets[i]} == "$isa" ]]; then
    next=${sets[i + 1]}
  fi
done
has "$next" || skip "this processor has no more than $isa, so it is tested without a limit"
# GoogleTest succeeds if its filter matches no test, so this checks first.
[[ $("$@" --gtest_list_tests) == *$'\n  '* ]] || die "no test matches: $*"
exec env -u ONEDNN_MAX_CPU_ISA CNN_MAX_CPU_ISA="$isa" "$@"
