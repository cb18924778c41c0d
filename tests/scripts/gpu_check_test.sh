#!/usr/bin/env bash
# scripts/gpu_check: rows, resuming, failures, budgets and the summary, with stand-ins for what it runs.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/gpu_check_cases.py"
