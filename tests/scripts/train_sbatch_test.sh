#!/usr/bin/env bash
# Checks that the batch script for Slurm starts a rank for each GPU, NUMA node or task, by srun or mpirun, with the
# caller's flags last. Fakes of srun, mpirun, lscpu and the program print their arguments.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
script=$PWD/scripts/cluster/train.sbatch
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

mkdir -p "$folder/bin" "$folder/submitted/build/cpu"
cat >"$folder/bin/srun" <<'FAKE'
#!/bin/bash
if [[ $* == --mpi=list ]]; then
  printf 'MPI plugin types are...\n\tnone\n\tpmi2\n%s' "${FAKE_PMIX-$'\tpmix\n'}" >&2
  exit
fi
printf 'srun'
printf ' <%s>' "$@"
exit 9
FAKE
cat >"$folder/bin/mpirun" <<'FAKE'
#!/bin/bash
printf 'mpirun'
printf ' <%s>' "$@"
FAKE
printf '#!/bin/bash\nprintf "# NUMA\\n0\\n1\\n0\\n1\\n\\n"\n' >"$folder/bin/lscpu"
printf '#!/bin/bash\n' >"$folder/submitted/build/cpu/cnn_benchmarks"
for tool in bash hostname sed sort wc grep; do  # nothing else, because cnn_benchmarks may be installed
  ln -s "$(command -v "$tool")" "$folder/bin/$tool"
done
chmod +x "$folder"/bin/{srun,mpirun,lscpu} "$folder/submitted/build/cpu/cnn_benchmarks"

fail() { echo "train_sbatch_test: $*" >&2; exit 1; }
# batch VARIABLE=VALUE... -- FLAG...: prints the script's output in a job with these variables.
batch() {
  local variables=()
  while [[ $1 != -- ]]; do
    variables+=("$1") && shift
  done
  shift
  env -i PATH="$folder/bin" SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 SLURM_CPUS_ON_NODE=16 \
    SLURM_SUBMIT_DIR="$folder/submitted" "${variables[@]}" bash "$script" "$@" 2>&1
}
# gives WANTED STATUS VARIABLE... -- FLAG...: checks the status, and that every word of WANTED, separated by |, occurs
# in order.
gives() {
  local wanted=$1 status=0 said part rest
  said=$(batch "${@:3}") || status=$?
  [[ $status == "$2" ]] || fail "ended with $status, not $2: $said"
  rest=$said
  while IFS= read -r -d '|' part; do
    [[ $rest == *"$part"* ]] || fail "no '$part' where it should be in: $said"
    rest=${rest#*"$part"}
  done <<<"$wanted|"
}

gives "4 ranks, 2 on each of 2 nodes|srun <--mpi=pmix>|<--ntasks=4>|<--ntasks-per-node=2>|<--cpus-per-task=8>|/build/cpu/cnn_benchmarks>|<--variable_update=horovod>|cnn_benchmarks-7.json>|<--model=vgg11>|<--result_json=x y>" 9 \
  -- --model=vgg11 --result_json="x y"
gives "<--ntasks=16>|<--ntasks-per-node=8>|<--gpu-bind=none>" 9 SLURM_GPUS_ON_NODE=8 -- --model=vgg11
gives "<--ntasks=6>|<--ntasks-per-node=3>|<--cpus-per-task=5>|<--gpu-bind=none>" 9 SLURM_GPUS_ON_NODE=8 SLURM_NTASKS_PER_NODE=3 --
gives "<--ntasks=2>|<--ntasks-per-node=1>|<--cpus-per-task=1>" 9 SLURM_CPUS_ON_NODE=1 --
gives "mpirun <-np> <4> <--map-by> <ppr:2:node>|/build/cpu/cnn_benchmarks>|<--model=vgg11>" 0 FAKE_PMIX= -- --model=vgg11
gives "mpirun <-np> <4>" 0 CNN_LAUNCHER=mpirun --
gives "<$folder/bin/mpirun> <--variable_update=horovod>" 9 CNN_PROGRAM="$folder/bin/mpirun" --
[[ $(batch -- || true) != *--gpu-bind* ]] || fail "GPUs are bound where a job has none"

gives "CNN_LAUNCHER=rsh: there are srun and mpirun" 1 CNN_LAUNCHER=rsh --
gives "CNN_PROGRAM=/none is no program" 1 CNN_PROGRAM=/none --
gives "there is no cnn_benchmarks in the PATH or in /none/build: set CNN_PROGRAM" 1 SLURM_SUBMIT_DIR=/none --
gives "this is a batch script: sbatch" 1 SLURM_JOB_ID= --
echo "train.sbatch: all as it should be"
