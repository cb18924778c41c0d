#!/usr/bin/env bash
# Tests cnn_compare as a CI job uses it: exit codes, outputs, and one clear line for every file that is not a result.
#
#   tests/scripts/compare.sh PROGRAM
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# results PREFIX COUNT SECONDS SCATTER: writes result files of runs with such steps.
results() {
  python3 - "$@" <<'PYTHON'
import json, random, sys
prefix, count, seconds, scatter = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
draw = random.Random(prefix)
for i in range(count):
    speed = seconds * (1 + draw.gauss(0, scatter))
    steps = [{"step": n + 1, "seconds": t, "images_per_sec": 16 / t, "total_loss": 7.5, "disturbed": False}
             for n in range(20) for t in [speed * (1 + draw.gauss(0, 0.003))]]
    json.dump({"program": "cnn_benchmarks", "format": 2, "started": f"{prefix}.{i}", "config": {"precision": "fp32"},
               "machine": {"cpu": {"name": "X", "cores_used": 2}, "gpu": None, "libraries": {}}, "model": {"name": "lenet"},
               "plan": {"precision": "f32"}, "steps": steps, "summary": None}, open(f"{prefix}.{i}.json", "w"))
PYTHON
}

# expect STATUS TEXT ARGUMENT...: checks the program's exit status and that its output contains the text.
expect() {
  local status=0 wanted=$1 text=$2
  shift 2
  "$program" "$@" >out 2>err || status=$?
  ((status == wanted)) || die "$*: exit code $status, not $wanted: $(cat out err)"
  grep -q -- "$text" out err || die "$*: nothing says '$text': $(cat out err)"
  ((wanted != 3)) || (($(wc -l <err) == 1)) || die "$*: more than one line: $(cat err)"
}

results base 5 0.1 0.004
results again 5 0.1 0.004
results slow 5 0.104 0.004
results noisy 5 0.1 0.2
expect 0 'no regression' base.*.json -- again.*.json
expect 0 '^cnn_compare [0-9][0-9.]*$' --version
expect 0 '^commit: ' --version base.0.json
expect 0 '^  --version ' --help
expect 1 'a step takes' base.*.json -- slow.*.json
expect 0 'improvement' slow.*.json -- base.*.json
expect 2 'more runs a side' base.*.json -- noisy.*.json
expect 2 'about 4 more' base.0.json -- again.0.json
expect 0 'no regression' --minimum_effect=10 base.*.json -- slow.*.json --resolution=12
expect 0 'no regression' --minimum_effect=10 base.*.json -- slow.*.json
expect 1 '"exit_code": 1' base.*.json --json -- slow.*.json
expect 1 'regression\*\*' base.*.json -- slow.*.json --markdown
expect 1 'verdict' base.*.json -- slow.*.json --html page.html --json=c.json --markdown=c.md
python3 - <<'PYTHON'
import html.parser, json, re, xml.etree.ElementTree
assert json.load(open("c.json"))["configurations"][0]["verdict"] == "regression"
assert open("c.md").read().startswith("| configuration |")
page = open("page.html").read()
html.parser.HTMLParser().feed(page)
drawings = re.findall(r"<svg.*?</svg>", page, re.S)
assert len(drawings) >= 3, len(drawings)
for drawing in drawings:
    xml.etree.ElementTree.fromstring(drawing)
PYTHON

head -c 700 base.0.json >cut.json
echo 'images/sec: 12' >text.json
echo '{"program": "cnn_benchmarks", "format": 9}' >newer.json
expect 3 'cut.json: cut off' cut.json -- base.1.json
expect 3 'text.json: not JSON' text.json -- base.1.json
expect 3 'newer.json: a result of form 9' newer.json -- base.1.json
expect 3 'gone.json: no such file' gone.json -- base.1.json
expect 3 ': a folder' . -- base.1.json
expect 3 'is named twice' base.0.json base.0.json -- again.0.json
expect 3 'which are the new runs' base.0.json
expect 3 'no option --nonsense' --nonsense base.0.json -- again.0.json
sed 's/lenet/vgg16/' again.0.json >other.json
expect 3 'differ in model (lenet and vgg16)' base.0.json -- other.json
expect 3 'cannot be written' base.0.json -- again.0.json --html=/no/such/folder/page.html
cp again.0.json kept.json
expect 3 'would replace the file of again.0.json' base.0.json -- again.0.json --html=./again.0.json
cmp again.0.json kept.json || die "a refused report replaced its input"
expect 3 '--json=o and --html=./o name the same file' base.0.json -- again.0.json --json=o --html=./o
[[ ! -e o ]] || die "a refused report was written"
status=0
"$program" base.0.json -- again.0.json 2>err >/dev/full || status=$?
((status == 3)) || die "a full disk: $status: $(cat err)"
grep -q 'stdout: cannot be written: No space left on device' err || die "a full disk: $(cat err)"
say "cnn_compare: exit codes, outputs and refusals are as they should be"

# These test histories and the formats of trend services.
expect 0 '"throughput"' --export=bencher base.*.json
expect 0 'images/sec' --export=github-action-benchmark base.*.json
expect 0 '"unit": "seconds"' --export=github-action-benchmark --measure=step_seconds base.*.json
expect 0 'benchmark,started,commit' --export=csv base.*.json
expect 3 'there are bencher, github-action-benchmark, csv' --export=xml base.*.json
expect 3 'takes result files of one side' --export=csv base.0.json -- base.1.json
python3 - <<'PYTHON' >history
import json, random
draw = random.Random(1)
for i in range(30):
    seconds = 0.1 * (1 + 0.01 * draw.gauss(0, 1)) * (1 if i < 15 else 1.06)
    print(json.dumps({"program": "cnn_benchmarks", "history": 1, "commit": f"commit{i}", "started": f"{i:02}", "config": {},
                      "machine": {"cpu": {"name": "X"}}, "model": {"name": "lenet"}, "plan": {"precision": "f32"},
                      "images_per_step": 16.0, "step_seconds": seconds, "disturbed": False}))
PYTHON
expect 1 'commit commit15) a step takes' --history=history --html=history.html
grep -q 'commit15' history.html || die "the page does not name the commit"
head -n 15 history >steady
expect 0 'no change of 0.5 % or more' --history=steady
head -n 4 history >short
expect 2 'too short: 6 more runs, 10 in all' --history=short
{ cat steady; echo '{"program": '; } >broken
expect 0 'broken:16: cut off' --history=broken
expect 3 'no such file' --history=none
