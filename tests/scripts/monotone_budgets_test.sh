#!/usr/bin/env bash
# Checks monotone_budgets.py by known results. That script finds budgets whose plans are slower than those of smaller
# budgets, or beat their bounds.
set -euo pipefail
cd "$(dirname "$0")/../.."
python3 tests/scripts/monotone_budgets.py --self-test
