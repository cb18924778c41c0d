"""Everything that a build with CUDA is to show on a card, in slices that can be cut off and gone on with.

  tests      the tests of the CUDA backend, every kernel against the plain loops of its op
  losses     20 steps of every model against recorded losses of the CPU backend
  sanitizer  memory and race checks of toy models, where compute-sanitizer is there
  table      training speed: model x precision x batch x level of fusion x CUDA graph
  peers      PyTorch on the same card, and ratios

The rows of all slices run in the order of their worth. Each is written to the JSON file as soon as it is there; a
later call skips it. Exit code: 0 all rows are good, 1 a row is bad, 2 nothing can be run here, 3 rows are left.
"""
from __future__ import annotations

import argparse
import pathlib
import signal
import sys
import time
from collections.abc import Collection
from typing import Any

import host
import losses
import peers
import sanitizer
import speed
import suites
import summary
from rows import BAD, FAILED, TIMEOUT, Context, Outcome, Row
from store import Store, StoreError, now

ROOT = pathlib.Path(__file__).resolve().parents[2]  # of the repository, or of a bundle, which is laid out like it
SLICES = ("tests", "losses", "sanitizer", "table", "peers")
PRECISIONS = ("fp16", "fp32", "bf16", "fp32_strict")
LEAST_SECONDS = 5  # no row is started with less
ALL_GOOD, BAD_ROWS, NOTHING_RUNS, ROWS_LEFT, CANNOT_LOAD = 0, 1, 2, 3, 4


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/gpu_check.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--started", type=float, default=time.time(), help=argparse.SUPPRESS)
    parser.add_argument("--only_load", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--timeout_scale", type=float, default=1.0, help=argparse.SUPPRESS)
    parser.add_argument("--slice", choices=(*SLICES, "all"), default="all")
    parser.add_argument("--budget_s", type=float, default=520, help="seconds for this call (default: %(default)s)")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "build/gpu_check/gpu_check.json",
                        help="the result; the plan cache is kept beside it (default: %(default)s)")
    parser.add_argument("--again", action="store_true", help="forget the rows of the chosen slices first")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu",
                        help="cpu: a rehearsal of all this without a card, on toy models in fp32")
    parser.add_argument("--toy", action="store_true", help="toy models in few steps, to see on any device that all of "
                        "this works; speeds mean nothing then")
    parser.add_argument("--models", default="", help="comma list (default: all)")
    parser.add_argument("--precisions", default="", help=f"comma list of {', '.join(PRECISIONS)} (default: all)")
    parser.add_argument("--torch_python", default="python3", help="a Python that has PyTorch (default: %(default)s)")
    options = parser.parse_args(words)
    known = {*speed.GPU_BATCHES, *speed.TOY_BATCHES, *losses.recorded(ROOT)}
    options.models = split(options.models, known, "models", parser)
    options.precisions = split(options.precisions, PRECISIONS, "precisions", parser)
    return options


def split(text: str, known: Collection[str], flag: str, parser: argparse.ArgumentParser) -> tuple[str, ...]:
    words = tuple(word for word in text.split(",") if word)
    if unknown := [word for word in words if word not in known]:
        parser.error(f"--{flag}: {', '.join(unknown)} is not one of {', '.join(sorted(known))}")
    return words


def parts_of(options: argparse.Namespace) -> set[str]:
    return set(SLICES) if options.slice == "all" else {options.slice}


def torch_of(options: argparse.Namespace) -> str | None:
    if "peers" not in parts_of(options):
        return None
    if lacking := peers.probe(options.torch_python):
        print(f"no PyTorch to compare with (--torch_python={options.torch_python}): {lacking}", file=sys.stderr)
        return None
    return options.torch_python


def rows_of(context: Context, parts: set[str], done: dict[str, dict]) -> list[Row]:
    """All rows of these slices, most valuable first. What is worth running next depends on what was found."""
    found = [*suites.rows(context), *losses.rows(context), *sanitizer.rows(context), *speed.rows(context, done),
             *peers.rows(context, done)]
    return sorted((row for row in found if row.part in parts), key=lambda row: row.rank)


