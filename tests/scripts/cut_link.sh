#!/usr/bin/env bash
# cut_link.sh PROGRAM: four ranks on two hosts, network namespaces of this machine, train until the cable between them
# stays silent: the ranks of each side must name one of the other side and end with 75, and nothing may be left.
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
command -v mpirun >/dev/null || skip "there is no mpirun; scripts/setup.sh installs it"
command -v ip >/dev/null || skip "there is no ip; apt-get install iproute2"
[[ -e $(dirname "$1")/cnn_mpi.so ]] || skip "the program was built without MPI"
hosts=("cnn$$a" "cnn$$b")
switch=cnn$$s
ip netns add "$switch" 2>/dev/null || skip "network namespaces are not permitted here"
scratch=$(mktemp -d)
mpirun_pid=

clean_up() {
  local host
  [[ -z $mpirun_pid ]] || kill -KILL "$mpirun_pid" 2>/dev/null
  for host in "${hosts[@]}" "$switch"; do
    # shellcheck disable=SC2046
    kill -KILL $(ip netns pids "$host" 2>/dev/null) 2>/dev/null
    ip netns del "$host" 2>/dev/null
  done
  rm -rf "$scratch"
}
trap clean_up EXIT

# Whether the command succeeds within a minute.
soon() {
  local waited
  for ((waited = 0; waited < 600; ++waited)); do
    "$@" && return
    sleep 0.1
  done
  return 1
}

ip -n "$switch" link add br0 type bridge
ip -n "$switch" link set br0 up
for i in 0 1; do
  ip netns add "${hosts[i]}"
  ip -n "${hosts[i]}" link set lo up
  ip link add eth0 netns "${hosts[i]}" type veth peer name "port$i" netns "$switch" || skip "no virtual cables here"
  ip -n "${hosts[i]}" addr add "10.77.86.$((i + 1))/24" dev eth0
  ip -n "${hosts[i]}" link set eth0 up
  ip -n "$switch" link set "port$i" master br0
  ip -n "$switch" link set "port$i" up
done

# What mpirun takes for ssh: enters the host by its name. Every rank leaves its lines and its status in files.
cat >"$scratch/agent" <<'AGENT'
#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
AGENT
cat >"$scratch/rank" <<'RANK'
#!/bin/sh
trap : TERM
mine=$(dirname "$0")/$OMPI_COMM_WORLD_RANK
"$@" >"$mine.out" 2>"$mine.err"
echo $? >"$mine.part"
mv "$mine.part" "$mine.status"
RANK
chmod +x "$scratch"/{agent,rank}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$scratch OMP_WAIT_POLICY=passive
# shellcheck disable=SC2016  # for the shell that is started
ip netns exec "${hosts[0]}" unshare --uts \
  sh -c 'hostname "$0"; exec "$@"' "${hosts[0]}" mpirun \
  --mca plm_rsh_agent "$scratch/agent" --mca plm_rsh_no_tree_spawn 1 -H "${hosts[0]}:2,${hosts[1]}:2" --oversubscribe \
  --bind-to none --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl self,vader,tcp \
  --mca btl_tcp_if_include 10.77.86.0/24 --mca oob_tcp_if_include 10.77.86.0/24 --mca odls_base_sigkill_timeout 2 \
  -np 4 "$scratch/rank" "$1" --device=cpu --model=trivial --batch_size=2 --num_batches=100000000 --display_every=1 \
  --variable_update=horovod --nomeasure_ceilings --comm_calibrate=off --comm_peer_timeout_s=2 \
  >"$scratch/mpirun" 2>&1 </dev/null &
mpirun_pid=$!

trains() { grep -q '^5\s*images/sec' "$scratch/0.out" 2>/dev/null; }
all_have_left() { [[ $(find "$scratch" -name '?.status' | wc -l) == 4 ]]; }
nobody_is_there() { [[ -z $(ip netns pids "${hosts[0]}")$(ip netns pids "${hosts[1]}") ]]; }

soon trains || fail "the ranks do not train"
ip -n "$switch" link set port1 nomaster  # frames vanish; no end sees its carrier go
soon all_have_left || fail "not all ranks have left"
ip -n "$switch" link set port1 master br0  # so that mpirun can end what it has started
soon nobody_is_there || fail "processes are left: $(ip netns pids "${hosts[0]}") $(ip netns pids "${hosts[1]}")"
mpirun_pid=

for rank in 0 1 2 3; do
  [[ $(<"$scratch/$rank.status") == 75 ]] || fail "rank $rank has left with $(<"$scratch/$rank.status")"
  others='[23]'
  ((rank < 2)) || others='[01]'
  grep -q "rank $others is lost: " "$scratch/$rank.err" || fail "rank $rank does not name the other side"
done
left=$(find /dev/shm "$scratch" -name "vader_segment.cnn$$*" 2>/dev/null)
[[ -z $left ]] || fail "segments are left: $left"
