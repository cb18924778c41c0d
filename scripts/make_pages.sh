#!/usr/bin/env bash
# Writes what is installed beside the programs: their manual pages and the completion for bash, all made from the help
# that the programs print.
#
#   scripts/make_pages.sh PROGRAMS OUT     PROGRAMS: the folder of the programs; OUT: a folder laid out as share
set -euo pipefail

[[ $# == 2 ]] || { echo "make_pages.sh: which programs, and where to? scripts/make_pages.sh PROGRAMS OUT" >&2 && exit 1; }
programs=$1 out=$2
mkdir -p "$out/man/man1" "$out/bash-completion/completions"

# printed PROGRAM FLAG...: its output; the help of programs with absl's flags ends with exit code 1.
printed() { "$programs/$1" "${@:2}" || (($? == 1)); }

# page NAME SUMMARY: a manual page that shows the help on stdin as it is.
page() {
  printf '.TH %s 1\n.ad l\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n' "${1^^}" "$1" "$2"
  sed "s/\\\\/\\\\e/g; s/-/\\\\-/g; s/^[.']/\\\\\\&&/"
  printf '.fi\n.SH SEE ALSO\n\\fBcnn_benchmarks\\fR(1)\n'
}

printed cnn_benchmarks --help_format=man >"$out/man/man1/cnn_benchmarks.1"
printed cnn_benchmarks --help_format=bash >"$out/bash-completion/completions/cnn_benchmarks"
printed cnn_compare --help | page cnn_compare "compare the speed of runs of cnn_benchmarks" >"$out/man/man1/cnn_compare.1"
# Its own options come first; those of cnn_benchmarks have their own page.
printed all_reduce_benchmark --help | sed '/^cnn_benchmarks:/,$d' |
  page all_reduce_benchmark "time the exchange of gradients" >"$out/man/man1/all_reduce_benchmark.1"
printed make_records --help | page make_records "write a folder of images as TFRecord shards" >"$out/man/man1/make_records.1"
