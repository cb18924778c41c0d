#!/usr/bin/env bash
# Installs what the build, the tests and a run need and what is missing, on Debian 12, 13 and Ubuntu 22.04, 24.04.
# A second run finds everything and does nothing. Root rights (or sudo) are needed only for missing packages.
#
#   scripts/setup.sh            installs what is missing
#   scripts/setup.sh --check    installs nothing; exit code 1 and one line if something is missing
set -euo pipefail
exec 1>&2
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(g++ ninja-build libfmt-dev libcxxopts-dev nlohmann-json3-dev zlib1g-dev libgtest-dev
  libgmock-dev libjpeg-dev libpng-dev python3 dataset-fashion-mnist)
# Without the first two all works but runs of several processes; the others are for tests of these.
optional=(libopenmpi-dev openmpi-bin iproute2 libsimgrid-dev)
cmake_needed=3.24
deps=$root/build/deps

# oneDNN where the distribution's is older than 3: these two wheels hold version 3.2 for GNU OpenMP, nothing else.
onednn_version=2023.2.0
onednn_sha256=(
  "2f22a54d6a890ed14bfa185d42a4be65d8b5b1df85dc1f0f3a9abe31620416fb  onednn_cpu_gomp"
  "9763c69e8c907e119056bd52ad918ca84ac9ba939d130a99dfa95ccca3e5e284  onednn_devel_cpu_gomp")

