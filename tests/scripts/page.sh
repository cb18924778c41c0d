#!/usr/bin/env bash
# Opens the pages of a run and of a comparison in a headless Chromium: light and dark, wide and as narrow as a phone.
# The console must stay empty and every chart must be drawn. Skips if there is no Chromium.
#
#   tests/scripts/page.sh CNN_BENCHMARKS CNN_COMPARE [FOLDER]     FOLDER: where screenshots stay
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

browser=''
for name in chromium chromium-browser chromium-headless-shell google-chrome; do
  browser=$(command -v "$name") && break
done
[[ -n $browser ]] || skip "pages are not looked at: there is no Chromium"
program=$1 compare=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
shots=${3:-$folder}
mkdir -p "$shots"

run() {
  "$program" --device=cpu --model=lenet --data_name=mnist --batch_size=8 --num_warmup_batches=2 --num_batches=15 "$@" \
    >"$folder/out" 2>&1 || die "$* failed: $(<"$folder/out")"
}
for side in base new; do
  for number in 1 2 3; do
    run --result_json="$folder/$side.$number.json" --html_report="$folder/run.html"
  done
done
status=0
"$compare" "$folder"/base.*.json -- "$folder"/new.*.json --html="$folder/compare.html" >/dev/null || status=$?
((status < 3)) || die "cnn_compare failed"

# browse PAGE WIDTH [OPTION...]: prints the browser's console output and the page as the browser built it.
browse() {
  local page=$1 width=$2
  shift 2
  timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$folder/profile" --hide-scrollbars \
    --enable-logging=stderr --v=0 --window-size="$width,2400" "$@" "file://$page" 2>"$folder/console"
  ! grep -a 'CONSOLE' "$folder/console" >&2 || die "$page: the browser complains"
}

for page in run compare; do
  for scheme in light dark; do
    for width in 1200 390; do
      dark=()
      [[ $scheme == light ]] || dark=(--force-dark-mode --enable-features=WebUIDarkMode --blink-settings=preferredColorScheme=0)
      browse "$folder/$page.html" "$width" "${dark[@]}" --screenshot="$shots/$page.$scheme.$width.png" >/dev/null
      [[ -s $shots/$page.$scheme.$width.png ]] || die "$page, $scheme, $width: no picture"
    done
  done
  browse "$folder/$page.html" 390 --dump-dom >"$folder/dom"
  python3 - "$folder/dom" "$page" <<'PYTHON'
import re, sys
dom, page = open(sys.argv[1], encoding="utf-8").read(), sys.argv[2]
figures = [figure for figure in re.findall(r"<figure.*?</figure>", dom, re.S) if "<svg" in figure]
charts = [re.search(r"<figcaption>([^<]*)", figure)[1] for figure in figures]
wanted = {"run": ["Step times", "Total loss", "Lanes of a step", "Memory over the step", "How near the bounds"],
          "compare": ["Change of the step time", "Speed of each run", "Step times", "Total loss", "Lanes of a step"]}[page]
missing = [name for name in wanted if not any(chart.startswith(name) for chart in charts)]
assert not missing, f"{page}: no chart {missing} among {charts}"
empty = [svg for svg in re.findall(r"<svg.*?</svg>", dom, re.S) if not re.search(r'class="(line|area|dot|bar)', svg)]
assert not empty, f"{page}: {len(empty)} charts without a mark"
PYTHON
done
cmp -s "$shots/run.light.1200.png" "$shots/run.dark.1200.png" && die "dark looks like light"
say "both pages are drawn, light and dark, wide and narrow"
