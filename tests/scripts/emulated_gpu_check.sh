#!/usr/bin/env bash
# emulated_gpu_check.sh FOLDER_OF_THE_PROGRAM quick|all TESTS...: runs scripts/gpu_check.sh of a bundle with a program
# and tests on the emulated GPU. With toy models it says nothing about speed, but it checks that every row of every
# slice runs and is kept. It leaves out compute-sanitizer, which needs a real card.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
emulated=$1 extent=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

scripts/bundle.sh --scripts="$folder"
mkdir "$folder/bin"
ln -s "$emulated"/* "$folder/bin"
for tests in "$@"; do
  ln -s "$tests" "$folder/bin/$(basename "$tests" | sed 's/cnn_emulated_\(.*\)_tests/cnn_\1_cuda_tests/')"
done
export LD_LIBRARY_PATH=$emulated${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

fail() {
  echo "$*"
  cat "$folder/out"
  exit 1
}
# check SLICE FLAGS...: checks that all rows of the slice are good.
check() {
  local slice=$1
  shift
  "$folder/scripts/gpu_check.sh" --json="$folder/result.json" --toy --budget_s=1500 --slice="$slice" "$@" \
    >"$folder/out" 2>&1 || fail "exit code $? of slice $slice"
  grep -q '^[1-9][0-9]* rows: 0 bad, 0 left' "$folder/out" || fail "rows of slice $slice are missing"
}
says() { grep -q -e "$1" "$folder/out" || fail "'$1' is missing"; }

if [[ $extent == all ]]; then
  check tests --timeout_scale=10
  check losses --models=lenet,resnet20,mnist_deep,cifar10_full --timeout_scale=10
  check table --models=lenet --precisions=fp16 --timeout_scale=10
  says '\] table/lenet/fp16/b4/bn/graph: ok: '
  says '\] table/lenet/fp16/b4/none/launches: ok: '
  check table --models=lenet,trivial --timeout_scale=10
else
  check tests --timeout_scale=10
  says '^tests/cnn_runtime_cuda_tests: ok: [1-9][0-9]* passed, 0 failed'
  check losses --models=cifar10_full --precisions=fp16 --timeout_scale=10
  says '\] losses/fp16/1: ok: 1 of 1 agree'
fi
# Kept rows must not run again.
check losses --models=cifar10_full --precisions=fp16
! grep -q ' s left\] ' "$folder/out" || fail "kept rows ran again"