installed() { [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }
at_least() { dpkg --compare-versions "$1" ge "$2"; }
# The version that would be installed; 0 if there is none, or no such package.
candidate() { apt-cache policy "$1" | awk '/Candidate:/ && $2 != "(none)" {found = $2} END {print found ? found : "0"}'; }
has_pip() { python3 -m pip --version >/dev/null 2>&1; }

# The packages of a list that are not installed, one per line; one dpkg-query for all, so that it stays quick.
missing_packages() { missing_of "${packages[@]}"; }
missing_of() {
  # It fails where it does not know a package; that one is just not listed.
  { dpkg-query -W -f='${binary:Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true; } |
    awk '$2 == "installed" {sub(/:.*/, "", $1); print $1}' | sort >"$scratch/have"
  printf '%s\n' "$@" | sort | comm -23 - "$scratch/have"
}

cmake_is_new_enough() {
  local version
  version=$(cmake --version 2>/dev/null | awk 'NR == 1 {print $3}') || return 1
  [[ -n $version ]] && at_least "$version" "$cmake_needed"
}

onednn_is_there() {
  [[ -e $deps/onednn/lib/cmake/dnnl/dnnl-config.cmake ]] && return
  installed libdnnl-dev && at_least "$(dpkg-query -W -f='${Version}' libdnnl-dev)" 3
}

install_packages() {
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      die "these packages are missing and there are no root rights to install them: $*"
    as_root=(sudo)
  fi
  say "installing: $*"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "$@" >"$scratch/apt.log" 2>&1 </dev/null || {
    tail -n 12 "$scratch/apt.log"
    die "apt-get could not install: $*"
  }
}

refresh_package_lists() {
  local as_root=()
  ((EUID == 0)) || as_root=(sudo)
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    return 0  # install_packages says which packages are missing
  fi
  "${as_root[@]}" apt-get update -q >"$scratch/apt.log" 2>&1 </dev/null || {
    tail -n 5 "$scratch/apt.log"
    say "apt-get update failed; going on with the package lists that are there"
  }
}

need_pip() {
  has_pip || install_packages python3-pip ca-certificates
}

install_cmake_from_pypi() {
  say "installing CMake from PyPI into build/deps/venv: the distribution's is older than $cmake_needed"
  python3 -m venv "$deps/venv" >/dev/null 2>&1 || {
    install_packages python3-venv ca-certificates
    python3 -m venv --clear "$deps/venv"
  }
  "$deps/venv/bin/python" -m pip install -q --disable-pip-version-check 'cmake>=3.28,<4' </dev/null ||
    die "CMake $cmake_needed or newer could not be installed from PyPI"
}

install_onednn_from_pypi() {
  local line wheel stage=$scratch/onednn
  need_pip
  say "installing oneDNN 3.2 from PyPI into build/deps/onednn (40 MB): the distribution's is older than 3.0"
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --dest "$scratch" \
    "onednn-cpu-gomp==$onednn_version" "onednn-devel-cpu-gomp==$onednn_version" </dev/null ||
    die "the wheels onednn-cpu-gomp and onednn-devel-cpu-gomp $onednn_version could not be had from PyPI"
  mkdir "$stage"
  for line in "${onednn_sha256[@]}"; do
    wheel=$(echo "$scratch/${line#*  }-$onednn_version-"*.whl)
    echo "${line%%  *}  $wheel" | sha256sum --check --status || die "$(basename "$wheel") has a wrong checksum"
    python3 -m zipfile -e "$wheel" "$stage"
    cp -r "$stage/${line#*  }-$onednn_version.data/data/." "$stage/prefix"
  done
  # Wheels cannot hold links, so they carry the library three times.
  ln -sf libdnnl.so.3.2 "$stage/prefix/lib/libdnnl.so.3"
  ln -sf libdnnl.so.3 "$stage/prefix/lib/libdnnl.so"
  rm -rf "$deps/onednn"
  mv "$stage/prefix" "$deps/onednn"
}

# Prints what is missing, in words; nothing if all is there.
missing() {
  missing_packages
  cmake_is_new_enough || echo "cmake>=$cmake_needed"
  onednn_is_there || echo "oneDNN>=3"
}

install_missing() {
  local wanted
  mapfile -t wanted < <(missing_packages)
  refresh_package_lists
  if ! cmake_is_new_enough && at_least "$(candidate cmake)" "$cmake_needed"; then
    wanted+=(cmake)
  fi
  if ! onednn_is_there && at_least "$(candidate libdnnl-dev)" 3; then
    wanted+=(libdnnl-dev)
  fi
  ((${#wanted[@]} == 0)) || install_packages "${wanted[@]}"
  cmake_is_new_enough || install_cmake_from_pypi
  # In a subshell: without it a build for GPUs can still be made.
  onednn_is_there || (install_onednn_from_pypi) || has_cuda
}

install_needed() {
  local lacking
  install_missing
  lacking=$(missing | tr '\n' ' ')
  if [[ $lacking == "oneDNN>=3 " ]] && has_cuda; then
    say "going on without oneDNN: GPUs do not need it, and on the CPU convolutions run in plain loops"
    return 0
  fi
  [[ -z $lacking ]] || die "still missing after installation: $lacking"
}

# Once: where they cannot be had, the rest is set up all the same, and nobody waits for them again.
install_optional() {
  local package lacking wanted=() tried=$deps/optional_packages_were_tried
  if [[ -z $(missing_of "${optional[@]}") || -e $tried ]]; then
    return 0
  fi
  (refresh_package_lists) || true
  for package in $(missing_of "${optional[@]}"); do
    [[ $(candidate "$package") == 0 ]] || wanted+=("$package")
  done
  ((${#wanted[@]} == 0)) || (install_packages "${wanted[@]}") || true
  lacking=$(missing_of "${optional[@]}" | tr '\n' ' ')
  if [[ -n $lacking ]]; then
    touch "$tried"
    say "going on without $lacking: without Open MPI no runs of several processes, else some tests are skipped"
  fi
}

main() {
  [[ $# == 0 || $* == --check ]] || die "unknown arguments: $*. There is only --check"
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "setup.sh knows Debian and Ubuntu only. Elsewhere install: a C++20 compiler, ninja, cmake>=$cmake_needed," \
      "fmt, cxxopts, nlohmann_json, zlib, libjpeg-turbo, libpng, GoogleTest, python3, oneDNN>=3"
    return 0
  fi
  mkdir -p "$deps"
  scratch=$(mktemp -d "$deps/setup.XXXXXX")  # on the same file system as its destination: the last move is atomic
  trap 'rm -rf "$scratch"' EXIT
  local lacking
  lacking=$(missing | tr '\n' ' ')
  if [[ $* == --check ]]; then
    [[ -z $lacking ]] || die "missing: $lacking"
    return 0
  fi
  [[ -z $lacking ]] || install_needed
  install_optional
}

main "$@"
