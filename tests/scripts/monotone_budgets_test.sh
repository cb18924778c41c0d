#!/usr/bin/env bash
# The script that looks for budgets whose plans are slower than those of smaller ones, or beat their bounds, judges known results right.
set -euo pipefail
cd "$(dirname "$0")/../.."
python3 tests/scripts/monotone_budgets.py --self-test
