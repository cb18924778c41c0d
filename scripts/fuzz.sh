#!/usr/bin/env bash
# Builds a libFuzzer target under AddressSanitizer and UndefinedBehaviorSanitizer and runs it.
#
#   scripts/fuzz.sh TARGET [options of libFuzzer]    TARGET: a source in tests/fuzz, without .cpp
#   scripts/fuzz.sh image_record -runs=1000000
#
# Inputs that reach new code are kept in build/fuzz/TARGET; one that crashes, hangs for ten seconds or takes more than
# 1 GiB is written there too, and the exit code is then not 0. 77: there is no clang or no library here. Parsers that need
# the rest of the program are linked with the libraries of build/cpu or build/cuda, or of the folder in CNN_FUZZ_BUILD.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

targets() { (cd "$root/tests/fuzz" && echo ./*.cpp); }
[[ $# -ge 1 && $1 != --help ]] || die "which target? There are: $(targets)"
target=$1
shift
[[ -f $root/tests/fuzz/$target.cpp ]] || die "$target: no such target. There are: $(targets)"

# Sources that are compiled with sanitizers; then what the target is linked with. `rest`: libraries of a build.
# `headers`: those of other projects that a machine may not have.
files=(data/file.cpp runtime/{error,resource_limits}.cpp)
json=(data/json/parse_json.cpp)
compare=(bench/compare/*.cpp bench/page/*.cpp)
images=(-ljpeg -lpng -lz)
data=(data data_json data_images_simd runtime)
program=(bench_session bench_plan bench_ranks bench_report bench_machine bench_flags bench_version allreduce allreduce_simd lms
  models layers_passes layers_cpu layers_cpu_simd layers runtime_cpu "${data[@]}")
sources=() libraries=() rest=() headers=()
cuda=${CUDA_HOME:-/usr/local/cuda}/include
cd "$root"
onednn=$(first_file build/deps/onednn/lib/libdnnl.so.3.*) || true
program_needs=(-lfmt "${images[@]}" "${onednn:--ldnnl}" "-Wl,-rpath,$root/build/deps/onednn/lib" -lgomp -ldl)
case $target in
  image_record)
    sources=("${files[@]}" data/images/{crop,decoder}.cpp data/images/alternatives/{jpeg,png}.cpp
      data/records/{crc32c,image_example,protobuf,record}.cpp)
    libraries=(-ljpeg -lpng)
    ;;
  idx) sources=("${files[@]}" data/{gzip,mnist}.cpp) libraries=("${images[@]}") rest=("${data[@]}") ;;
  pickle) sources=("${files[@]}" data/{cifar10,pickle}.cpp) libraries=("${images[@]}") rest=("${data[@]}") ;;
  safetensors | checkpoint)
    sources=("${files[@]}" "${json[@]}" data/{checkpoint_find,checkpoint_load,checkpoint_names,safetensors,tensors}.cpp
      runtime/tensor.cpp)
    ;;
  record_index) sources=("${files[@]}" data/records/{crc32c,index_file,record,record_index}.cpp) ;;
  class_list) sources=("${files[@]}" data/imagenet/image_files.cpp) ;;
  plan_cache)
    sources=(runtime/{choice_file,error}.cpp layers/cuda/cudnn/{choice_text,plan_cache}.cpp)
    headers=(cuda_runtime_api.h cudnn.h)
    ;;
  result | history | hashes) sources=("${files[@]}" runtime/{file_identity,median,tensor,tensor_hash}.cpp "${json[@]}" "${compare[@]}") libraries=(-lfmt) ;;
  flags | flag_file) sources=(bench/flags/*.cpp) libraries=("${program_needs[@]}") rest=("${program[@]}") ;;
  profile) sources=(bench/machine/machine_model.cpp) libraries=("${program_needs[@]}") rest=("${program[@]}") ;;
  plan) sources=(bench/plan/lms_plan_file.cpp) libraries=("${program_needs[@]}") rest=("${program[@]}") ;;
  links) sources=(bench/ranks/exchange.cpp) libraries=("${program_needs[@]}") rest=("${program[@]}") ;;
  *) die "$target: scripts/fuzz.sh does not know its sources" ;;
esac

compiler=$(command -v clang++-14 || command -v clang++) || skip "there is no clang++"
command -v ninja >/dev/null || skip "there is no ninja"
folder=$root/build/fuzz/$target
mkdir -p "$folder/found"
{
  for header in cstdio "${headers[@]}"; do
    echo "#include <$header>"
  done
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
} >"$folder/probe.cpp"
"$compiler" -isystem "$cuda" -fsanitize=fuzzer,address "$folder/probe.cpp" "${libraries[@]}" -o "$folder/probe" >"$folder/build.log" 2>&1 ||
  skip "clang's sanitizers, a library or its headers are missing; $folder/build.log says more"
if ((${#rest[@]} > 0)); then
  for build in "${CNN_FUZZ_BUILD:-}" build/cpu build/cuda; do
    [[ -z $build || ! -f $build/libcnn_${rest[0]}.a ]] || break
  done
  [[ -f $build/libcnn_${rest[0]}.a ]] || skip "no library of the program is built yet: scripts/test.sh builds all of them"
  archives=("${rest[@]/#/$build/libcnn_}")
  # Where a library has the parser too, the one with sanitizers wins: it comes first.
  libraries+=("-Wl,--allow-multiple-definition" "-Wl,--start-group" "${archives[@]/%/.a}" "-Wl,--end-group")
fi

# Sources of one folder are compiled eight at a time, which takes less than half the time.
declare -A count=()
separate=("tests/fuzz/$target.cpp") joined=()
mkdir -p build/fuzz/objects
for source in "${sources[@]}"; do
  folder_of=${source%/*}
  case $folder_of in
    bench/compare | bench/page | bench/flags)
      count[$folder_of]=$((${count[$folder_of]:-0} + 1))
      file=build/fuzz/objects/${folder_of//\//_}_$(((count[$folder_of] - 1) / 8)).cpp
      [[ " ${joined[*]} " == *" $file "* ]] || { joined+=("$file") && : >"$file.new"; }
      echo "#include \"$source\"" >>"$file.new"
      ;;
    *) separate+=("$source") ;;
  esac
done
for file in "${joined[@]}"; do  # keeps the time of one that says the same
  if cmp -s "$file.new" "$file"; then rm "$file.new"; else mv "$file.new" "$file"; fi
done

# Objects are shared by all targets and compiled again only after a change, also of a header.
{
  echo "builddir = build/fuzz/objects"  # where ninja keeps its notes, for all targets: build one at a time
  # scripts/tidy has the header that clang 14 cannot use of libstdc++.
  echo "flags = -std=c++20 -O1 -gline-tables-only -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -DFMT_SHARED"
  echo "rule compile"
  echo "  command = $compiler \$flags \$checks -Iscripts/tidy -I. -isystem $cuda -MMD -MF \$out.d -c \$in -o \$out"
  echo "  depfile = \$out.d"
  echo "  deps = gcc"
  echo "rule link"
  echo "  command = $compiler -fsanitize=fuzzer,address,undefined \$in \$libraries -o \$out"
  objects=()
  for source in "${separate[@]}" "${joined[@]}"; do
    object=${source#build/fuzz/objects/}
    objects+=("build/fuzz/objects/${object%.cpp}.o")
    echo "build ${objects[-1]}: compile $source"
    # These handle text, no raw memory: AddressSanitizer finds their wild pointers, and the checks take half of the time.
    [[ $object != bench[_/]* && $object != tests/* ]] || echo "  checks = -fno-sanitize=null,alignment,object-size,vptr,pointer-overflow"
  done
  echo "build build/fuzz/$target/fuzz: link ${objects[*]}"
  echo "  libraries = ${libraries[*]}"
} >"$folder/build.ninja"
ninja -f "build/fuzz/$target/build.ninja" -j 2 "build/fuzz/$target/fuzz" >"$folder/build.log" 2>&1 || {
  tail -n 20 "$folder/build.log" >&2
  die "the target does not build"
}
exec "$folder/fuzz" -max_len=8192 -timeout=10 -rss_limit_mb=1024 -artifact_prefix="$folder/" -print_final_stats=1 "$@" \
  "$folder/found" "tests/fuzz/corpus/$target"
