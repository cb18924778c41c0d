#!/usr/bin/env bash
# Prints the Debian packages, one a line, whose shared libraries the installed programs and modules load. For the second
# stage of the Containerfile, which has nothing but them.
#
#   scripts/cluster/runtime_packages.sh PREFIX     PREFIX: of cmake --install
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

[[ $# == 1 && -d $1/lib ]] || die "takes one argument, a folder that cmake --install has filled"
mapfile -t files < <(find "$1/lib" -type f \( -name '*.so*' -o -perm -u+x \))
((${#files[@]} > 0)) || die "$1/lib has no programs"
# A package knows its files by the name in /lib, or by that in /usr/lib, or behind links. The driver's libraries are the
# host's.
ldd "${files[@]}" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u | while read -r library; do
  real=$(realpath "$library")
  [[ $real != "$(realpath "$1")"/* && $library != */libcuda.so* ]] || continue
  owner=$({ dpkg-query -S "${library#/usr}" "/usr${library#/usr}" "$real" 2>/dev/null || true; } | head -n 1)
  if [[ -n $owner ]]; then
    echo "${owner%%:*}"
  else
    say "$library belongs to no package: the image must have it already"
  fi
done | sort -u
