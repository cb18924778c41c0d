# Sourced by the other scripts: where things are, how many jobs fit, how a preset is configured and built.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# setup.sh puts tools here that the distribution has only in versions which are too old (CMake on Ubuntu 22.04).
PATH=$root/build/deps/venv/bin:$PATH

say() { printf '%s\n' "$*" >&2; }
die() {
  say "$(basename "$0"): $*"
  exit 1
}

# Memory in MiB that a new process may take: the machine's, or what the control group leaves of it.
memory_mib() {
  local available limit
  available=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  if [[ $limit != max ]] && ((limit / 1048576 < available)); then
    available=$((limit / 1048576))
  fi
  echo "$available"
}

# Compile jobs: one per core, and 1.2 GiB for each (the largest test sources take about that much).
jobs() {
  local by_memory cores
  cores=$(nproc)
  by_memory=$(($(memory_mib) / 1200))
  ((by_memory >= 1)) || by_memory=1
  echo $((cores < by_memory ? cores : by_memory))
}

# The folders that NVIDIA's Python wheels fill, one per line: what PyTorch's machines have of CUDA.
nvidia_wheels() { python3 -c 'import nvidia; print(*nvidia.__path__, sep="\n")' 2>/dev/null || true; }

# first_file PATH...: the first that exists.
first_file() {
  local path
  for path in "$@"; do
    if [[ -e $path ]]; then
      echo "$path"
      return
    fi
  done
  return 1
}

# nvcc_major NVCC: the major version of its CUDA, 0 if it does not run.
nvcc_major() {
  local major
  major=$("$1" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\..*/\1/p') || true
  echo "${major:-0}"
}

# has_cuda_in WHEELS...: nvcc of CUDA 12 or newer and the header of cuDNN 9, where CMake looks for them too.
has_cuda_in() {
  local nvcc header
  nvcc=$(command -v "${CUDACXX:-nvcc}" ||
    first_file "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" /usr/local/cuda*/bin/nvcc \
      "${@/%//cu13/bin/nvcc}" "${@/%//cuda_nvcc/bin/nvcc}") || return 1
  (($(nvcc_major "$nvcc") >= 12)) || return 1
  header=$(first_file "${CUDNN_ROOT:-/usr}/include/cudnn_version.h" "$(dirname "$nvcc")/../include/cudnn_version.h" \
    {/usr,/usr/local}/include/cudnn_version.h "/usr/include/$(uname -m)-linux-gnu/cudnn_version.h" \
    "${@/%//cudnn/include/cudnn_version.h}") || return 1
  grep -q '#define CUDNN_MAJOR 9' "$header"
}

has_cuda() {
  local wheels
  has_cuda_in && return
  mapfile -t wheels < <(nvidia_wheels)
  ((${#wheels[@]} > 0)) && has_cuda_in "${wheels[@]}"
}

# Prints the preset of a build without further options: cuda if CUDA is installed, else cpu.
default_preset() {
  if has_cuda; then
    echo cuda
  else
    echo cpu
  fi
}

# Why the preset is what it is, where that was our choice.
preset_note() {
  case $1 in
    cuda) echo " (nvcc and cuDNN are here)" ;;
    cpu) echo " (nvcc of CUDA 12 or newer and cuDNN 9 are not both here)" ;;
  esac
}

# report_progress SECONDS: reads what ninja prints and says how far it is, at most once in so many seconds. The time
# left is an estimate by which all steps take equally long.
report_progress() {
  local line finished total every=$1 start=$SECONDS told=$SECONDS
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    finished=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
    ((finished > 0 && SECONDS - told >= every)) || continue
    told=$SECONDS
    say "  step $finished of $total, about $(duration $(((SECONDS - start) * (total - finished) / finished))) left"
  done
}

# duration SECONDS: as people say it.
duration() {
  if (($1 < 60)); then
    echo "$1 s"
  else
    echo "$((($1 + 30) / 60)) min"
  fi
}

# build PRESET [cmake --build arguments]: tells only its progress, unless it fails. The whole output stays in
# build/<preset>/build.log. The environment variables CNN_WARNINGS_AS_ERRORS, CNN_GROUP_TESTS and CNN_JOIN (ON or OFF) set
# the CMake options of those names; without them a folder keeps what it has, and a new one only shows warnings.
build() {
  local preset=$1 log=$root/build/$1/build.log options=() name
  shift
  # From nothing and without a compiler cache, a build is ready sooner where several sources are compiled as one.
  if [[ -n ${CNN_JOIN:-} ]]; then
    options=("-DCNN_JOIN=$CNN_JOIN")
  elif ! command -v ccache >/dev/null && [[ ! -e $root/build/$preset/CMakeCache.txt ]]; then
    options=(-DCNN_JOIN=ON)
  fi
  for name in CNN_WARNINGS_AS_ERRORS CNN_GROUP_TESTS; do
    [[ -z ${!name:-} ]] || options+=("-D$name=${!name}")
  done
  mkdir -p "$(dirname "$log")"
  say "building preset $preset$(preset_note "$preset") ..."
  if ! (
    cd "$root"
    # With ccache, objects from another checkout of the same sources are taken as well.
    export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=true
    cmake --preset "$preset" "${options[@]}"
    cmake --build --preset "$preset" --parallel "$(jobs)" "$@" -- -k 0
  ) </dev/null 2>&1 | tee "$log" | report_progress 15; then
    grep -A 3 -E ': (fatal )?error|^CMake Error|undefined reference' "$log" | head -80 >&2 || tail -n 30 "$log" >&2
    die "preset $preset does not build; all of the output is in $log"
  fi
}

# Leaves with the exit code that ctest reports as "skipped".
skip() {
  say "skipped: $*"
  exit 77
}

# tool_14 NAME: prints the command of that LLVM tool in version 14, which is the one whose verdict counts.
tool_14() {
  local command
  for command in "$1-14" "$1"; do
    if "$command" --version 2>/dev/null | grep -q -E 'version 14\.'; then
      echo "$command"
      return
    fi
  done
  return 1
}

# Our C++ sources and headers under the current folder, each ended by a zero byte.
find_sources() {
  find runtime layers models lms allreduce data bench tests \
    \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 2>/dev/null
}
