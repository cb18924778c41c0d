#!/usr/bin/env bash
# image.sh BUILD: runs the second stage of scripts/cluster/Containerfile in a new Debian and then the job of mpijob.yaml
# with it on three emulated hosts. A launcher must reach two workers by ssh as an ordinary user, they must train, and
# SIGTERM to the launcher must end the run with its result. The test has no GPUs and trains on the CPU.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
source "$root/scripts/virtual_hosts.sh"

build=$(realpath "$1")
[[ -e $build/cnn_mpi.so ]] || skip "the program was built without MPI"
((EUID == 0)) || skip "debootstrap needs root"
for command in debootstrap ip ssh-keygen; do
  command -v "$command" >/dev/null || skip "there is no $command; apt-get install debootstrap iproute2 openssh-client"
done
python3 -c 'import yaml' 2>/dev/null || skip "there is no PyYAML; apt-get install python3-yaml"
release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
[[ $(sed -n 's/^ID=//p' /etc/os-release) == debian ]] || skip "the build's libraries are not Debian's"

folder=$(mktemp -d)
image=$folder/image staged=$folder/staged keys=$folder/image/home/mpiuser/.ssh
started=() hosts=() switch=
clean_up() {
  local process
  for process in "${started[@]}"; do
    kill -KILL "$process" 2>/dev/null || true
  done
  [[ -z $switch ]] || remove_hosts || true
  rm -rf --one-file-system "$folder"
}
trap clean_up EXIT
fail() {
  tail -n 20 "$folder"/*.{log,out,err} >&2 2>/dev/null || true
  say "$*"
  exit 1
}

make_image() {
  debootstrap --variant=minbase "$release" "$image" >"$folder/debootstrap.log" 2>&1 ||
    skip "debootstrap cannot make a Debian here: $(tail -n 1 "$folder/debootstrap.log")"
  cp /etc/resolv.conf "$image/etc/resolv.conf"
  chroot "$image" useradd --create-home --uid 1000 ubuntu  # as Ubuntu's images have
  DESTDIR=$staged cmake --install "$build" --prefix /usr/local --strip >"$folder/install.log" 2>&1 || fail "cmake --install fails"
  bash "$root/scripts/cluster/runtime_packages.sh" "$staged/usr/local" >"$staged/packages" 2>"$folder/packages.log" ||
    fail "runtime_packages.sh fails"
  python3 "$root/tests/scripts/containerfile.py" "$root/scripts/cluster/Containerfile" >"$folder/steps"
  # The GPU module needs the CUDA base image.
  rm -f "$staged/usr/local/lib/cnn_benchmarks/cnn_gpu.so"
  image=$image staged=$staged root=$root bash -e "$folder/steps" >"$folder/steps.log" 2>&1 || fail "a step of the Containerfile fails"
  if chroot "$image" sh -c 'ldd /usr/local/lib/cnn_benchmarks/*' | grep 'not found' >&2; then
    fail "the image lacks libraries"
  fi
}

# The operator mounts one key for all pods; it belongs to root, but its mode lets others read it.
make_keys() {
  mkdir -p "$keys" "$image/etc/mpi"
  ssh-keygen -q -t ecdsa -N "" -f "$keys/id_rsa"
  cp "$keys/id_rsa.pub" "$keys/authorized_keys"
  chmod 644 "$keys"/*
  printf '10.77.86.%s slots=1\n' 2 3 >"$image/etc/mpi/hostfile"
}

# in_pod HOST COMMAND...: runs the command as mpiuser like a container of the image on that host, with processes and
# /dev/shm of its own.
in_pod() {
  # shellcheck disable=SC2016  # for the shell that is started
  exec ip netns exec "$1" unshare --uts --mount --pid --fork --kill-child bash -c '
    hostname "$0" && image=$1 && shift && mount -t proc proc "$image/proc" && mount -t tmpfs tmpfs "$image/dev/shm"
    chmod 1777 "$image/dev/shm"
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/mpiuser \
      OMPI_MCA_orte_keep_fqdn_hostnames=true OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile \
      OMPI_MCA_plm_rsh_args="-o ConnectionAttempts=10" chroot --userspec=1000:1000 "$image" "$@"' "$1" "$image" "${@:2}"
}

# words_of REPLICA: prints the command and arguments of its container, one per line.
words_of() {
  python3 -c 'import sys, yaml
spec = yaml.safe_load(open(sys.argv[1]))["spec"]["mpiReplicaSpecs"][sys.argv[2]]["template"]["spec"]
print(*(spec["containers"][0][part][i] for part in ("command", "args") for i in range(len(spec["containers"][0][part]))), sep="\n")' \
    "$root/scripts/cluster/mpijob.yaml" "$1"
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
listens() { ip netns exec "$1" bash -c ': </dev/tcp/127.0.0.1/2222'; }

# launch NAME FLAG...: starts the job's launcher, which writes NAME.out and NAME.err, and sets `launcher` to its
# process.
launch() {
  local name=$1 words
  shift
  mapfile -t words < <(words_of Launcher)
  (in_pod "${hosts[0]}" "${words[@]}" --device=cpu --model=trivial --batch_size=2 --num_warmup_batches=0 \
    --nomeasure_ceilings "$@") >"$folder/$name.out" 2>"$folder/$name.err" </dev/null &
  launcher=$!
  started+=("$launcher")
}
# The result is the last JSON line, whatever else is on stderr.
result_has() {
  python3 -c 'import json, sys
text = open(sys.argv[1]).read()
result = json.JSONDecoder().raw_decode(text[text.index("{\n"):])[0]
sys.exit(not eval(sys.argv[2]))' "$folder/$1.err" "$2" || fail "the result of $1 is not as in: $2"
}

make_image
make_keys
make_hosts 3 "$folder" >"$folder/hosts.log" || skip "$(<"$folder/hosts.log")"
mapfile -t worker < <(words_of Worker)
for host in "${hosts[@]:1}"; do
  (in_pod "$host" "${worker[@]}") >"$folder/$host.log" 2>&1 </dev/null &
  started+=($!)
  disown
done
for host in "${hosts[@]:1}"; do
  soon listens "$host" || fail "sshd of $host does not listen"
done

launch trains --num_batches=3
wait "$launcher" || fail "the job ends with $?"
grep -q '^total images/sec: ' "$folder/trains.out" || fail "the job prints no total"
result_has trains 'len(result["ranks"]) == 2'

launch ends --num_batches=100000000 --display_every=20
soon grep -q -E '^20\s+images/sec' "$folder/ends.out" || fail "the job does not train"
kill -TERM "$(pgrep -P "$launcher")"
wait "$launcher" || true
result_has ends 'result["interrupted_by"] == "SIGTERM"'
say "the image runs the job"
