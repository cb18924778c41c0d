"""The slice `losses`: 20 steps of every model against the recorded losses of the CPU backend, by scripts/losses."""
from __future__ import annotations

import json
import pathlib
import sys
import tempfile

import speed
from execute import execute
from rows import FAILED, OK, TIMEOUT, Context, Outcome, Row, failed, words

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "losses"))
import curve  # noqa: E402  what compare.py calls a model: some have two curves

# Precision and fusion. The loss of the plain ops says whose fault it is where the fused ones' is off.
SETTINGS = (("fp16", None), ("fp32", None), ("fp16", "none"), ("bf16", None), ("fp32_strict", None))
MODELS_AT_ONCE = 12  # one row: some 20 s, so that a short loan keeps what it had time for


def run(models: list[str], precision: str, fusion: str | None, context: Context, seconds: float) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "losses.json"
        command = words([sys.executable, context.root / "scripts/losses/compare.py", f"--program={context.program}",
                         f"--device={context.device}", f"--precision={precision}", f"--models={','.join(models)}",
                         f"--curves={context.root / 'tests/losses'}", f"--json={report}",
                         *([f"--fusion={fusion}"] if fusion else []),
                         *(["--steps=2"] if context.toy and not context.rehearsal else [])])
        # It ends by itself before it is killed, with the rows that it has.
        finished = execute([*command, f"--budget_s={0.9 * seconds:.0f}"], seconds, context.environment)
        if not report.exists():
            return failed(command, finished)
        result = json.loads(report.read_text())
    for row in result["models"].values():
        row.pop("base_loss", None)
    if result["left_out"]:
        return Outcome(TIMEOUT, command, f"no time for {', '.join(result['left_out'])}", result)
    if finished.status == 0:
        return Outcome(OK, command, "", result)
    bad = [name for name, row in result["models"].items() if not row["ok"]]
    return Outcome(FAILED, command, f"off: {', '.join(bad)}" if bad else finished.failure(), result)


def recorded(root: pathlib.Path) -> list[str]:
    return curve.names(root / "tests/losses")


def chunks(context: Context) -> list[list[str]]:
    """Models with recorded curves, the benchmark's own models first."""
    names = [name for name in recorded(context.root) if not context.models or name in context.models]
    names.sort(key=lambda name: (name not in speed.GPU_BATCHES, name))
    return [names[start:start + MODELS_AT_ONCE] for start in range(0, len(names), MODELS_AT_ONCE)]


def rows(context: Context) -> list[Row]:
    if not (context.root / "scripts/losses/compare.py").exists():
        return []
    settings = (("fp32", None),) if context.rehearsal else SETTINGS
    found = []
    for index, (precision, fusion) in enumerate(settings):
        if context.precisions and precision not in context.precisions:
            continue
        for part, models in enumerate(chunks(context)):
            label = f"losses/{precision}{'/' + fusion if fusion else ''}/{part + 1}"
            found.append(Row(label, "losses", 1 if index < 2 else 400, 150 * context.timeout_scale,
                             lambda seconds, m=models, p=precision, f=fusion: run(m, p, f, context, seconds)))
    return found


def text(row: dict) -> str:
    models = row["result"].get("models", {})
    known = {name: found["deviation"] for name, found in models.items() if found["deviation"] is not None}
    if not known:
        return row["error"]
    worst = max(known, key=known.__getitem__)
    line = f"{sum(found['ok'] for found in models.values())} of {len(models)} agree, worst {known[worst]:.1e} ({worst})"
    return f"{line}; {row['error']}" if row["error"] else line
