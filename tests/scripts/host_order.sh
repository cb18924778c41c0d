#!/usr/bin/env bash
# host_order.sh PROGRAM: runs all_reduce_benchmark on two emulated hosts of two ranks, which are network namespaces.
# Round-robin placement (--map-by node) must send no more between the hosts than placement host by host.
set -uo pipefail
skip() {
  echo "skipped: $*"
  exit 77
}
fail() {
  echo "$*"
  tail -n 5 "$scratch"/out.*
  exit 1
}
[[ -e $(dirname "$1")/cnn_mpi.so ]] || skip "the program was built without MPI"
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/virtual_hosts.sh"
scratch=$(mktemp -d)
trap 'remove_hosts; rm -rf "$scratch"' EXIT
make_hosts 2 "$scratch" >"$scratch/why" || skip "$(<"$scratch/why")"

# Prints how many bytes the first host has sent since it was made.
sent_bytes() { ip netns exec "${hosts[0]}" cat /sys/class/net/eth0/statistics/tx_bytes; }

# bytes_of BY: prints the bytes that the first host sends in a run with placement by slot or by node.
bytes_of() {
  local before
  before=$(sent_bytes)
  TMPDIR=$scratch run_on_hosts 2 --map-by "$1" "$program" --device=cpu --comm_calibrate=off \
    -b 4M -e 4M -n 10 -w 0 >"$scratch/out.$1" 2>&1 </dev/null || return 1
  echo $(($(sent_bytes) - before))
}

program=$1
slot=$(bytes_of slot) || fail "the run by slot has failed"
node=$(bytes_of node) || fail "the run by node has failed"
echo "the first host has sent $slot bytes with --map-by slot and $node with --map-by node"
((slot > 10 * (4 << 20))) || fail "what the first host sends was not counted"
((10 * node < 12 * slot)) || fail "ranks dealt to hosts one by one send more between them"
