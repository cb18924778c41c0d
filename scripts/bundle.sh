#!/usr/bin/env bash
# Makes build/portable/bundle: the program and the tests of the CUDA backend with all linked in that GPU hosts may lack,
# what scripts/gpu_check.sh reads, and, for hosts with another CUDA, what a build there needs beside the sources.
# The folder is laid out as the repository is, so that the scripts work in both.
#
#   scripts/bundle.sh                   builds the bundle
#   scripts/bundle.sh --scripts=DIR     copies only the scripts of a bundle and what they read
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

bundle=$root/build/portable/bundle
packages=(libfmt-dev libcxxopts-dev nlohmann-json3-dev libgtest-dev libgmock-dev zlib1g-dev
  libjpeg62-turbo-dev libpng-dev)

# copy FOLDER ENDING: the files of that folder of the repository, where it has it.
copy() {
  if [[ -d $root/$1 ]]; then
    mkdir -p "$bundle/$1"
    cp "$root/$1"/*"$2" "$bundle/$1"
  fi
}

# Headers, archives and CMake packages: CMAKE_PREFIX_PATH=bundle/deps/usr finds them on a host that has none.
copy_dependencies() {
  local files file
  if ! files=$(dpkg-query -L "${packages[@]}" 2>/dev/null); then
    say "the bundle cannot be built anew on another host: these are not all Debian packages here: ${packages[*]}"
    return
  fi
  mkdir -p "$bundle/deps"
  while read -r file; do
    if [[ -f $file && $file =~ ^/usr/(include|lib|share/cmake) && $file != */pkgconfig/* ]]; then
      # CMake wants to see the library that a link names, too.
      cp --parents --dereference "$file" "$(realpath "$file")" "$bundle/deps" 2>/dev/null ||
        cp --parents "$file" "$bundle/deps"
    fi
  done <<<"$files"
}

copy_scripts() {
  local folder
  copy scripts gpu_check.sh
  copy scripts common.sh
  for folder in scripts/{gpu_check,peers,losses}; do
    copy "$folder" .py
  done
  copy tests/losses .json
}

case ${1-} in
  "") ;;
  --scripts=?*)
    bundle=$(realpath -m "${1#*=}")
    copy_scripts
    exit
    ;;
  *) die "$1: the only option is --scripts=DIR" ;;
esac

"$root/scripts/setup.sh"
build portable --target cnn_benchmarks cnn_{runtime,layers,bench}_cuda_tests
rm -rf "$bundle"
cmake --install "$root/build/portable" --prefix "$bundle" --component bundle --strip >/dev/null
copy_scripts
copy_dependencies
say "$bundle: $(du -sm --apparent-size "$bundle" | cut -f 1) MiB"
