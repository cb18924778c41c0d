"""The slice `sanitizer`: compute-sanitizer over toy models, where the host has it."""
from __future__ import annotations

import glob
import os
import re
import shutil

from execute import execute
from rows import BAD, FAILED, OK, Context, Outcome, Row, failed, words

OUR_KERNELS = "cnn6layers4cuda"  # of their mangled names: namespace cnn::layers::cuda
EXIT_CODE = 86  # of compute-sanitizer where it found something
SUMMARY = re.compile(r"(?:ERROR SUMMARY|RACECHECK SUMMARY): (.*)")
# Each adds kernels that the one before it does not have: plain ops; batch norm, joins and 16 bits; every fused form.
TOYS = (("lenet", "fp32", ()), ("resnet20", "fp16", ("--data_name=cifar10", "--fusion=bn")),
        ("resnet20", "fp16", ("--data_name=cifar10", "--fusion=conv")))


def find_tool() -> str | None:
    places = [os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin", *sorted(glob.glob("/usr/local/cuda-*/bin"))]
    return shutil.which("compute-sanitizer") or next(
        (path for place in places if (path := shutil.which("compute-sanitizer", path=place))), None)


def check_flags(tool: str, check: str, context: Context) -> list[str]:
    """Libraries probe the driver with calls that fail: those are no errors of ours. Their kernels synchronise in ways
    that racecheck takes for hazards, so it looks at ours only."""
    if check == "memcheck":
        return ["--report-api-errors=no"]
    known = execute([tool, "--help"], 30, context.environment).out
    return ["--kernel-name" if "--kernel-name" in known else "--kernel-regex", f"kns={OUR_KERNELS}"]


def run(tool: str, check: str, toy: tuple, context: Context, seconds: float) -> Outcome:
    model, precision, flags = toy
    command = words([tool, f"--tool={check}", f"--error-exitcode={EXIT_CODE}", "--print-limit=20",
                     *check_flags(tool, check, context), context.program,
                     f"--device={context.device}", f"--model={model}", f"--precision={precision}", *flags,
                     "--batch_size=4", "--num_warmup_batches=1", "--num_batches=2", "--use_cuda_graph=false", "--notune"])
    finished = execute(command, seconds, context.environment)
    said = SUMMARY.findall(finished.out + finished.err)
    if finished.status == 0 and said:
        return Outcome(OK, command, "", {"found": said[-1]})
    if finished.status == EXIT_CODE and said:
        return Outcome(FAILED, command, f"{check} found: {said[-1]}", {"output": finished.out[:8000]})
    if finished.status == 0:
        return Outcome(FAILED, command, "compute-sanitizer printed no summary", {"output": finished.out[-2000:]})
    outcome = failed(command, finished)
    outcome.result["output"] = finished.out[-4000:]
    return outcome


def rows(context: Context) -> list[Row]:
    tool = find_tool()
    if tool is None or context.rehearsal:
        return []
    return [Row(f"sanitizer/{check}/{model}/{precision}{''.join(flags[1:]).replace('--fusion=', '/')}", "sanitizer",
                150, 120 * context.timeout_scale,
                lambda seconds, c=check, t=(model, precision, flags): run(tool, c, t, context, seconds))
            for model, precision, flags in TOYS for check in ("memcheck", "racecheck")]


def text(row: dict) -> str:
    return row["error"] if row["status"] in BAD else row["result"]["found"]
