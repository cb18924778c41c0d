#!/usr/bin/env bash
# Runs a program under mpirun on several hosts that this machine only plays: network namespaces with a cable each to one
# switch, whose speed can be set. For trying out a scaling test, and for testing the exchange, without a cluster.
#
#   scripts/virtual_hosts.sh [options] [-- mpirun option...] PROGRAM [flag...]
#     --hosts=N      (2)
#     --ranks=N      on each host (1)
#     --gbit=R,...   speed of the cables in Gbit/s, both ways; the last one counts for all further hosts; 0 or none: as
#                    fast as the machine can
#
# All hosts share this machine's processors, and are bound to none. Takes root, ip and tc (iproute2). Exit code: of
# mpirun; 77 where such hosts cannot be made.
#
# Sourced, it gives make_hosts, limit_cable, run_on_hosts and remove_hosts to other scripts.

# make_hosts COUNT FOLDER: `hosts` become their names, `switch` that of the namespace between; FOLDER will hold what
# mpirun takes for ssh. Says why and fails where they cannot be made.
make_hosts() {
  local i
  hosts=() switch=cnn$$s host_agent=$2/agent
  command -v mpirun >/dev/null || { echo "there is no mpirun; scripts/setup.sh installs it" && return 1; }
  command -v ip >/dev/null || { echo "there is no ip; apt-get install iproute2" && return 1; }
  ip netns add "$switch" 2>/dev/null || { echo "network namespaces are not permitted here" && return 1; }
  ip -n "$switch" link add br0 type bridge
  ip -n "$switch" link set br0 up
  for ((i = 0; i < $1; ++i)); do
    hosts+=("cnn$$h$i")
    ip netns add "${hosts[i]}"
    ip -n "${hosts[i]}" link set lo up
    ip link add eth0 netns "${hosts[i]}" type veth peer name "port$i" netns "$switch" ||
      { echo "no virtual cables here" && return 1; }
    ip -n "${hosts[i]}" addr add "10.77.86.$((i + 1))/24" dev eth0
    ip -n "${hosts[i]}" link set eth0 up
    ip -n "$switch" link set "port$i" master br0
    ip -n "$switch" link set "port$i" up
  done
  # shellcheck disable=SC2016  # for the shell that is started
  printf '%s\n' '#!/bin/sh' 'host=$1' 'shift' \
    'exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"' >"$host_agent"
  chmod +x "$host_agent"
}

# limit_cable INDEX GBIT: of the host's cable, by a token bucket at both ends, whose burst passes at full speed.
limit_cable() {
  local kbit end space device
  kbit=$(awk "BEGIN {print int($2 * 1e6)}")
  for end in "${hosts[$1]} eth0" "$switch port$1"; do
    read -r space device <<<"$end"
    tc -n "$space" qdisc add dev "$device" root tbf rate "${kbit}kbit" burst 128kb limit 32mb ||
      { echo "tc sets no speeds here" && return 1; }
  done
}

# run_on_hosts RANKS_PER_HOST [mpirun option...] PROGRAM [flag...]
run_on_hosts() {
  local ranks=$1 list
  shift
  list=$(printf "%s:$ranks," "${hosts[@]}")
  # shellcheck disable=SC2016  # for the shell that is started
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ip netns exec "${hosts[0]}" unshare --uts \
    sh -c 'hostname "$0"; exec "$@"' "${hosts[0]}" mpirun \
    --mca plm_rsh_agent "$host_agent" --mca plm_rsh_no_tree_spawn 1 -H "${list%,}" --oversubscribe --bind-to none \
    --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl self,vader,tcp --mca btl_tcp_if_include 10.77.86.0/24 \
    --mca oob_tcp_if_include 10.77.86.0/24 -np "$((ranks * ${#hosts[@]}))" "$@"
}

remove_hosts() {
  local host
  for host in "${hosts[@]}" "$switch"; do
    # shellcheck disable=SC2046
    kill -KILL $(ip netns pids "$host" 2>/dev/null) 2>/dev/null
    ip netns del "$host" 2>/dev/null
  done
}

main() {
  local count=2 ranks=1 gbit=() i rate why
  while [[ ${1:-} == --* ]]; do
    case $1 in
      --hosts=*) count=${1#*=} ;;
      --ranks=*) ranks=${1#*=} ;;
      --gbit=*) IFS=, read -ra gbit <<<"${1#*=}" ;;
      --) shift && break ;;
      --help) sed -n '2,/^$/{s/^# \{0,1\}//;p}' "$0" && return ;;
      *) echo "no option $1; --help lists them" >&2 && return 1 ;;
    esac
    shift
  done
  [[ $count =~ ^[1-9][0-9]?$ && $ranks =~ ^[1-9][0-9]?$ ]] || { echo "--hosts and --ranks want 1 to 99" >&2 && return 1; }
  for rate in "${gbit[@]}"; do
    [[ $rate =~ ^[0-9]+(\.[0-9]+)?$ ]] || { echo "--gbit wants numbers, has '$rate'" >&2 && return 1; }
  done
  [[ $# -gt 0 ]] || { echo "which program? --help says more" >&2 && return 1; }
  scratch=$(mktemp -d)
  trap 'remove_hosts; rm -rf "$scratch"' EXIT
  why=$(mktemp -p "$scratch")
  make_hosts "$count" "$scratch" >"$why" || { cat "$why" >&2 && return 77; }
  for ((i = 0; i < count && ${#gbit[@]} > 0; ++i)); do
    rate=${gbit[i < ${#gbit[@]} ? i : ${#gbit[@]} - 1]}
    [[ $rate =~ ^0*(\.0*)?$ ]] || limit_cable "$i" "$rate" >"$why" || { cat "$why" >&2 && return 77; }
  done
  TMPDIR=$scratch run_on_hosts "$ranks" "$@"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -uo pipefail
  main "$@"
fi
