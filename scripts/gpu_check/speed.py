"""The slice `table`: training speed by model, precision, batch, level of fusion, with and without a CUDA graph.

Of each model the batches run first, at the highest level; the other levels then run at the batch that was fastest.
Rows with a CUDA graph time cuDNN's engines where the plan cache has no choice yet (--tune); rows without one find the
cache warm, so that their start is what a second run of a user takes.
"""
from __future__ import annotations

import dataclasses
import json
import pathlib
import tempfile
from typing import Any

from execute import execute
from rows import DOES_NOT_FIT, OK, Context, Outcome, Row, failed, words

# Batches for 80 GB; a card with less gets half as much, and so on.
GPU_BATCHES = {"resnet50": (256, 512), "resnet50_v1.5": (256, 512), "vgg16": (128, 256), "inception3": (128, 256),
               "googlenet": (512, 1024), "alexnet": (1024, 2048), "resnet152": (128, 256)}
# For rehearsals, where speed means nothing.
TOY_BATCHES = {"trivial": (4, 8), "lenet": (4,)}
# GFLOP of a training step for one image, forward and backward: how long a step may take.
GFLOP = {"resnet50": 22.9, "resnet50_v1.5": 24.3, "vgg16": 92.6, "inception3": 34.2, "googlenet": 9.3, "alexnet": 4.9,
         "resnet152": 67.5}
WITH_BATCH_NORM = ("resnet50", "resnet50_v1.5", "resnet152", "inception3")
LEARNING_RATE = 1e-5  # the default of some ends in NaN on synthetic images, and NaN are not ordinary work
SECONDS_AIMED = 4.0
DOES_NOT_FIT_TEXT = "the largest --batch_size that fits is"


@dataclasses.dataclass(frozen=True)
class Setting:
    model: str
    precision: str
    batch: int
    level: str
    graph: bool = True
    variant: str = ""  # untuned, nondeterministic

    @property
    def name(self) -> str:
        graph = "graph" if self.graph else "launches"
        return "/".join(["table", self.model, self.precision, f"b{self.batch}", self.level, graph,
                         *([self.variant] if self.variant else [])])


def models(context: Context) -> list[str]:
    known = TOY_BATCHES if context.toy else GPU_BATCHES
    # A rehearsal takes one that is named at a small batch, whatever its size.
    measurable = {*known, *(GPU_BATCHES if context.toy else ())}
    return [model for model in context.models or known if model in measurable]


def precisions(context: Context) -> list[str]:
    known = ("fp32",) if context.rehearsal else ("fp16", "fp32")
    return [precision for precision in known if not context.precisions or precision in context.precisions]


