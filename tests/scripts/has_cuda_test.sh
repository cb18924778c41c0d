#!/usr/bin/env bash
# Checks that the scripts, like CMake, accept CUDA 12 or newer with cuDNN 9 and nothing older.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/common.sh

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/include"
printf '#define CUDNN_MAJOR 9\n' >"$folder/include/cudnn_version.h"
export CUDACXX=$folder/nvcc CUDNN_ROOT=$folder

# takes RELEASE: returns whether an nvcc of that release is accepted.
takes() {
  printf '#!/bin/sh\necho "Cuda compilation tools, release %s, V%s.1"\n' "$1" "$1" >"$folder/nvcc"
  chmod +x "$folder/nvcc"
  has_cuda_in
}
for release in 12.0 12.8 13.0; do
  takes "$release" || { echo "CUDA $release is not taken"; exit 1; }
done
for release in 11.8 10.2; do
  ! takes "$release" || { echo "CUDA $release is taken"; exit 1; }
done
printf '#!/bin/sh\nexit 1\n' >"$folder/nvcc"
! has_cuda_in || { echo "an nvcc that does not run is taken"; exit 1; }
printf '#define CUDNN_MAJOR 8\n' >"$folder/include/cudnn_version.h"
! takes 13.0 || { echo "cuDNN 8 is taken"; exit 1; }
