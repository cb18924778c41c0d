#!/usr/bin/env bash
# Tests scripts/suite.sh with fake programs: the order of runs, the collected results, and how it resumes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# A fake program that logs its flags, writes a result, and fails if a file says so.
cat >new <<'PROGRAM'
#!/usr/bin/env bash
if [[ $* == --helpfull ]]; then
  echo "  --take_turns: ..."
  exit 1
fi
echo "$(basename "$0") $*" >>"$CALLS"
[[ ! -e fail || $* != *--model=b* ]] || { echo "no room" >&2; exit 3; }
for flag in "$@"; do
  case $flag in
    --result_json=*) printf '{\n "summary": {\n  "images_per_sec": 42.5,\n  "jitter": 1\n },\n "evaluation": []\n}\n' >"${flag#*=}" ;;
  esac
done
PROGRAM
sed 's/--take_turns: .../nothing new/' new >old
cp new base
chmod +x new old base
export CALLS=$folder/calls
printf '# two lines\n\na: --model=a --batch_size=2   # as published\nb: --model=b\n' >suite

run() { "$root/scripts/suite.sh" "$folder/suite" --program="$folder/new" "$@" 2>said; }
called() { wc -l <calls; }
files_in() { (cd "$1" && echo *); }

# It runs all lines once and then all lines again, collects a result for each run, and prints its progress.
run --out=plain --runs=2 || die "it failed: $(<said)"
[[ $(sed 's/.*--model=\(.\).*/\1/' calls | tr -d '\n') == abab ]] || die "not in rounds: $(<calls)"
[[ $(files_in plain/new) == 'a.1.json a.2.json b.1.json b.2.json' ]] || die "results: $(files_in plain/new)"
grep -q '^\[4/4\] b, run 2: 42.5 images/sec' said || die "no progress: $(<said)"
grep -q 'left$' said || die "no time left: $(<said)"
grep -q -- '--batch_size=2 --result_json' calls || die "a comment became a flag: $(<calls)"

# The same call has nothing to do. If a result is missing, only that run is repeated.
run --out=plain --runs=2
(($(called) == 4)) || die "it ran again: $(<calls)"
rm plain/new/a.2.json
run --out=plain --runs=2
(($(called) == 5)) || die "not just the missing one: $(<calls)"

# Results of another program or suite must not mix with existing ones.
echo '# changed' >>new
! run --out=plain || die "mixed two programs"
grep -q 'runs of another program' said || die "said: $(<said)"

# A failed run is reported with its output and leaves no result, and the others continue.
touch fail
! run --out=failing --runs=1 || die "a failure passed"
for words in 'b, run 1: FAILED' 'no room' '1 of 2 runs failed'; do
  grep -q "$words" said || die "no '$words': $(<said)"
done
[[ $(files_in failing/new) == a.1.json ]] || die "left: $(files_in failing/new)"
rm fail
run --out=failing --runs=1 || die "it did not go on: $(<said)"

# With a base, both programs run, with one file of time slices per pair; a base without time slices alternates by runs.
: >calls
run --out=pairs --runs=2 --only=a --base="$folder/base" || die "pairs failed: $(<said)"
for side in base new; do
  [[ $(files_in pairs/$side) == 'a.1.json a.2.json' ]] || die "results: $(files_in pairs/$side)"
done
[[ $(grep -o 'take_turns=[^ ]*' calls | sort | uniq -c | awk '{print $1}' | tr '\n' ' ') == '2 2 ' ]] || die "turns: $(<calls)"
: >calls
run --out=aged --runs=2 --only=a --base="$folder/old"
[[ $(awk '{print $1}' calls | tr '\n' ' ') == 'old new new old ' ]] ||
  die "no alternation: $(<calls)"
grep -q 'does not know --take_turns' said || die "said: $(<said)"

