#!/usr/bin/env bash
# Runs every line of a suite several times and collects one result file for each run.
#
#   scripts/suite.sh FILE [options]     FILE: a suite, or the name of one in scripts/suites
#     --base=PROGRAM     an older cnn_benchmarks that runs beside the new one; both take turns, see below
#     --program=PROGRAM  the new one; without it what is here is built and run
#     --runs=N           of each line (5); with --base as many pairs
#     --out=FOLDER       where results go (build/suites/NAME): FOLDER/new/LINE.RUN.json, and FOLDER/base with --base
#     --only=LINE,...    these lines only; of a line with lists also single ones, as NAME.FLAG-VALUE
#     --list             prints the configurations, one line each, and runs nothing
#
# A suite has one line for each configuration, "name: --flag --flag"; what follows a # is a comment. Lines take turns
# too: all run once, then all once more, so that a machine that drifts does so for all of them.
#
# The file is text that is never executed: quotes, $ and ` reach the program as they stand there.
#
# A line with lists stands for one configuration of each combination of their values: "net: --batch_size=32,64" for
# net.batch_size-32 and net.batch_size-64, which is how the results are called too (net.batch_size-32.1.json). Flags
# that take a list or a free text themselves keep their commas.
#
# Stopped and called again, it goes on behind the last whole run; --out is for one program and one suite, which
# it checks. Progress and the time left go to stderr. Exit code: 0, or 1 if a run failed (its output is in LINE.RUN.log).
#
# Turns: runs one after the other differ by 8 to 15 % on shared machines, because the machine changes under them. With
# --base both programs are up at once, and --take_turns=FILE lets one of them work while the other waits between two
# steps, half a second each (bench/run/slice_lock.h): what changes for longer than that changes for both. The wait is in no
# step's time. Stopping processes from here (SIGSTOP) would cut steps in two, and which step it was nobody would know.
# A base from before that flag existed runs in alternation, run by run.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }

base='' program='' runs=5 out='' only='' suite='' list=false
for argument in "$@"; do
  case $argument in
    --base=*) base=${argument#*=} ;;
    --program=*) program=${argument#*=} ;;
    --runs=*) runs=${argument#*=} ;;
    --out=*) out=${argument#*=} ;;
    --only=*) only=${argument#*=} ;;
    --list) list=true ;;
    --help | -h)
      usage
      exit 0
      ;;
    -*) die "no option $argument; --help lists them" ;;
    *)
      [[ -z $suite ]] || die "one suite at a time: $suite, $argument"
      suite=$argument
      ;;
  esac
done
[[ -n $suite ]] || die "which suite? scripts/suite.sh FILE (--help)"
[[ -f $suite ]] || suite=$root/scripts/suites/$suite
[[ -f $suite ]] || die "no such suite: $suite"
[[ $runs =~ ^[1-9][0-9]*$ ]] || die "--runs=$runs: wants a number of runs"
out=${out:-$root/build/suites/$(basename "$suite")}

# Flags whose own values may have commas: they are no list of configurations.
keeps_commas=(
  backbone_model_path benchmark_log_dir benchmark_test_id class_list comm_calibration_file comm_fault comm_numa_nodes comm_topology
  controller_host data_dir ddl_options debugger emulate_link_gbps eval_dir eval_during_training_at_specified_epochs
  eval_during_training_at_specified_steps fake_input flagfile gpu_indices gpu_thread_mode graph_file hash_file history html_report
  kmp_affinity lms_disk lms_excl_ops lms_excl_types lms_incl_ops lms_incl_types lms_plan_file lms_plan_out lms_serialization
  lms_trace log_dir output_dir partitioned_graph_file_prefix piecewise_learning_rate_schedule plan_cache
  pretrain_dir ps_hosts result_json result_storage rewriter_config server_protocol simulate_ranks stderrthreshold
  steps_csv take_turns tfprof_file trace_file train_dir undefok worker_hosts
)

names=() flags=()
declare -A is_named=()

