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

# Which preset a plain run is built with.
default_preset() { echo cpu; }

# build PRESET [cmake --build arguments]: quiet, unless it fails. The whole output stays in build/<preset>/build.log.
build() {
  local preset=$1 log=$root/build/$1/build.log
  shift
  mkdir -p "$(dirname "$log")"
  say "building preset $preset ..."
  if ! (
    cd "$root"
    # With ccache, objects from another checkout of the same sources are taken as well.
    export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=true
    cmake --preset "$preset"
    cmake --build --preset "$preset" --parallel "$(jobs)" "$@" -- -k 0
  ) >"$log" 2>&1 </dev/null; then
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
    \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' \) -print0 2>/dev/null
}
