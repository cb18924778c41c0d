#!/usr/bin/env bash
# Installs a build into a folder of its own, packs it, and checks that the installed programs run without the source
# tree.
#
#   tests/scripts/install.sh BUILD
set -euo pipefail

build=$(cd "$1" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() { echo "$*" && failed=1; }

# hidden COMMAND...: runs the command in a mount namespace in which empty folders hide the source tree and the build.
hidden() {
  # shellcheck disable=SC2016
  unshare --mount --map-root-user bash -c '
    mkdir -p "$0/empty" && mount --bind "$0/empty" "$1" && if [[ -d $2 ]]; then mount --bind "$0/empty" "$2"; fi
    cd / && shift 2 && "$@"' "$folder" "$root" "$build" "$@"
}
if [[ $folder == "$root"/* ]] || ! hidden true 2>/dev/null; then
  echo "skipped: the source tree cannot be hidden here (unshare --mount)" && exit 77
fi

DESTDIR=$folder cmake --install "$build" >"$folder/install.log" || { cat "$folder/install.log" && exit 1; }
prefix=$folder$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")
programs=(cnn_benchmarks cnn_compare all_reduce_benchmark make_records)
for file in "${programs[@]/#/bin/}" $(printf 'share/man/man1/%s.1 ' "${programs[@]}") \
  share/bash-completion/completions/cnn_benchmarks share/cnn_benchmarks/scripts/{suite.sh,suites/quick,machines/h200.json}; do
  [[ -s $prefix/$file ]] || fail "not installed: $file"
done
for module in cnn_gpu cnn_mpi; do
  [[ ! -f $build/$module.so ]] || [[ -f $(dirname "$(readlink -f "$prefix/bin/cnn_benchmarks")")/$module.so ]] || fail "not installed: $module.so"
done
if readelf -d "$prefix"/lib/cnn_benchmarks/* 2>/dev/null | grep "RUNPATH.*$root"; then
  fail "a program looks for libraries in the source tree"
fi

run() { hidden "$@" >"$folder/out" 2>&1 || { cat "$folder/out" && fail "failed: $*"; }; }
run "$prefix/bin/cnn_benchmarks" --device=cpu --model=trivial --batch_size=2 --num_batches=2 --num_warmup_batches=1 \
  --nomeasure_ceilings --result_json="$folder/result.json"
grep -q "^total images/sec: " "$folder/out" || fail "no speed was printed"
run "$prefix/bin/cnn_benchmarks" --simulate=h200 --model=resnet50 --use_fp16
run "$prefix/bin/cnn_compare" --help
run "$prefix/bin/all_reduce_benchmark" -b 4K -e 4K --num_gpus=2
run "$prefix/bin/make_records" --help
run bash "$prefix/share/cnn_benchmarks/scripts/suite.sh" quick --list
run bash -c "source $prefix/share/bash-completion/completions/cnn_benchmarks && complete -p cnn_benchmarks"
if command -v groff >/dev/null; then
  for page in "$prefix"/share/man/man1/*.1; do
    [[ -z $(groff -man -ww -z -Tutf8 "$page" 2>&1) ]] || fail "groff complains about $page"
  done
fi

(cd "$folder" && cpack --config "$build/CPackConfig.cmake" -G TGZ -B "$folder/packages" >pack.log 2>&1) || fail "$(cat "$folder/pack.log")"
tar tf "$folder"/packages/*.tar.gz | grep "bin/cnn_benchmarks$" >/dev/null || fail "the archive has no program"
if command -v dpkg-shlibdeps >/dev/null; then
  (cd "$folder" && cpack --config "$build/CPackConfig.cmake" -G DEB -B "$folder/packages" >pack.log 2>&1) || fail "$(cat "$folder/pack.log")"
  dpkg-deb -c "$folder"/packages/*.deb | grep "./usr/bin/cnn_benchmarks -> " >/dev/null || fail "the Debian package has no program"
  dpkg-deb -f "$folder"/packages/*.deb Depends | grep libc6 >/dev/null || fail "the Debian package needs no libraries"
fi
exit "$failed"
