#!/usr/bin/env bash
# Checks that linters that are missing, or of another version than 14, are skipped by name with exit code 77.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

fake=$(mktemp -d)
trap 'rm -rf "$fake"' EXIT
for tool in clang-format clang-format-14 clang-tidy clang-tidy-14; do
  printf '#!/bin/sh\necho "LLVM version 19.1.0"\n' >"$fake/$tool"
  chmod +x "$fake/$tool"
done

expect_skip() {
  local said code=0
  said=$(PATH=$fake:$PATH "$@" 2>&1) || code=$?
  ((code == 77)) || { echo "$*: exit code $code, not 77: $said"; exit 1; }
  [[ $said == *"skipped: "*"version 14"* ]] || { echo "$*: unclear: $said"; exit 1; }
}
expect_skip scripts/format.sh --check
expect_skip scripts/tidy.sh
