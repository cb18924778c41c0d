#!/usr/bin/env bash
# Checks that scripts/losses/compare.py passes a program with the recorded losses and fails one that differs, breaks or
# hangs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# A fake program that takes its losses from the environment and hangs on request.
cat >"$folder/program" <<'PROGRAM'
#!/usr/bin/env bash
for word in "$@"; do
  case $word in
    --result_json=*) result=${word#*=} ;;
    --model=slow) exec sleep 30 ;;
    --model=broken) echo "no such layer" >&2 && exit 3 ;;
    --data_dir=*) [[ -s ${word#*=} ]] || exit 4 ;;
  esac
done
echo "$*" >>"$(dirname "$0")/flags"
echo "{\"steps\": [{\"base_loss\": 2.0, \"total_loss\": 2.5}, {\"base_loss\": $LOSS, \"total_loss\": $TOTAL}]}" >"$result"
PROGRAM
chmod +x "$folder/program"

mkdir "$folder/curves"
for model in good slow broken; do
  cat >"$folder/curves/$model.json" <<CURVE
{"data_set": "imagenet", "steps": 2, "flags": ["--model=$model"], "images": {"shape": [2, 8, 8, 3], "scale": 1},
 "base_loss": [2.0, 1.0], "weight_loss": [0.5, 0.25],
 "tolerance": {"fp32_strict": 1e-5, "tf32": 1e-3, "fp16": 2e-3, "bf16": 1e-2}}
CURVE
done

fail() {
  echo "$*"
  exit 1
}
compare() {
  python3 scripts/losses/compare.py --program "$folder/program" --curves "$folder/curves" \
    --json "$folder/result.json" "$@" >"$folder/out" 2>&1
}
passes() { compare "$@" || fail "should pass: $* $(cat "$folder/out")"; }
fails() { ! compare "$@" || fail "should fail: $* $(cat "$folder/out")"; }
says() { grep -q -e "$1" "$folder/${2:-out}" || fail "'$1' is missing: $(cat "$folder/${2:-out}")"; }

export LOSS=1.000001 TOTAL=1.250001
passes --device cpu --models good
says 'good .*ok .*5.0e-07 of 1.0e-05, largest 1.0e-06 in base_loss of step 2'
export LOSS=1.0005 TOTAL=1.2505
fails --device cpu --models good --precision fp32
fails --device gpu --models good --precision fp32_strict
passes --device gpu --models good --precision fp32 --fusion none --threads 3
says '--notune --device=gpu --precision=fp32 --fusion=none --num_intra_threads=3' flags
export LOSS=1.003 TOTAL=1.253
fails --device gpu --models good --precision tf32
passes --device gpu --models good --precision fp16
! grep -q loss_scale "$folder/flags" || fail "a loss scale was set"
cp "$folder/curves/good.json" "$folder/curves/good.fine.json"
passes --device gpu --models good --precision fp16
says '--fp16_loss_scale=1' flags
rm "$folder/curves/good.fine.json" "$folder/flags"
export LOSS=1.005 TOTAL=1.255
fails --device gpu --models good --precision fp16
passes --device gpu --models good --precision bf16
passes --device cpu --models good --precision fp16
export LOSS=1 TOTAL=1.26
fails --device gpu --models good --precision bf16
says 'weight_loss of step 2'
export LOSS=null TOTAL=null
fails --device cpu --models good
says 'no positive number: base_loss of step 2'
export LOSS=1 TOTAL=1.25
fails --device cpu --models good,broken
says 'broken .*FAIL exit code 3: no such layer'
says '"ok": false' result.json
fails --device cpu --models slow --timeout_s 0.2
says 'not done after 0.2 s'
fails --device cpu --models good --budget_s 0
says 'no time left .* good'
fails --device cpu --models good --steps 1
says 'good .*FAIL 2 steps were reported, not 1'
says '--num_batches=1' flags
fails --device cpu --models good --steps 0
says 'at least one step'
passes --device cpu --models good,slow --budget_s 1
says '"slow"' result.json
fails --device cpu --models nothing
says 'nothing is not one of broken, good, slow'
