#!/usr/bin/env bash
# silent_rank.sh TESTS: stops one of six ranks that cannot see each other's processes. Only some ranks watch it, but all
# other ranks must name it.
set -uo pipefail
command -v mpirun >/dev/null || {
  echo "skipped: there is no mpirun; scripts/setup.sh installs it"
  exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
said=$(CNN_TEST_UNWATCHED_IN=$folder bash "$(dirname "${BASH_SOURCE[0]}")/as_ranks.sh" 6 "$1" --gtest_filter='HeartbeatTimeout.*' 2>&1)
named=$(grep -c 'names rank 5: rank 5 is lost: no heartbeat for' <<<"$said")
((named == 5)) || {
  echo "$named of 5 ranks named it: $said"
  exit 1
}
