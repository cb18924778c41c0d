#!/usr/bin/env bash
# stopped_rank.sh PROGRAM: stops one of three ranks when it enters a collective of MPI. The others must name it and end
# with 75.
set -uo pipefail
for tool in mpirun mpicc; do
  command -v $tool >/dev/null || {
    echo "skipped: there is no $tool; scripts/setup.sh installs it"
    exit 77
  }
done
here=$(dirname "${BASH_SOURCE[0]}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# This library is preloaded into the ranks: rank $STOP_RANK stops itself when it enters the call $STOP_IN.
cat >"$folder/stop_in_call.c" <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void stop_in(const char* call) {
  const char* wanted = getenv("STOP_IN");
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  const char* stopped = getenv("STOP_RANK");
  if (wanted && rank && stopped && strcmp(wanted, call) == 0 && strcmp(rank, stopped) == 0) {
    raise(SIGSTOP);
  }
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  stop_in("MPI_Init");
  return PMPI_Init_thread(argc, argv, required, provided);
}

int MPI_Comm_dup(MPI_Comm from, MPI_Comm* to) {
  stop_in("MPI_Comm_dup");
  return PMPI_Comm_dup(from, to);
}

int MPI_Comm_idup(MPI_Comm from, MPI_Comm* to, MPI_Request* request) {
  stop_in("MPI_Comm_idup");
  return PMPI_Comm_idup(from, to, request);
}

int MPI_Finalize(void) {
  stop_in("MPI_Finalize");
  return PMPI_Finalize();
}
C
mpicc -shared -fPIC -o "$folder/stop_in_call.so" "$folder/stop_in_call.c" || exit 1
failed=0

# expect CALL RANK TEXT: checks that another rank prints the text if rank RANK stops in the call.
expect() {
  local said status
  said=$(timeout -s KILL 120 bash "$here/as_ranks.sh" 3 env LD_PRELOAD="$folder/stop_in_call.so" STOP_IN="$1" STOP_RANK="$2" \
    "$program" --device=cpu --variable_update=horovod --model=lenet --data_name=mnist --batch_size=2 --num_batches=1 \
    --num_warmup_batches=0 --comm_start_timeout_s=3 --comm_peer_timeout_s=3 --comm_transport=mpi 2>&1)
  status=$?
  if [ "$status" != 75 ] || ! grep -qE "$3" <<<"$said"; then
    echo "rank $2 stopped in $1: status $status, which should be 75, and no line like '$3' in: $said"
    failed=1
  fi
}
program=$1
expect MPI_Init 1 'MPI_Init has waited .*--comm_start_timeout_s=3.*: rank 1 is stopped \(process [0-9]+\), rank [02] waits too'
expect MPI_Init 0 'MPI_Init has waited .*: rank 0 is stopped'
expect MPI_Comm_dup 2 'MPI_Comm_dup has waited .*: rank 2 is stopped'
expect MPI_Comm_idup 1 'rank 1 is lost: process [0-9]+ has been stopped'
expect MPI_Finalize 1 'MPI_Finalize has waited .*: rank 1 is stopped'
exit $failed
