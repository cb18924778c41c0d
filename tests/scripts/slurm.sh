#!/usr/bin/env bash
# slurm.sh PROGRAM: runs srun and sbatch on two emulated nodes of this machine. Ranks must print the same lines as under
# mpirun and end with the same codes; scancel must end a batch job after the running step, with its result.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

program=$1
[[ -e $(dirname "$program")/cnn_mpi.so ]] || skip "the program was built without MPI"
for command in mpirun slurmctld slurmd srun sbatch; do
  command -v "$command" >/dev/null ||
    skip "there is no $command; apt-get install openmpi-bin slurmctld slurmd slurm-client slurm-wlm-basic-plugins"
done
((EUID == 0)) || skip "slurmd needs root here"
unshare --uts --mount --pid --fork true 2>/dev/null || skip "nodes cannot have names of their own here (unshare --uts)"

folder=$(mktemp -d)
export SLURM_CONF=$folder/slurm.conf
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive CNN_PROGRAM=$program
batch=$root/scripts/cluster/train.sbatch
quick=(--device=cpu --model=trivial --batch_size=2 --num_batches=3 --num_warmup_batches=0 --display_every=1
  --nomeasure_ceilings --variable_update=horovod --comm_calibrate=off --comm_transport=mpi --comm_order=rank)
endless=("${quick[@]}" --num_batches=100000000 --display_every=20)

# All processes of this cluster have its configuration in their environment. A node's processes end with the first
# process of its namespace.
processes() {
  local environment
  for environment in /proc/[0-9]*/environ; do
    if [[ $environment != "/proc/$$/environ" ]] && grep -q -z -x -F "SLURM_CONF=$SLURM_CONF" "$environment" 2>/dev/null; then
      basename "$(dirname "$environment")"
    fi
  done
}
clean_up() {
  local process
  for process in $(processes); do
    kill -KILL "$process" 2>/dev/null || true
  done
  rm -rf "$folder"
}
trap clean_up EXIT

fail() {
  tail -n 15 "$folder"/*.{out,err,log} >&2 2>/dev/null || true
  say "$*"
  exit 1
}
# soon COMMAND...: returns whether the command succeeds within two minutes.
soon() {
  local waited
  for ((waited = 0; waited < 600; ++waited)); do
    "$@" 2>/dev/null && return
    sleep 0.2
  done
  return 1
}
has_line() { grep -q -E "$2" "$1"; }

free_ports() {
  python3 -c 'import socket
s = [socket.socket() for _ in range(3)]
[x.bind(("127.0.0.1", 0)) for x in s]
print(*[x.getsockname()[1] for x in s])'
}

# Nodes do not see each other's processes and shared memory, have their own folders for their daemons' files in /tmp,
# and have no cgroups.
start_cluster() {
  local ports node
  read -r -a ports < <(free_ports)
  cat >"$SLURM_CONF" <<CONF
ClusterName=cnn$$
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=${ports[0]}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
TmpFS=$folder/tmp.%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
KillWait=60
ReturnToService=2
NodeName=cnn1 NodeHostname=cnn1 NodeAddr=127.0.0.1 Port=${ports[1]} CPUs=2
NodeName=cnn2 NodeHostname=cnn2 NodeAddr=127.0.0.1 Port=${ports[2]} CPUs=2
PartitionName=all Nodes=cnn1,cnn2 Default=YES State=UP
CONF
  mkdir "$folder/state"
  slurmctld -D >"$folder/slurmctld.out" 2>&1 </dev/null &
  disown
  for node in cnn1 cnn2; do
    mkdir "$folder/spool.$node" "$folder/tmp.$node"
    # shellcheck disable=SC2016  # for the shell that is started
    unshare --uts --mount-proc --pid --fork --kill-child bash -c 'hostname "$0" && mount -t tmpfs tmpfs /dev/shm &&
      exec slurmd -D -N "$0"' "$node" >"$folder/slurmd.$node.out" 2>&1 </dev/null &
    disown
  done
}
nodes_are_idle() { [[ $(sinfo --noheader --format='%T %D') == "idle 2" ]]; }

# run NAME COMMAND...: writes NAME.out and NAME.err, and sets `code` to the exit code.
run() {
  local name=$1
  shift
  code=0
  timeout 300 "$@" >"$folder/$name.out" 2>"$folder/$name.err" </dev/null || code=$?
}
by_srun=(srun --mpi=pmix --nodes=2 --ntasks=4)
by_mpirun=(bash "$root/tests/scripts/as_ranks.sh" 4)
# Prints the lines of a run without the measured speeds, sorted because ranks print at any moment.
lines_of() { sed -E 's/[0-9.]+ \+\/- [0-9.]+ \(jitter = [0-9.]+\)//; s/^(total images\/sec:).*/\1/' "$folder/$1.out" | sort; }

prints_the_same_lines() {
  run mpirun "${by_mpirun[@]}" "$program" "${quick[@]}"
  ((code == 0)) || fail "mpirun ended with $code"
  run srun "${by_srun[@]}" "$program" "${quick[@]}"
  ((code == 0)) || fail "srun --mpi=pmix ended with $code"
  [[ $(grep -c -E '^3\s+images/sec' "$folder/srun.out") == 4 ]] || fail "not every rank printed its third step"
  diff <(lines_of mpirun) <(lines_of srun) >&2 || fail "ranks of srun (>) print other lines than those of mpirun (<)"
}

ends_by_the_same_codes() {
  local launcher codes=()
  for launcher in srun mpirun; do
    local -n line=by_$launcher
    run "$launcher" "${line[@]}" "$program" "${quick[@]}" --model=resnet5
    codes+=("$code")
    [[ $(grep -c 'no such model' "$folder/$launcher.err") == 1 ]] || fail "$launcher: a wrong flag is not told once"
  done
  [[ ${codes[*]} == "1 1" ]] || fail "a wrong flag ends srun and mpirun with ${codes[*]}"
}

# Kills rank 1; the other rank must report it. Both are on one host, because Open MPI itself ends a rank whose TCP
# connection breaks while it sends.
names_a_killed_rank() {
  local launcher started codes=()
  # shellcheck disable=SC2034  # used by its name
  local on_one_host_srun=(srun --mpi=pmix --nodes=1 --ntasks=2 --kill-on-bad-exit=0)
  # shellcheck disable=SC2034
  local on_one_host_mpirun=(bash "$root/tests/scripts/as_ranks.sh" 2)
  # shellcheck disable=SC2016  # for the shell that is started
  local rank='if [[ $PMIX_RANK == 1 ]]; then (until [[ -e $0 ]]; do sleep 0.1; done && kill -KILL $$) & fi; exec "$@"'
  for launcher in srun mpirun; do
    local -n words=on_one_host_$launcher
    timeout 300 "${words[@]}" bash -c "$rank" "$folder/$launcher.trains" "$program" "${endless[@]}" \
      >"$folder/$launcher.out" 2>"$folder/$launcher.err" </dev/null &
    started=$!
    soon has_line "$folder/$launcher.out" '^20\s+images/sec' || fail "$launcher: ranks do not train"
    touch "$folder/$launcher.trains"
    code=0
    wait "$started" || code=$?
    codes+=("$code")
    has_line "$folder/$launcher.err" 'rank 1 is lost: ' || fail "$launcher: no rank names the killed one"
  done
  [[ ${codes[*]} == "137 137" ]] || fail "a killed rank ends srun and mpirun with ${codes[*]}"
}

refuses_tasks_without_pmix() {
  run alone srun --nodes=2 --ntasks=4 "$program" "${quick[@]}"
  ((code == 1)) || fail "four tasks without PMIx ended with $code"
  [[ $(grep -c 'srun --mpi=pmix' "$folder/alone.err") == 1 && ! -s $folder/alone.out ]] ||
    fail "four tasks without PMIx do not say once what to do"
}

# submit OPTION... -- FLAG...: submits a batch job and sets `job`; its log is JOB.log in the folder.
submit() {
  local options=()
  while [[ $1 != -- ]]; do
    options+=("$1") && shift
  done
  shift
  job=$(cd "$folder" && sbatch --parsable --output=%j.log --nodes=2 "${options[@]}" "$batch" "$@")
}
state_of() { scontrol show job "$1" | sed -n 's/.*JobState=\([A-Z]*\).*/\1/p; s/.*[^d]ExitCode=\([0-9]*\):.*/\1/p' | tr '\n' ' '; }
has_ended() { [[ $(state_of "$1") =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL) ]]; }
# ends JOB TEXT: checks that the job's state, or its state and exit code, become these.
ends() {
  soon has_ended "$1" || fail "job $1 does not end: $(state_of "$1")"
  [[ $(state_of "$1") == "$2 "* ]] || fail "job $1 ended as $(state_of "$1"), not as $2"
}
result_has() {
  python3 -c 'import json, sys; result = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' \
    "$folder/cnn_benchmarks-$1.json" "$2" || fail "the result of job $1 is not as in: $2"
}

