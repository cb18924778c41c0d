"""The slice `peers`: PyTorch on the same card, same networks, batches and precisions (scripts/peers/torch_step.py)."""
from __future__ import annotations

import json
import statistics

import speed
from execute import execute
from rows import DOES_NOT_FIT, FAILED, OK, Context, Outcome, Row, failed, words

# Compiling takes a minute and more for each network, so it comes last.
GPU_VARIANTS = (("eager", 1), ("graph", 1), ("compile", 700))
CPU_VARIANTS = (("eager", 1),)


def probe(python: str) -> str:
    """Why PyTorch cannot be had from that Python; empty if it can."""
    finished = execute([python, "-c", "import torch; print(torch.__version__)"], 120)
    return "" if finished.status == 0 else finished.failure()


def run(model: str, precision: str, batch: int, variant: str, context: Context, seconds: float) -> Outcome:
    command = words([context.torch_python, context.root / "scripts/peers/torch_step.py", f"--model={model}",
                     f"--device={'cpu' if context.rehearsal else 'cuda'}", f"--variant={variant}",
                     f"--precision={precision}", f"--batch_size={batch}",
                     f"--steps={speed.step_count(model, precision, batch, context)}",
                     f"--warmup={1 if context.rehearsal else 10}", f"--learning_rate={speed.LEARNING_RATE}"])
    finished = execute(command, seconds)
    if finished.status != 0:
        outcome = failed(command, finished)
        if "CUDA out of memory" in finished.err:
            outcome.status = DOES_NOT_FIT
        return outcome
    result = json.loads(finished.out.splitlines()[-1])
    if not result["seconds"]:
        return Outcome(FAILED, command, "PyTorch timed no step")
    result |= {"model": model, "precision": precision, "batch": batch, "variant": variant,
               "images_per_sec": batch / statistics.median(result["seconds"])}
    return Outcome(OK, command, "", result)


def rows(context: Context, rows_done: dict[str, dict]) -> list[Row]:
    """Each right after this program's own rows of that network, so that both meet the card in the same state."""
    if context.torch_python is None:
        return []
    found = []
    for precision in speed.precisions(context):
        for model in speed.models(context):
            if model not in speed.GPU_BATCHES:
                continue  # scripts/peers has no such network
            batch = speed.best_batch(rows_done, model, precision, context)
            for variant, later in CPU_VARIANTS if context.rehearsal else GPU_VARIANTS:
                rank = later if later > 1 else speed.rank_of(model, precision, context) + later
                found.append(Row(f"peers/{model}/{precision}/b{batch}/{variant}", "peers", rank,
                                 (300 if variant == "compile" else 120) * context.timeout_scale,
                                 lambda seconds, m=model, p=precision, b=batch, v=variant: run(m, p, b, v, context,
                                                                                               seconds)))
    return found


def text(row: dict) -> str:
    return row["error"] if row["status"] != OK else f"{row['result']['images_per_sec']:.1f} img/s"
