#!/usr/bin/env bash
# cut_link.sh PROGRAM [HOSTS]: trains with two ranks on each of two or more emulated hosts, which are network
# namespaces, until the last host's link drops all frames. The ranks on each side must name a rank on the other side and
# end with 75, and no process may remain.
set -uo pipefail
skip() {
  echo "skipped: $*"
  exit 77
}
fail() {
  echo "$*"
  tail -n 5 "$scratch"/*.err "$scratch"/mpirun
  exit 1
}
[[ -e $(dirname "$1")/cnn_mpi.so ]] || skip "the program was built without MPI"
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/virtual_hosts.sh"
scratch=$(mktemp -d)
count=${2:-2}
last=$((count - 1))  # the host that is cut off
mpirun_pid=

clean_up() {
  [[ -z $mpirun_pid ]] || kill -KILL "$mpirun_pid" 2>/dev/null
  remove_hosts
  rm -rf "$scratch"
}
trap clean_up EXIT

# Returns whether the command succeeds within a minute.
soon() {
  local waited
  for ((waited = 0; waited < 600; ++waited)); do
    "$@" && return
    sleep 0.1
  done
  return 1
}

make_hosts "$count" "$scratch" >"$scratch/why" || skip "$(<"$scratch/why")"

# Every rank leaves its output and its status in files.
cat >"$scratch/rank" <<'RANK'
#!/bin/sh
trap : TERM
mine=$(dirname "$0")/$OMPI_COMM_WORLD_RANK
"$@" >"$mine.out" 2>"$mine.err"
echo $? >"$mine.part"
mv "$mine.part" "$mine.status"
RANK
chmod +x "$scratch/rank"

export TMPDIR=$scratch OMP_WAIT_POLICY=passive
run_on_hosts 2 --mca odls_base_sigkill_timeout 2 "$scratch/rank" "$1" --device=cpu --model=trivial --batch_size=2 \
  --num_batches=100000000 --display_every=1 --variable_update=horovod --nomeasure_ceilings --comm_calibrate=off \
  --comm_peer_timeout_s=2 >"$scratch/mpirun" 2>&1 </dev/null &
mpirun_pid=$!

trains() { grep -q '^5\s*images/sec' "$scratch/0.out" 2>/dev/null; }
all_have_left() { [[ $(find "$scratch" -name '?.status' | wc -l) == $((2 * count)) ]]; }
who_is_there() { for host in "${hosts[@]}"; do ip netns pids "$host"; done; }
nobody_is_there() { [[ -z $(who_is_there) ]]; }

soon trains || fail "the ranks do not train"
ip -n "$switch" link set "port$last" nomaster  # drops all frames, but no end loses its carrier
soon all_have_left || fail "not all ranks have left"
ip -n "$switch" link set "port$last" master br0  # so that mpirun can end its processes
soon nobody_is_there || fail "processes are left: $(who_is_there)"
mpirun_pid=

cut_off="[$((2 * last))$((2 * last + 1))]"
for ((rank = 0; rank < 2 * count; ++rank)); do
  [[ $(<"$scratch/$rank.status") == 75 ]] || fail "rank $rank has left with $(<"$scratch/$rank.status")"
  others=$cut_off
  ((rank < 2 * last)) || others="[0-$((2 * last - 1))]"
  grep -q "rank $others is lost: " "$scratch/$rank.err" || fail "rank $rank does not name the other side"
done
left=$(find /dev/shm "$scratch" -name "vader_segment.cnn$$*" 2>/dev/null)
[[ -z $left ]] || fail "segments are left: $left"
