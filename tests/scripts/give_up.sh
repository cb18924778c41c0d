#!/usr/bin/env bash
# give_up.sh TESTS: what a rank has handed to MPI stays as it was when the rank gives up; where MPI's own sum does not
# end, the ranks that wait say that nothing tells for whom; and of twelve ranks each names a rank that has given up,
# and passes that on to its six neighbours at most.
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

# expect_names TEST RANKS: each of twelve ranks names one of these, a regular expression, and has sent few verdicts.
expect_names() {
  local said named
  said=$(says 12 "$1")
  named=$(grep -cE "^names ($2) and sent [0-6] verdicts$" <<<"$said")
  ((named == 12)) || {
    echo "$1: $named of 12 ranks name $2 and send at most 6 verdicts: $said"
    exit 1
  }
}
expect_names TellsAllRanksByFewMessagesOfEach 5
expect_names NamesOneOfSeveralThatFailAtOnce '2|5|6'