def outcome_of(row: Row, seconds: float) -> Outcome:
    try:
        return row.run(seconds)
    except (OSError, ValueError, KeyError, TypeError, IndexError, RuntimeError) as error:
        return Outcome(FAILED, [], f"its report cannot be read: {type(error).__name__}: {error}")


def run_rows(context: Context, parts: set[str], store: Store, deadline: float) -> list[str]:
    """Runs what there is time for; the names of the rows that are left."""
    while True:
        every = rows_of(context, parts, store.rows)
        left = [row for row in every if row.name not in store.rows]
        seconds = deadline - time.time()
        if not left or seconds < LEAST_SECONDS:
            break
        row, started, begin = left[0], now(), time.monotonic()
        outcome = outcome_of(row, min(row.timeout_s, seconds))
        if outcome.status == TIMEOUT and seconds < row.timeout_s:
            print(f"{row.name}: cut off by the budget", file=sys.stderr, flush=True)
            break  # it has not had its time: another call gives it that
        kept = {"slice": row.part, "status": outcome.status, "error": outcome.error, "command": outcome.command,
                "started": started, "seconds": round(time.monotonic() - begin, 2), "result": outcome.result}
        store.data["summary"] = summary.entries({**store.rows, row.name: kept})
        store.put(row.name, kept)
        print(f"[{len(every) - len(left) + 1}/{len(every)}, {deadline - time.time():.0f} s left] {row.name}: "
              f"{summary.line_of(kept)}", file=sys.stderr, flush=True)
    return [row.name for row in left]


def context_of(options: argparse.Namespace, environment: dict[str, str], facts: dict[str, Any]) -> Context:
    return Context(root=ROOT, program=options.bin / "cnn_benchmarks",
                   tests=tuple(sorted(options.bin.glob("cnn_*_cuda_tests"))), device=options.device,
                   environment=environment, output=options.json.resolve().parent, models=options.models,
                   precisions=options.precisions, torch_python=torch_of(options),
                   memory_bytes=host.memory_bytes(facts), processes=host.processes_at_once(facts, options.device),
                   timeout_scale=options.timeout_scale, toy=options.toy or options.device == "cpu")


def check(options: argparse.Namespace) -> int:
    options.bin = options.bin.resolve()
    program = options.bin / "cnn_benchmarks"
    folders = host.wheel_folders([options.torch_python, sys.executable]) + host.toolkit_folders()
    environment = host.environment_for(program, folders)
    host.check_start(program, environment)
    report = host.probe(program, options.device, environment)
    if options.only_load:
        return ALL_GOOD
    store = Store(options.json)
    parts = parts_of(options)
    if options.again:
        store.forget(parts)
    facts = host.machine(report)
    gpu = facts["gpu"] or facts["card"]
    device = gpu["name"] if gpu and options.device == "gpu" else "cpu"
    store.identify({"commit": report.get("commit"), "device": device})
    store.data["machine"] = facts
    store.data["runs"].append({"started": now(), "options": sys.argv[1:], "environment": environment})
    context = context_of(options, environment, facts)
    store.save()
    left = run_rows(context, parts, store, options.started + options.budget_s)
    print(summary.text(store.rows, left))
    if any(row["status"] in BAD for row in store.rows.values() if row["slice"] in parts):
        return BAD_ROWS
    return ROWS_LEFT if left else ALL_GOOD


def end(number: int, _frame: object) -> None:
    sys.exit(128 + number)  # on the way out the running row is killed


def main() -> int:
    signal.signal(signal.SIGTERM, end)
    try:
        return check(arguments(sys.argv[1:]))
    except (host.HostError, StoreError) as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return CANNOT_LOAD if isinstance(error, host.LoadError) else NOTHING_RUNS


if __name__ == "__main__":
    sys.exit(main())
