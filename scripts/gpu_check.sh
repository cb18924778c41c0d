#!/usr/bin/env bash
# Checks a build with CUDA on a GPU: tests, losses, sanitizers, speed and PyTorch beside it, in one JSON file.
# It works in slices and goes on where it was cut off; scripts/gpu_check.sh --help lists the options.
#
#   scripts/gpu_check.sh                        builds preset cuda and runs all that there is time for
#   scripts/gpu_check.sh --bundle=DIR           takes programs that scripts/bundle.sh built elsewhere
#   DIR/scripts/gpu_check.sh --slice=table      the same from the bundle itself, which needs no checkout
#   scripts/gpu_check.sh --device=cpu           a rehearsal without a GPU
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

started=$(date +%s)
cannot_load=4  # of main.py: a library of CUDA is missing or of another version, or the driver is too old
bundle=
words=()
while (($# > 0)); do
  case $1 in
    --bundle=*) bundle=${1#*=} ;;
    --bundle)
      [[ $# -gt 1 ]] || die "--bundle needs a folder"
      bundle=$2
      shift
      ;;
    *) words+=("$1") ;;
  esac
  shift
done

can_build() { [[ -e $root/CMakeLists.txt ]] && command -v cmake >/dev/null && has_cuda; }

# build_here PRESET
build_here() {
  local name targets=(cnn_benchmarks)
  for name in runtime layers bench; do
    targets+=("cnn_${name}_cuda_tests")
  done
  build "$1" --target "${targets[@]}"
  bin=$root/build/$1
}

check() {
  python3 "$root/scripts/gpu_check/main.py" --bin="$bin" --started="$started" "$@"
}

if [[ -n $bundle ]]; then
  bundle=$(realpath "$bundle")
elif [[ -e $root/bin/cnn_benchmarks ]]; then
  bundle=$root  # this script is in one
fi
if [[ " ${words[*]} " == *" --help "* ]]; then
  bin=$root
elif [[ -n $bundle ]]; then
  bin=$bundle/bin
  [[ -x $bin/cnn_benchmarks ]] || die "there is no bin/cnn_benchmarks in $bundle"
  code=0
  check --only_load "${words[@]}" || code=$?
  if ((code == cannot_load)) && can_build; then
    say "so it is built here, with the headers and archives of the bundle"
    export CMAKE_PREFIX_PATH=$bundle/deps/usr
    build_here portable
  elif ((code != 0)); then
    exit 2
  fi
else
  can_build || die "nvcc of CUDA 12 or newer, cuDNN 9 and CMake are not all here: name a bundle that was built elsewhere (--bundle=DIR)"
  "$root/scripts/setup.sh"
  build_here cuda
fi
check "${words[@]}"
