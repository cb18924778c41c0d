#!/usr/bin/env bash
# Builds what is not built and runs the program with the given flags (scripts/run.sh --help lists them).
# Without flags it trains ResNet-50 on synthetic images, with a batch that suits the machine.
# Only the program's own lines go to stdout.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Images per step: eight per core keep every core busy; one image of a ResNet-50 step needs about 130 MiB in fp32, and
# weights, gradients and libraries another 600 MiB.
suitable_batch() {
  local batch by_memory gpu_mib
  # On a GPU 256 fill it; an image needs about 100 MiB there in fp32, the rest is room for the libraries.
  if gpu_mib=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits 2>/dev/null | head -n 1) &&
    [[ $preset == cuda && $gpu_mib =~ ^[0-9]+$ ]]; then
    batch=$(((gpu_mib - 3000) / 110))
    ((batch <= 256)) || batch=256
    ((batch >= 1)) || batch=1
    echo "$batch"
    return
  fi
  batch=$((8 * $(nproc)))
  by_memory=$((($(memory_mib) - 600) / 130))
  ((batch <= by_memory)) || batch=$by_memory
  ((batch <= 64)) || batch=64
  ((batch >= 1)) || batch=1
  echo "$batch"
}

preset=$(default_preset)
"$root/scripts/setup.sh"
build "$preset" --target cnn_benchmarks
if (($# == 0)); then
  set -- --model=resnet50 --batch_size="$(suitable_batch)" --num_warmup_batches=2 --num_batches=20 --display_every=1
  say "no flags given, so: $*"
fi
exec "$root/build/$preset/cnn_benchmarks" "$@"
