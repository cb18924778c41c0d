#!/usr/bin/env bash
# Tests scripts/gpu_check with fakes of the programs that it runs: rows, resuming, failures, budgets and the summary.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/gpu_check_cases.py"