# A line with lists makes one configuration of each combination; flags that take lists themselves keep their commas.
printf 'net: --model=a,b --batch_size=2,4 --emulate_link_gbps=0.5,0.5   # swept\nplain: --model=c\n' >suite
listed=$(run --list)
[[ $listed == 'net.model-a.batch_size-2: --model=a --batch_size=2 --emulate_link_gbps=0.5,0.5
net.model-a.batch_size-4: --model=a --batch_size=4 --emulate_link_gbps=0.5,0.5
net.model-b.batch_size-2: --model=b --batch_size=2 --emulate_link_gbps=0.5,0.5
net.model-b.batch_size-4: --model=b --batch_size=4 --emulate_link_gbps=0.5,0.5
plain: --model=c' ]] || die "listed: $listed"
: >calls
run --out=swept --runs=1 || die "a sweep failed: $(<said)"
(($(called) == 5)) || die "ran: $(<calls)"
[[ $(files_in swept/new) == 'net.model-a.batch_size-2.1.json net.model-a.batch_size-4.1.json net.model-b.batch_size-2.1.json net.model-b.batch_size-4.1.json plain.1.json' ]] ||
  die "results: $(files_in swept/new)"
grep -q -- '--model=b --batch_size=4 --emulate_link_gbps=0.5,0.5 --result_json' calls || die "flags: $(<calls)"
[[ $(run --list --only=net.model-b.batch_size-4,plain | cut -d: -f1 | tr '\n' ' ') == 'net.model-b.batch_size-4 plain ' ]] ||
  die "--only of single ones: $(run --list --only=net.model-b.batch_size-4,plain)"
[[ $(run --list --only=net | wc -l) == 4 ]] || die "--only of a line with lists: $(run --list --only=net)"
printf 'net: --batch_size=2,,4\n' >suite
! run --list || die "took an empty value"
grep -q 'an empty value' said || die "said: $(<said)"
printf 'a: --model=a\nb: --model=b\n' >suite

# Messages must name the error.
for wrong in '--runs=0:wants a number' '--nonsense:no option' '--only=z:no line to run' '--base=/no/program:no program'; do
  ! run --out=wrong "${wrong%%:*}" || die "took ${wrong%%:*}"
  grep -q "${wrong#*:}" said || die "${wrong%%:*} said: $(<said)"
done
printf 'a --model=a\n' >suite
! run --out=wrong || die "took a line without a name"
grep -q 'line 1: wants' said || die "said: $(<said)"

# No part of a hostile suite may be executed. The program must get its words unchanged, and a refusal must be one line
# of bounded length.
refused() {  # WORDS OF THE MESSAGE: the suite that was written is refused with these
  : >calls
  ! run --out="refused" --runs=1 || die "took a suite of which it should say '$1'"
  [[ $(wc -l <said) == 1 && $(wc -c <said) -lt 500 ]] || die "one short line was to come: $(head -c 2000 said)"
  grep -q -- "$1" said || die "no '$1': $(<said)"
  ! grep -q '[^[:print:]]' said || die "control characters: $(cat -v said)"
  (($(called) == 0)) || die "ran: $(<calls)"
}
cat >suite <<SUITE
dollar: --model=\$(touch $folder/executed) --a=\${HOME} --b=\$HOME
backtick: --model=\`touch $folder/executed\` --c=*
quotes: --model="a b" --d='x' ; touch $folder/executed
pipes: --model=a|tee $folder/executed && touch $folder/executed > $folder/executed
index: --model=a[\$(touch $folder/executed)] --no_such_flag --1=2
SUITE
: >calls
run --out=hostile --runs=1 || die "the words of a suite were not handed on: $(<said)"
[[ ! -e executed ]] || die "a suite was executed: $(<calls)"
cut -d' ' -f2- calls | sed 's/ --result_json=.*//' >handed
sed 's/^[a-z]*: //' suite | cmp -s - handed || die "handed on: $(<handed)"
# shellcheck disable=SC2016 # nothing is to be expanded
for name in '$(touch executed)' '`touch executed`' '../up' 'a/b' 'a b' '"a"' "a'b" 'a[$(touch executed)]'; do
  printf '%s: --model=a\n' "$name" >suite
  refused 'line 1: wants'
  [[ ! -e executed ]] || die "a name was executed: $name"
done
printf 'a: --model=a\na: --mo\0del=b\n' >suite
refused 'line 2: has a zero byte'
printf '\033]0;title\007\033[2J --model=a\n' >suite
refused 'line 1: wants'
head -c 3000000 /dev/urandom >suite
refused 'has 3000000 bytes'
head -c 500000 /dev/zero | tr '\0' x >suite
refused 'line 1: has 500000 letters'
head -c 10000 /dev/urandom | LC_ALL=C tr -d '\0\n#' >suite
refused 'line 1: wants'
{ printf 'a:'; printf ' --x=%d' {1..2000}; } >suite
refused 'line 1: has 2000 words'
{ printf 'a:'; printf ' --x%d=1,2,3,4' {1..30}; } >suite
refused 'more than'
{ head -c 300 /dev/zero | tr '\0' n; printf ': --model=a\n'; } >suite
refused 'has more than 200 letters'
printf 'a: --model=a\na: --model=b\n' >suite
refused "a second 'a'"
printf 'a: --model=a\r\n' >suite  # with the line ends of Windows editors
run --out=windows --runs=1 || die "a carriage return: $(<said)"
grep -q 'new --model=a --result_json' calls || die "ran: $(cat -v calls)"

# The suites in the repository must be readable.
for each in "$root"/scripts/suites/*; do
  "$root/scripts/suite.sh" "$(basename "$each")" --program="$folder/new" --out="all/$(basename "$each")" --runs=1 2>said || die "$each: $(<said)"
done
say "suites run, go on and are refused as they should be"
