#!/usr/bin/env bash
# clang-format over the tree. Other versions than 14 lay out differently, so only that one is used.
#
#   scripts/format.sh           formats
#   scripts/format.sh --check   changes nothing; exit code 1 if a file is not formatted, 77 if the tool is not there
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[[ $# == 0 || $* == --check ]] || die "unknown arguments: $*. There is only --check"
tool=$(tool_14 clang-format) || skip "clang-format is not checked: version 14 of it is not installed"
mapfile -d '' -t files < <(cd "$root" && find_sources)
((${#files[@]})) || die "no sources found under $root"
cd "$root"
if [[ $* == --check ]]; then
  # The tool's own exit code only repeats what the list says.
  unformatted=$({ "$tool" --dry-run --Werror "${files[@]}" 2>&1 || true; } |
    sed -n 's/:[0-9]*:[0-9]*: error:.*//p' | sort -u)
  [[ -z $unformatted ]] || die "scripts/format.sh would change:"$'\n'"$unformatted"
else
  "$tool" -i "${files[@]}"
fi
