#!/usr/bin/env bash
# Checks that cnnrun builds the right mpirun line, refuses impossible options and makes a table of a series. A fake
# mpirun prints its arguments and reports a speed of 90 % of linear scaling.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/mpirun" <<'FAKE'
#!/usr/bin/env bash
echo "mpirun: $*"
[[ $2 == 3 ]] && exit 7
echo "total images/sec: $(($2 == 1 ? 100 : $2 * 90)).00"
FAKE
cat >"$folder/ssh" <<'FAKE'
#!/usr/bin/env bash
[[ $* == *gone* ]] && { echo "ssh: connect to host gone port 22: Connection refused" >&2; exit 255; }
nproc --all
FAKE
printf '#!/usr/bin/env bash\nexit 1\n' >"$folder/nvidia-smi"
chmod +x "$folder"/*
export PATH="$folder:$PATH"

fail() { echo "cnnrun_test: $*" >&2; exit 1; }
# has TEXT PART...: checks that each part occurs in the text.
has() {
  local text=$1 part
  shift
  for part; do [[ $text == *"$part"* ]] || fail "no '$part' in: $text"; done
}
# refuses PART OPTIONS...: checks that cnnrun ends with an error that contains the part.
refuses() {
  local part=$1 said
  shift
  if said=$(scripts/cnnrun "$@" prog 2>&1); then fail "accepted: $*"; fi
  has "$said" "$part"
}

line=$(scripts/cnnrun --accelerators 2 prog --model=resnet50 2>&1)
has "$line" "cnnrun: mpirun -np 2 " "-H localhost:2" "--bind-to none" "odls_base_sigkill_timeout 30" "DDL_OPTIONS=-mode p:2x1x1x1" \
  "prog --model=resnet50" "mpirun: -np 2"
line=$(scripts/cnnrun -H a,b,c,d --accelerators 6 --nodes 2 --racks 2 --tcp --mpiarg '--mca x y' -m b --ddlarg '-dump_iter 10' prog 2>&1)
has "$line" "-np 24" "-H a:6,b:6,c:6,d:6" "--mca btl self,vader,tcp" "--mca x y" "DDL_OPTIONS=-mode b:6x2x2x1 -dump_iter 10"
line=$(scripts/cnnrun --no_ddloptions --dry_run prog 2>&1)
has "$line" "-np 1"
[[ $line != *DDL_OPTIONS* && $line != *"mpirun: "* ]] || fail "$line"
printf 'rank 0=a slot=0:0-3\nrank 1=b slot=0:0-3\n' >"$folder/ranks"
has "$(scripts/cnnrun --rankfile "$folder/ranks" prog 2>&1)" "-np 2" "--rankfile $folder/ranks"
printf 'a slots=4 # first\n\nb\n' >"$folder/hosts"
has "$(scripts/cnnrun --hostfile "$folder/hosts" prog 2>&1)" "-np 2" "-H a:1,b:1"

# A value may begin with dashes, and all words after the program are the program's.
line=$(scripts/cnnrun --mpiarg --oversubscribe --mpiarg=--report-bindings --ddlarg -dump_iter prog --mpiarg x 2>&1)
has "$line" " --oversubscribe --report-bindings " "-dump_iter prog --mpiarg x"
line=$(scripts/cnnrun --dry_run -H a,b -m r --mpiarg '--mca x y' -- prog 2>&1)
has "$line" "-np 2" "-H a:1,b:1" "--mca x y" "DDL_OPTIONS=-mode r:1x2x1x1"
refuses "'--nodes' is not a whole number" --accelerators --nodes

refuses "are 6 hosts, but there are 4" -H a,b,c,d --nodes 3 --racks 2
refuses "one of b n r m c p" -m q
refuses "dimensions of 6 ranks, but there are 4" -m r:2x3 --accelerators 4
refuses "host gone does not answer to ssh" -H gone
refuses "not a whole number" --scale 1,0
refuses "No such file" --hostfile "$folder/none"
refuses "No such file" --rankfile "$folder/none"

table=$(scripts/cnnrun --scale=1,2,4 prog 2>/dev/null)
has "$table" "ranks   images/sec   per rank efficiency" "4       360.00      90.00     90.00%" "1       100.00     100.00    100.00%"
# In a series, each rank has as many processors as in the largest run.
usable() { python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:'"$1"'], sep=",")'; }
if [[ $(nproc) -ge 2 ]]; then
  half=$(($(nproc) / 2))
  line=$(scripts/cnnrun --dry_run --scale=1,2 prog 2>&1)
  has "$line" "each rank has $half of the host's processors in every run" "taskset -c $(usable "$half") prog"
  [[ $(nproc) != $((2 * half)) || $(tail -n 1 <<<"$line") != *taskset* ]] || fail "the largest run is restricted: $line"
fi
has "$(scripts/cnnrun --dry_run --scale=1,10000 prog 2>&1)" "10000 ranks of a host share" "taskset -c $(usable 1) prog"
[[ $(scripts/cnnrun --dry_run --rankfile "$folder/ranks" --scale=1,2 prog 2>&1) != *taskset* ]] || fail "a rank file has its own slots"

if said=$(scripts/cnnrun --scale=1,3 prog 2>&1); then fail "a failed run counted"; fi
has "$said" "3 ranks ended with status 7"
echo "cnnrun: all as it should be"
