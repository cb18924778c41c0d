#!/usr/bin/env bash
# Builds a libFuzzer target under AddressSanitizer and UndefinedBehaviorSanitizer and runs it.
#
#   scripts/fuzz.sh TARGET [options of libFuzzer]    TARGET: a source in tests/fuzz, without .cpp
#   scripts/fuzz.sh image_record -runs=1000000
#
# Inputs that reach new code are kept in build/fuzz/TARGET; one that crashes, hangs for ten seconds or takes more than
# 1 GiB is written there too, and the exit code is then not 0. 77: there is no clang or no library here.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[[ $# -ge 1 && $1 != --help ]] || die "which target? There are: $(cd "$root/tests/fuzz" && echo ./*.cpp)"
target=$1
shift
case $target in
  image_record)
    sources=(data/file.cpp data/images/{crop,decoder}.cpp data/images/jpeg/jpeg.cpp data/images/png/png.cpp
      data/records/{crc32c,image_example,protobuf,record}.cpp runtime/{error,resource_limits}.cpp)
    libraries=(-ljpeg -lpng)
    ;;
  *) die "$target: no such target. There are: $(cd "$root/tests/fuzz" && echo ./*.cpp)" ;;
esac

compiler=$(command -v clang++-14 || command -v clang++) || skip "there is no clang++"
folder=$root/build/fuzz/$target
mkdir -p "$folder"
cd "$root"
cat >"$folder/probe.cpp" <<'PROBE'
#include <cstdio>
#include <jpeglib.h>
#include <png.h>
extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }
PROBE
"$compiler" -fsanitize=fuzzer,address "$folder/probe.cpp" "${libraries[@]}" -o "$folder/probe" >"$folder/build.log" 2>&1 ||
  skip "clang's sanitizers or a library are missing; $folder/build.log says more"
# scripts/tidy has the header that clang 14 cannot use of libstdc++.
"$compiler" -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Iscripts/tidy -I. \
  "tests/fuzz/$target.cpp" "${sources[@]}" "${libraries[@]}" -o "$folder/fuzz" >"$folder/build.log" 2>&1 || {
  tail -n 20 "$folder/build.log" >&2
  die "the target does not build"
}
mkdir -p "$folder/found"
exec "$folder/fuzz" -max_len=8192 -timeout=10 -rss_limit_mb=1024 -artifact_prefix="$folder/" -print_final_stats=1 "$@" \
  "$folder/found" "tests/fuzz/corpus/$target"
