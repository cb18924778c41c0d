#!/usr/bin/env bash
# as_ranks.sh N COMMAND...: runs the command as N processes of mpirun on this machine, with any number of cores and as
# any user.
set -euo pipefail
command -v mpirun >/dev/null || {
  echo "skipped: there is no mpirun; scripts/setup.sh installs it"
  exit 77
}
ranks=$1
shift
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np "$ranks" "$@"
