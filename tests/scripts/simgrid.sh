#!/usr/bin/env bash
# simgrid.sh BUILD_FOLDER: simulates the all-reduces and all-gathers of 256 and 1,024 ranks in SimGrid; they must be
# close to the lower bound.
set -euo pipefail
[[ -e /usr/include/simgrid/s4u.hpp ]] || {
  echo "skipped: there is no SimGrid; apt-get install libsimgrid-dev, as scripts/setup.sh does where it can"
  exit 77
}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
g++ -std=c++20 -O2 -I "$root" "$root/tests/allreduce/simgrid/main.cpp" "$1"/libcnn_allreduce.a \
  "$1"/libcnn_allreduce_simd.a "$1"/libcnn_runtime.a -lsimgrid -pthread -o "$scratch/run"
simulate() {  # [gather] HOSTS RANKS_EACH BYTES LIMIT
  "$scratch/run" "$@" "$scratch/platform.xml" --cfg=network/model:CM02 --cfg=network/bandwidth-factor:1.0 \
    --cfg=network/latency-factor:1.0 --cfg=network/TCP-gamma:0 --cfg=network/crosstraffic:0 \
    --cfg=contexts/stack-size:64 --cfg=contexts/guard-size:0 --log=root.thresh:warning
}
simulate gather 64 4 200 2
simulate gather 1024 1 200 2
simulate 64 4 102400000 1.06
simulate 256 4 102400000 1.09
