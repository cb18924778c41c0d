#!/usr/bin/env bash
# Builds everything and runs the tests.
#
#   scripts/test.sh             all tests but the slow ones and the linters; those that need a GPU are listed as
#                               skipped where there is none
#   scripts/test.sh --slow      the slow ones too
#   scripts/test.sh ... -R X    further arguments go to ctest
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

excluded='slow|lint'
if [[ ${1:-} == --slow ]]; then
  excluded='lint'
  shift
fi
preset=$(default_preset)
"$root/scripts/setup.sh"
build "$preset"
# Tests run side by side: OpenMP threads that spin while they wait would take each other's cores.
export OMP_WAIT_POLICY=passive
exec ctest --test-dir "$root/build/$preset" --output-on-failure --no-tests=error --parallel "$(nproc)" \
  --label-exclude "$excluded" "$@" </dev/null