def batches(model: str, context: Context) -> tuple[int, ...]:
    if context.toy:
        return TOY_BATCHES.get(model, (2,))
    divisor = 1
    while context.memory_bytes and context.memory_bytes * divisor < 70e9 and divisor < 16:
        divisor *= 2
    return tuple(batch // divisor for batch in GPU_BATCHES[model])


def levels(model: str, precision: str) -> tuple[str, ...]:
    """The highest first. Batch norms go into convolutions in fp16 only."""
    return ("conv", "bn", "none") if precision == "fp16" and model in WITH_BATCH_NORM else ("bn", "none")


def step_count(model: str, precision: str, batch: int, context: Context) -> int:
    """As many as take some seconds at an ordinary speed."""
    if context.toy:
        return 3
    rate = 300e3 if precision == "fp16" else 130e3  # GFLOP/s
    return max(20, min(100, round(SECONDS_AIMED * rate / (GFLOP[model] * batch))))


def flags(setting: Setting, context: Context) -> list[str]:
    found = [f"--device={context.device}", f"--model={setting.model}", f"--batch_size={setting.batch}",
             f"--precision={setting.precision}", f"--fusion={setting.level}",
             f"--use_cuda_graph={str(setting.graph).lower()}", f"--init_learning_rate={LEARNING_RATE:.5f}",
             f"--num_warmup_batches={1 if context.toy else 10}", "--display_every=10",
             f"--num_batches={step_count(setting.model, setting.precision, setting.batch, context)}"]
    if context.toy:
        found.append("--nomeasure_ceilings")
    if setting.variant == "nondeterministic":
        found.append("--nodeterministic")
    if setting.variant == "untuned":
        found.append("--notune")
    elif not context.rehearsal:
        found.append(f"--plan_cache={context.output / 'plan_cache.json'}")
        found.append("--tune" if setting.graph else "--notune")
    return found


def numbers(report: dict[str, Any]) -> dict[str, Any]:
    """What is kept of the program's own result."""
    steps = report["steps"]
    plan, memory = report["plan"], report["memory"]
    return {**report["summary"], "predicted_peak_bytes": plan["arena_bytes"],
            "measured_peak_bytes": memory["arena_peak_bytes"], "workspace_bytes": plan["workspace_bytes"],
            "lower_bound_bytes": plan["lower_bound_bytes"], "predicted_step_seconds": plan["predicted_step_seconds"],
            "start": report["start"], "layout": plan["layout"], "products": plan["precision"],
            "first_loss": steps[0]["loss"], "last_loss": steps[-1]["loss"],
            "step_seconds": [round(step["seconds"], 7) for step in steps], "telemetry": report.get("telemetry"),
            "libraries": report["machine"]["libraries"], "gpu": report["machine"]["gpu"], "commit": report["commit"]}


def run(setting: Setting, context: Context, seconds: float) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "result.json"
        command = words([context.program, *flags(setting, context)])
        finished = execute([*command, f"--result_json={path}"], seconds, context.environment)
        if finished.status != 0:
            outcome = failed(command, finished)
            if DOES_NOT_FIT_TEXT in finished.err:
                outcome.status = DOES_NOT_FIT
            return outcome
        result = numbers(json.loads(path.read_text(encoding="utf-8")))
    result |= {**dataclasses.asdict(setting), "notes": finished.err.splitlines()}
    return Outcome(OK, command, "", result)


def speed_of(row: dict[str, Any]) -> float:
    """Of the median step, which is what PyTorch's is too."""
    return row["result"]["batch"] / row["result"]["median_step_seconds"]


def measured(rows_done: dict[str, dict], model: str, precision: str) -> list[dict]:
    return [row for row in rows_done.values()
            if row["slice"] == "table" and row["status"] == OK
            and (row["result"]["model"], row["result"]["precision"]) == (model, precision)]


def best_batch(rows_done: dict[str, dict], model: str, precision: str, context: Context) -> int:
    """The fastest so far; the first where none has run."""
    top, several = levels(model, precision)[0], batches(model, context)
    ours = {row["result"]["batch"]: speed_of(row) for row in measured(rows_done, model, precision)
            if row["result"]["level"] == top and row["result"]["graph"] and not row["result"]["variant"]}
    return max(several, key=lambda batch: ours.get(batch, 0.0))


def rank_of(model: str, precision: str, context: Context) -> int:
    """First the first model in fp16, then the others, then all of them in fp32."""
    index = models(context).index(model)
    return 10 * index + (300 if precision == "fp32" else 200 if index else 100)


def settings(rows_done: dict[str, dict], model: str, precision: str, context: Context) -> list[tuple[int, Setting]]:
    top = levels(model, precision)[0]
    rank = rank_of(model, precision, context)
    found = [(rank, Setting(model, precision, batch, top)) for batch in batches(model, context)]
    if context.rehearsal:
        return found
    best = best_batch(rows_done, model, precision, context)
    for level in levels(model, precision):
        found += [(rank + 2 if rank == 100 else 500, Setting(model, precision, best, level, graph))
                  for graph in (True, False) if (level, graph) != (top, True)]
    found += [(600, Setting(model, precision, best, top, True, variant)) for variant in ("untuned", "nondeterministic")]
    return found


def rows(context: Context, rows_done: dict[str, dict]) -> list[Row]:
    return [Row(setting.name, "table", rank, 120 * context.timeout_scale,
                lambda seconds, s=setting: run(s, context, seconds))
            for precision in precisions(context) for model in models(context)
            for rank, setting in settings(rows_done, model, precision, context)]


def text(row: dict[str, Any]) -> str:
    if row["status"] != OK:
        return row["error"]
    result = row["result"]
    return f"{result['images_per_sec']:.1f} +- {result['uncertainty']:.1f} img/s, jitter {result['jitter']:.1f}"
