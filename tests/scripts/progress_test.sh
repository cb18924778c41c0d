#!/usr/bin/env bash
# Checks that a build prints its progress and remaining time, and fails if the compiler fails. Warnings must be errors
# only if the environment requests it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/common.sh

fail() {
  echo "$1"
  exit 1
}

slow_build() {
  echo "-- Configuring done"
  echo "[1/8] Building CXX object a.o"
  sleep 2
  echo "[2/8] Building CXX object b.o"
}
said=$(slow_build | report_progress 1 2>&1)
[[ $said =~ ^\ \ step\ 2\ of\ 8,\ about\ [0-9]+\ s\ left$ ]] || fail "unclear progress: $said"

said=$(printf '[%d/4] Building\n' 1 2 3 4 | report_progress 15 2>&1)
[[ -z $said ]] || fail "a build of less than 15 seconds said: $said"

[[ $(duration 59) == "59 s" && $(duration 60) == "1 min" && $(duration 150) == "3 min" ]] || fail "wrong duration"

# If the compiler fails, the build shows its error and the caller ends.
root=$(mktemp -d)
trap 'rm -r "$root"' EXIT
mkdir -p "$root/bin"
cat >"$root/bin/cmake" <<'END'
#!/bin/sh
[ "$1" = --build ] || exit 0
echo "a.cpp:1:1: error: expected a declaration"
exit 1
END
chmod +x "$root/bin/cmake"
PATH=$root/bin:$PATH
if said=$(build cpu 2>&1); then
  fail "a build that fails passed"
fi
[[ $said == *"expected a declaration"*"preset cpu does not build"* ]] || fail "the compiler's error is not shown: $said"

# A plain build only shows warnings. CI makes them errors by an environment variable.
cat >"$root/bin/cmake" <<'END'
#!/bin/sh
echo "cmake $*"
END
configured_with() {
  CNN_WARNINGS_AS_ERRORS=$1 CNN_GROUP_TESTS=$1 build cpu >/dev/null 2>&1
  grep -e --preset "$root/build/cpu/build.log"
}
[[ $(configured_with "") == *"cmake --preset cpu"* && $(configured_with "") != *WARNINGS* ]] || fail "a plain build asks for warnings as errors"
[[ $(configured_with ON) == *"-DCNN_WARNINGS_AS_ERRORS=ON"* ]] || fail "CI cannot make warnings errors"
[[ $(configured_with "") != *GROUP* && $(configured_with ON) == *"-DCNN_GROUP_TESTS=ON"* ]] || fail "CI cannot group tests"
if grep -q '"CNN_WARNINGS_AS_ERRORS": "ON"' CMakePresets.json; then
  fail "a preset makes warnings errors: a newer compiler would break a user's first build"
fi
grep -q 'CNN_WARNINGS_AS_ERRORS=ON scripts/test.sh' .ci/run || fail "CI does not make warnings errors"