# More than these is taken for a mistake. A name becomes that of a file.
most_bytes=1000000 most_of_line=20000 most_words=500 most_cases=10000 most_letters=200

# shown TEXT: as one short line without control characters, for messages.
shown() {
  local text=${1:0:100}
  text=${text//[^[:print:]]/?}
  ((${#1} <= 100)) || text+=...
  printf '%s' "$text"
}

# is_wanted NAME: by --only.
is_wanted() { [[ -z $only || ,$only, == *",$1,"* ]]; }

# add_case NAME FLAGS
add_case() {
  ((${#1} <= most_letters)) || die "$suite: the name '$(shown "$1")' has more than $most_letters letters"
  [[ -z ${is_named[$1]:-} ]] || die "$suite: a second '$1'"
  ((${#names[@]} < most_cases)) || die "$suite: more than $most_cases configurations"
  is_named[$1]=yes
  names+=("$1")
  flags+=("$2")
}

# add_cases LINE NAME FLAGS [WORD...]: the configurations of a line, whose words are to be added to NAME and FLAGS.
add_cases() {
  local line=$1 name=$2 done=$3 flag value values
  shift 3
  if (($# == 0)); then
    is_wanted "$line" || is_wanted "$name" || return 0
    add_case "$name" "${done# }"
    return
  fi
  if [[ $1 =~ ^--([A-Za-z0-9_]+)=(.*,.*)$ && " ${keeps_commas[*]} " != *" ${BASH_REMATCH[1]} "* ]]; then
    flag=${BASH_REMATCH[1]}
    [[ ${BASH_REMATCH[2]} =~ ^[^,]+(,[^,]+)+$ ]] || die "$suite: $(shown "$1"): an empty value in a list"
    IFS=, read -ra values <<<"${1#*=}"
    for value in "${values[@]}"; do
      add_cases "$line" "$name.$flag-${value//[^A-Za-z0-9_.-]/_}" "$done --$flag=$value" "${@:2}"
    done
  else
    add_cases "$line" "$name" "$done $1" "${@:2}"
  fi
}

# check_text: a line with a zero byte would lose it and mean something else.
check_text() {
  local line bytes
  bytes=$(wc -c <"$suite")
  ((bytes <= most_bytes)) || die "$suite: has $bytes bytes; a suite has at most $most_bytes"
  line=$(LC_ALL=C grep -a -n -m 1 -P '\x00' "$suite" | cut -d: -f1 | tr -d '\0') || true
  [[ -z $line ]] || die "$suite, line $line: has a zero byte, so that it is no text"
}

read_suite() {
  local line words number=0
  check_text
  while IFS= read -r line || [[ -n $line ]]; do
    number=$((number + 1))
    ((${#line} <= most_of_line)) || die "$suite, line $number: has ${#line} letters; at most $most_of_line are read"
    line=${line%%#*}
    line=${line%$'\r'}
    [[ -n ${line//[[:space:]]/} ]] || continue
    [[ $line =~ ^[[:space:]]*([A-Za-z0-9_.-]+):[[:space:]]+(--.*)$ ]] ||
      die "$suite, line $number: wants 'name: --flag ...', has '$(shown "$line")'"
    line=${BASH_REMATCH[1]}
    read -ra words <<<"${BASH_REMATCH[2]}"
    ((${#words[@]} <= most_words)) || die "$suite, line $number: has ${#words[@]} words; at most $most_words are read"
    add_cases "$line" "$line" '' "${words[@]}"
  done <"$suite"
  ((${#names[@]})) || die "$suite: no line to run${only:+ among $only}"
}

# Writes what the folder is for: a file that the next call compares with.
claim_folder() {
  local now
  mkdir -p "$out/new" "$out/log" ${base:+"$out/base"}
  now=$(cksum <"$suite" && for each in "$program" ${base:+"$base"}; do cksum <"$each"; done)
  if [[ -f $out/suite.txt && $(<"$out/suite.txt") != "$now" ]]; then
    die "$out has runs of another program or suite: remove it, or name another folder with --out"
  fi
  printf '%s\n' "$now" >"$out/suite.txt"
}

# run_side SIDE PROGRAM CASE RUN [FLAG...]: the result gets its name when it is whole.
run_side() {
  local side=$1 binary=$2 case=$3 run=$4 words
  shift 4
  local part=$out/$side/${names[case]}.$run.part
  read -ra words <<<"${flags[case]}"
  "$binary" "${words[@]}" "$@" --result_json="$part" >"$out/log/${names[case]}.$run.$side.log" 2>&1 </dev/null &&
    mv "$part" "${part%.part}.json"
}

# run_pair CASE RUN: the one that starts first has the first turn, so they alternate.
run_pair() {
  local case=$1 run=$2 first=base second=new status=0
  local -A programs=([base]=$base [new]=$program)
  ((run % 2)) || { first=new second=base; }
  if ! $turns; then
    run_side $first "${programs[$first]}" "$case" "$run" && run_side $second "${programs[$second]}" "$case" "$run"
    return
  fi
  # The two results know each other by its name, so it is one of a kind.
  local file=$out/log/${names[case]}.$run.turns pids=()
  for side in $first $second; do
    run_side "$side" "${programs[$side]}" "$case" "$run" --take_turns="$file" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    wait "$pid" || status=1
  done
  rm -f "$file"
  return "$status"
}

# speed_of FILE: the images/sec of its summary.
speed_of() { sed -n '/^ "summary"/,/^ }/s/.*"images_per_sec": *\([0-9]*\.\?[0-9]\{0,2\}\).*/\1/p' "$1" | head -n 1; }

is_done() {
  [[ -s $out/new/${names[$1]}.$2.json && (-z $base || -s $out/base/${names[$1]}.$2.json) ]]
}

# Seconds as 1:05.
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

stop() {
  trap - INT TERM
  local children
  children=$(jobs -p)
  # shellcheck disable=SC2086 # one word for each process
  [[ -z $children ]] || kill $children 2>/dev/null || true
  say "stopped; the same call goes on from here"
  exit 130
}

read_suite
if $list; then
  for case in "${!names[@]}"; do
    printf '%s: %s\n' "${names[case]}" "${flags[case]}"
  done
  exit 0
fi
if [[ -z $program ]]; then
  preset=$(default_preset)
  "$root/scripts/setup.sh"
  build "$preset" --target cnn_benchmarks cnn_compare
  program=$root/build/$preset/cnn_benchmarks
fi
for each in "$program" ${base:+"$base"}; do
  [[ -x $each && ! -d $each ]] || die "$each: no program"
done
claim_folder
turns=true
if [[ -n $base ]] && ! grep -q take_turns <("$base" --helpfull 2>/dev/null); then
  turns=false
  say "the base does not know --take_turns: runs alternate, and differ by what the machine does meanwhile"
fi
trap stop INT TERM

total=$((${#names[@]} * runs)) number=0 timed=0 spent=0 failed=0
for ((run = 1; run <= runs; ++run)); do
  for case in "${!names[@]}"; do
    number=$((number + 1))
    ! is_done "$case" "$run" || continue
    started=$SECONDS status=0
    if [[ -n $base ]]; then
      run_pair "$case" "$run" || status=$?
    else
      run_side new "$program" "$case" "$run" || status=$?
    fi
    spent=$((spent + SECONDS - started)) timed=$((timed + 1))
    left="about $(clock $((spent * (total - number) / timed))) left"
    if ((status)); then
      failed=$((failed + 1))
      say "[$number/$total] ${names[case]}, run $run: FAILED; $left"
      tail -n 3 "$out/log/${names[case]}.$run".*.log >&2
    else
      say "[$number/$total] ${names[case]}, run $run: $(speed_of "$out/new/${names[case]}.$run.json") images/sec${base:+, base }${base:+$(speed_of "$out/base/${names[case]}.$run.json")}; $left"
    fi
  done
done
say "results: $out/new${base:+ and $out/base; cnn_compare $out/base/*.json -- $out/new/*.json}"
((failed == 0)) || die "$failed of $total runs failed"
