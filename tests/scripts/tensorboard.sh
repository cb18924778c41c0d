#!/usr/bin/env bash
# Opens the event files of a resumed training and of an evaluation with TensorBoard's own reader. Skips if TensorBoard
# cannot be installed.
#
#   tests/scripts/tensorboard.sh CNN_BENCHMARKS FOLDER     FOLDER: where a virtual environment with TensorBoard is kept
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

program=$1 environment=$2/tensorboard
import='from tensorboard.backend.event_processing import event_accumulator'
if ! "$environment/bin/python" -c "$import" 2>/dev/null; then
  { python3 -m venv "$environment" && timeout 300 "$environment/bin/pip" install -q 'tensorboard==2.21.0' 'setuptools<81'; } \
    >"$2/tensorboard.log" 2>&1 || skip "TensorBoard cannot be installed; $2/tensorboard.log says why"
  "$environment/bin/python" -c "$import" 2>>"$2/tensorboard.log" || skip "TensorBoard does not start; $2/tensorboard.log says why"
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

run() {
  "$program" --device=cpu --model=lenet --data_name=mnist --batch_size=8 --nomeasure_ceilings --train_dir="$folder/train" "$@" >"$folder/out" 2>&1 ||
    die "$* failed: $(<"$folder/out")"
}
summaries=(--num_warmup_batches=0 --summary_verbosity=3 --save_summaries_steps=1 --print_training_accuracy)
run "${summaries[@]}" --num_batches=4
rm "$folder"/train/checkpoint "$folder"/train/model.ckpt-*  # as if the run had been killed before saving
run "${summaries[@]}" --num_batches=2
run "${summaries[@]}" --num_batches=3  # resumes after step 2
run --eval --num_batches=2 --eval_dir="$folder/eval"

"$environment/bin/python" "$root/tests/scripts/tensorboard_reads.py" "$folder/train" "$folder/eval"
