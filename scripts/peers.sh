#!/usr/bin/env bash
# This program beside PyTorch and tf_cnn_benchmarks: same networks, batch, threads and precision, interleaved.
# scripts/peers.sh --help lists the options. The peers are not installed by it: name a Python that has them.
#
#   scripts/peers.sh --torch_python=venv/bin/python --precision=bf16 --models=resnet50,vgg16
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

preset=$(default_preset)
program=$root/build/$preset/cnn_benchmarks
if [[ " $* " != *" --without_program "* && " $* " != *" --help "* ]]; then
  "$root/scripts/setup.sh"
  build "$preset" --target cnn_benchmarks
fi
exec python3 "$root/scripts/peers/compare.py" --program="$program" "$@"
