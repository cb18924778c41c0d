#!/usr/bin/env bash
# Runs many cases of a GoogleTest program in one process, and prints the output of those that do not pass.
#
#   tests/scripts/shard.sh SECONDS TESTS FLAG...  ends TESTS after that many seconds. A case in which the program crashes
#                                                 or is ended is printed too. Exit code 77 if every case was skipped
set -uo pipefail

# The output of a case is kept until its last line tells whether it passed.
timeout --kill-after=5 "$1" "${@:2}" 2>&1 | awk '
  /^\[ RUN      \]/ { case_output = ""; inside = 1 }
  inside { case_output = case_output $0 "\n" }
  !inside && !/^\[-+\]|^\[=+\]|^\[  SKIPPED \]|^$/ { print }
  /^\[       OK \]/ { ++passed; inside = 0 }
  /^\[  SKIPPED \]/ && inside { ++skipped; inside = 0 }
  /^\[  FAILED  \]/ && inside { printf "%s", case_output; inside = 0 }
  END {
    if (inside) printf "%sthe program ended in this case\n", case_output
    exit passed == 0 && skipped > 0 ? 77 : 0
  }'
status=("${PIPESTATUS[@]}")
if ((status[0] == 124 || status[0] == 137)); then
  echo "shard.sh: ended after $1 s"
fi
exit $((status[0] != 0 ? status[0] : status[1]))
