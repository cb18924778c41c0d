#!/usr/bin/env bash
# Checks that every script parses, and runs the linters that are installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

shopt -s nullglob
scripts=(scripts/*.sh scripts/*/*.sh scripts/cluster/*.sbatch tests/scripts/*.sh .ci/run)
for script in "${scripts[@]}"; do
  bash -n "$script"
done
for script in scripts/*.py scripts/*/*.py tests/scripts/*.py; do
  python3 -c 'import ast, sys; ast.parse(open(sys.argv[1], encoding="utf-8").read(), sys.argv[1])' "$script"
done
if command -v shellcheck >/dev/null; then
  shellcheck "${scripts[@]}"
else
  echo "shellcheck is not installed: syntax only"
fi
