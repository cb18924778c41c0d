#!/usr/bin/env bash
# Copies the headers, archives and CMake packages that a build needs into a folder, for hosts that have only CUDA,
# PyTorch and CMake: CMAKE_PREFIX_PATH=FOLDER/usr finds them there. Called by the target bundle.
#
#   scripts/bundle_deps.sh FOLDER
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(libfmt-dev libcxxopts-dev nlohmann-json3-dev libgtest-dev libgmock-dev zlib1g-dev)
[[ $# == 1 ]] || die "needs a folder"
if ! files=$(dpkg-query -L "${packages[@]}" 2>/dev/null); then
  say "bundle without the means to build on another host: these are not all Debian packages here: ${packages[*]}"
  exit 0
fi
mkdir -p "$1"
while read -r file; do
  if [[ -f $file && $file =~ ^/usr/(include|lib|share/cmake) && $file != */pkgconfig/* ]]; then
    # CMake wants to see the library that a link names, too.
    cp --parents --dereference "$file" "$(realpath "$file")" "$1" 2>/dev/null || cp --parents "$file" "$1"
  fi
done <<<"$files"
