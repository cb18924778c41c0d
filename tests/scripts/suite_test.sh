#!/usr/bin/env bash
# scripts/suite.sh with programs that only pretend: what runs when, what is collected, how it goes on after a stop.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# A program that notes its flags, writes a result, and fails when a file says so.
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

# All lines once, then all once more; as many results; progress says how far it is.
run --out=plain --runs=2 || die "it failed: $(<said)"
[[ $(sed 's/.*--model=\(.\).*/\1/' calls | tr -d '\n') == abab ]] || die "not in rounds: $(<calls)"
[[ $(files_in plain/new) == 'a.1.json a.2.json b.1.json b.2.json' ]] || die "results: $(files_in plain/new)"
grep -q '^\[4/4\] b, run 2: 42.5 images/sec' said || die "no progress: $(<said)"
grep -q 'left$' said || die "no time left: $(<said)"
grep -q -- '--batch_size=2 --result_json' calls || die "a comment became a flag: $(<calls)"

# The same call has nothing to do; a result that is missing is made again, and only that.
run --out=plain --runs=2
(($(called) == 4)) || die "it ran again: $(<calls)"
rm plain/new/a.2.json
run --out=plain --runs=2
(($(called) == 5)) || die "not just the missing one: $(<calls)"

# Another program or suite does not mix with what is there.
echo '# changed' >>new
! run --out=plain || die "mixed two programs"
grep -q 'runs of another program' said || die "said: $(<said)"

# A run that fails is told with what it said, leaves no result, and the others go on.
touch fail
! run --out=failing --runs=1 || die "a failure passed"
for words in 'b, run 1: FAILED' 'no room' '1 of 2 runs failed'; do
  grep -q "$words" said || die "no '$words': $(<said)"
done
[[ $(files_in failing/new) == a.1.json ]] || die "left: $(files_in failing/new)"
rm fail
run --out=failing --runs=1 || die "it did not go on: $(<said)"

# With a base both run, by one file of turns for each pair; an old base runs in alternation.
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

# A line with lists is one configuration of each combination; flags that take lists themselves keep theirs.
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

# Messages name what is wrong.
for wrong in '--runs=0:wants a number' '--nonsense:no option' '--only=z:no line to run' '--base=/no/program:no program'; do
  ! run --out=wrong "${wrong%%:*}" || die "took ${wrong%%:*}"
  grep -q "${wrong#*:}" said || die "${wrong%%:*} said: $(<said)"
done
printf 'a --model=a\n' >suite
! run --out=wrong || die "took a line without a name"
grep -q 'line 1: wants' said || die "said: $(<said)"

# The suites that come with it can be read.
for each in "$root"/scripts/suites/*; do
  "$root/scripts/suite.sh" "$(basename "$each")" --program="$folder/new" --out="all/$(basename "$each")" --runs=1 2>said || die "$each: $(<said)"
done
say "suites run, go on and are refused as they should be"