batch_jobs_leave_results_and_codes() {
  submit --ntasks-per-node=2 -- "${quick[@]}"
  ends "$job" "COMPLETED 0"
  has_line "$folder/$job.log" "^train.sbatch: 4 ranks, 2 on each of 2 nodes: srun --mpi=pmix " || fail "job $job has no PMIx"
  has_line "$folder/$job.log" "^total images/sec: " || fail "job $job has no total"
  result_has "$job" 'len(result["ranks"]) == 4'
  submit -- "${quick[@]}" --model=resnet5
  ends "$job" "FAILED 1"
  CNN_LAUNCHER=mpirun submit --ntasks-per-node=2 -- "${quick[@]}"
  ends "$job" "COMPLETED 0"
  has_line "$folder/$job.log" " nodes: mpirun -np 4 " || fail "job $job does not run by mpirun"
  result_has "$job" 'len(result["ranks"]) == 4'
  CNN_LAUNCHER=rsh submit -- "${quick[@]}"
  ends "$job" "FAILED 1"
  has_line "$folder/$job.log" "CNN_LAUNCHER=rsh: there are srun and mpirun" || fail "job $job has accepted rsh"
}

# This works under srun alone, because Slurm ends mpirun's daemons together with the ranks.
scancel_ends_a_job_with_its_result() {
  submit -- "${endless[@]}"
  soon has_line "$folder/$job.log" '^20\s+images/sec' || fail "job $job does not train"
  scancel "$job"
  ends "$job" CANCELLED
  # The job has that state before its processes have ended.
  soon has_line "$folder/$job.log" "^interrupted after [0-9]* of 100000000 timed steps: SIGTERM" ||
    fail "job $job was not interrupted"
  soon nodes_are_idle || fail "job $job does not leave its nodes"
  result_has "$job" 'result["interrupted_by"] == "SIGTERM"'
}

start_cluster
soon nodes_are_idle || fail "the nodes do not come up"
srun --mpi=list 2>&1 | grep -q -w pmix || skip "this Slurm has no PMIx"
for part in prints_the_same_lines ends_by_the_same_codes names_a_killed_rank refuses_tasks_without_pmix \
  batch_jobs_leave_results_and_codes scancel_ends_a_job_with_its_result; do
  "$part"
  say "$part: yes"
done
