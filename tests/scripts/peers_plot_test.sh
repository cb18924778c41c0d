#!/usr/bin/env bash
# Checks that the chart of peers has a bar for each program and network, and refuses other files by one line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

fail() {
  echo "$1"
  exit 1
}

# measured PROGRAM MEDIAN...: prints what peers.sh --json would write about a network, with each program's images per
# second.
measured() {
  python3 - "$@" <<'END'
import json, sys
programs = {name: {"median": float(value), "version": "1.2+cpu"} for name, value in zip(sys.argv[1::2], sys.argv[2::2])}
print(json.dumps({"machine": {"name": "a CPU"}, "threads": 2, "precision": "fp32", "mode": "training", "rounds": 3,
                  "batches": {"lenet": 8}, "models": {"lenet": programs}}))
END
}

measured "this program" 300 PyTorch 100 tf_cnn_benchmarks 150 >"$folder/peers.json"
python3 scripts/plots/peers.py "$folder/peers.json" --out="$folder"
python3 - "$folder"/speed_beside_peers_{light,dark}.svg <<'END'
import sys
import xml.etree.ElementTree as tree
for path in sys.argv[1:]:
    root = tree.parse(path).getroot()
    svg = "{http://www.w3.org/2000/svg}"
    words = [element.text for element in root.iter(svg + "text")]
    for word in ("300.0", "100.0", "150.0", "PyTorch 1.2", "TensorFlow 1.2", "this program", "lenet, 8"):
        assert word in words, (path, word, words)
    heights = [float(element.get("height")) for element in root.iter(svg + "rect") if element.get("height") != "12"][1:]
    # In the order of the programs: three times, once and one and a half times the slowest one's speed.
    assert abs(heights[0] / heights[1] - 3) < 0.01 and abs(heights[2] / heights[1] - 1.5) < 0.01, heights
END

measured "this program" 300 >"$folder/alone.json"
echo '{"rows": []}' >"$folder/other.json"
for name in alone other gone; do
  if said=$(python3 scripts/plots/peers.py "$folder/$name.json" --out="$folder" 2>&1); then
    fail "$name.json was drawn"
  fi
  [[ $said == "peers.py: "* && $said != *$'\n'* ]] || fail "unclear: $said"
done
