#!/usr/bin/env bash
# abort.sh TESTS: runs the tests of ranks that abort and reads their output. A message that a rank has handed to MPI
# must stay unchanged. A message that was sent before a notice must still arrive. Ranks in a collective of MPI must say
# that they cannot know which rank is lost. Each of twelve ranks must name a rank that has aborted and forward its
# notice to at most its six neighbours.
set -uo pipefail
command -v mpirun >/dev/null || {
  echo "skipped: there is no mpirun; scripts/setup.sh installs it"
  exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# says RANKS TEST: runs the test in a folder of its own and prints its output.
says() {
  mkdir "$folder/$2"
  CNN_TEST_ABORTING_IN=$folder/$2 bash "$(dirname "${BASH_SOURCE[0]}")/as_ranks.sh" "$1" "$program" \
    --gtest_filter="AbortOverMpi.$2" 2>&1
}

program=$1
said=$(says 2 LeavesAPendingMessageUnchanged)
grep -q 'the message is whole' <<<"$said" || {
  echo "a message under way was overwritten: $said"
  exit 1
}
said=$(says 2 TakesWhatWasSentBeforeTheNotice)
gathered=$(grep -c '^rank [01] has gathered$' <<<"$said")
((gathered == 2)) || {
  echo "$gathered of 2 ranks take what was sent before a notice: $said"
  exit 1
}
said=$(says 2 TakesWhatWasSentByAProcessThatHasEnded)
grep -q '^rank 1 has gathered$' <<<"$said" || {
  echo "what a process sent before it ended is lost: $said"
  exit 1
}
said=$(says 3 NamesNoRankInACollectiveOfMpi)
blamed=$(grep -c 'blames -1: a rank is lost, and nothing tells which one: nothing from it for' <<<"$said")
((blamed == 2)) || {
  echo "$blamed of 2 ranks say that they cannot know: $said"
  exit 1
}

# expect_names TEST RANKS: checks that each of twelve ranks names one that matches this expression and sends few
# notices.
expect_names() {
  local said named
  said=$(says 12 "$1")
  named=$(grep -cE "^names ($2) and sent [0-6] notices$" <<<"$said")
  ((named == 12)) || {
    echo "$1: $named of 12 ranks name $2 and send at most 6 notices: $said"
    exit 1
  }
}
expect_names ReachesAllRanksWithFewMessagesOfEach 5
expect_names NamesOneOfSeveralThatFailAtOnce '2|5|6'
