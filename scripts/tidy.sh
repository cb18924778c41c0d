#!/usr/bin/env bash
# clang-tidy 14 with .clang-tidy over sources, by the compile commands of preset cpu.
#
#   scripts/tidy.sh                 sources that differ from the merge base with origin/main, or in the last commit
#   scripts/tidy.sh --all           every source
#   scripts/tidy.sh FILE...         these
#   scripts/tidy.sh --seconds=N ... starts no further file after N seconds and names those left out
# Exit code 1 for findings, 77 if the tool or the compile commands are not there.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds=0
if [[ ${1:-} == --seconds=* ]]; then
  seconds=${1#*=}
  shift
fi
commands=$root/build/$(default_preset)/compile_commands.json
tool=$(tool_14 clang-tidy) || skip "clang-tidy is not run: version 14 of it is not installed"
[[ -e $commands ]] || skip "clang-tidy is not run: there is no $commands; scripts/test.sh makes it"
cd "$root"

# Sources of this change, also those not committed yet. A changed header is read with the sources that include it.
changed() {
  local base head
  head=$(git rev-parse HEAD) || return 0
  base=$(git merge-base HEAD origin/main 2>/dev/null || echo "$head")
  if [[ $base == "$head" ]]; then
    base=$(git rev-parse --verify -q HEAD~1 || git hash-object -t tree /dev/null)
  fi
  git diff --name-only --diff-filter=d "$base" -- '*.cpp'
}

case ${1:-} in
  --all) mapfile -d '' -t files < <(find_sources | grep -z '\.cpp$') ;;
  '') mapfile -t files < <(changed) ;;
  *) files=("$@") ;;
esac
report=$(mktemp -d)
trap 'rm -rf "$report"' EXIT
python3 scripts/tidy/separate_commands.py "$commands" >"$report/compile_commands.json"

# One file: nothing is printed for a clean one. Only sources that the preset compiles have a command to read.
check_one() {
  local file=$1 name
  name=$report/${file//\//_}
  if ! grep -q "\"file\": \"$root/$file\"" "$report/compile_commands.json"; then
    : >"$name.foreign"
  elif ((deadline > 0 && $(date +%s) > deadline)); then
    echo "$file" >"$name.left"
  elif ! "$tool" --quiet -p "$report" --extra-arg=-Wno-unknown-warning-option \
    --extra-arg-before="-isystem$root/scripts/tidy" "$file" >"$name.log" 2>"$name.err"; then
    grep -v -E 'warnings? (generated|treated)|Suppressed|Use -header-filter' "$name.log" "$name.err" -h
    : >"$name.failed"
  fi
}
export -f check_one
deadline=$((seconds > 0 ? $(date +%s) + seconds : 0))
export root report tool deadline

# shellcheck disable=SC2016  # the inner shell expands it
((${#files[@]} == 0)) || printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'check_one "$1"' _ {}
left=$(cat "$report"/*.left 2>/dev/null | tr '\n' ' ') || true
[[ -z $left ]] || say "clang-tidy: no time for $left"
failed=$(find "$report" -name '*.failed' | wc -l)
((failed == 0)) || die "clang-tidy complains about $failed of ${#files[@]} files"
foreign=$(find "$report" -name '*.foreign' | wc -l)
((foreign == 0)) || say "clang-tidy: this build does not compile $foreign of ${#files[@]} files"
say "clang-tidy: $((${#files[@]} - foreign - $(wc -w <<<"$left"))) files looked at"
