#!/usr/bin/env bash
# give_up.sh TESTS: what a rank has handed to MPI stays as it was when the rank gives up, and where MPI's own sum does
# not end, the ranks that wait say that nothing tells for whom.
set -uo pipefail
command -v mpirun >/dev/null || {
  echo "skipped: there is no mpirun; scripts/setup.sh installs it"
  exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# says RANKS TEST: runs it in a folder of its own.
says() {
  mkdir "$folder/$2"
  CNN_TEST_GIVING_UP_IN=$folder/$2 bash "$(dirname "${BASH_SOURCE[0]}")/as_ranks.sh" "$1" "$program" \
    --gtest_filter="GivingUp.$2" 2>&1
}

program=$1
said=$(says 2 LeavesAMessageUnderWayAsItWas)
grep -q 'the message is whole' <<<"$said" || {
  echo "a message under way was overwritten: $said"
  exit 1
}
said=$(says 3 BlamesNobodyInASumOfMpi)
blamed=$(grep -c 'blames -1: a rank is lost, and nothing tells which one: nothing from it for' <<<"$said")
((blamed == 2)) || {
  echo "$blamed of 2 ranks say that they cannot know: $said"
  exit 1
}
