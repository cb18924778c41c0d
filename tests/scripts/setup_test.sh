#!/usr/bin/env bash
# Checks that setup.sh prints nothing, changes nothing and is fast if everything is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if ! command -v dpkg-query >/dev/null || ! scripts/setup.sh --check 2>/dev/null; then
  echo "skipped: this machine was not set up by scripts/setup.sh"
  exit 77
fi
state() { find build/deps -printf '%p %T@ %s\n' | grep -v '^build/deps ' | sort | sha256sum; }

before=$(state)
started=$(date +%s%N)
said=$(scripts/setup.sh 2>&1)
elapsed_ms=$((($(date +%s%N) - started) / 1000000))
[[ -z $said ]] || { echo "it said: $said"; exit 1; }
[[ $(state) == "$before" ]] || { echo "it changed build/deps"; exit 1; }
# It takes 0.05 s; the limit allows for a machine that is busy with other tests.
((elapsed_ms < 3000)) || { echo "it took $elapsed_ms ms"; exit 1; }

if said=$(scripts/setup.sh --nonsense 2>&1); then
  echo "an unknown argument passed"
  exit 1
fi
[[ $said == *"unknown arguments: --nonsense"* ]] || { echo "unclear: $said"; exit 1; }
