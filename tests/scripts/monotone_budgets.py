#!/usr/bin/env python3
"""Plans Large Model Support for many budgets of several networks and fails where more memory makes a step slower.

    monotone_budgets.py PROGRAM [--budgets=N] [--models=NAME:BATCH,...] [--machine=PROFILE] [--jobs=N]

Every budget is a run of its own, from the smallest that has a plan to what the step needs without a limit, so that nothing
but the planner connects them.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

MODELS = "resnet50:64,googlenet:64,mobilenet:128,inception3:32,vgg16:64,alexnet:512,resnet152:32,densenet100_k12:256"
NO_PLAN = 3  # the exit status where the budget is too small
MIB = 1 << 20


class Failure(Exception):
    """One line for the user."""


class Planner:
    def __init__(self, program: str, machine: str, model: str, batch: int) -> None:
        data = ["--data_name=cifar10"] if model.startswith("densenet") else []
        self.command = [program, f"--simulate={machine}", f"--model={model}", *data, f"--batch_size={batch}", "--lms", "--lms_simulate_only"]

    def plan(self, limit_mib: int) -> dict[str, Any] | None:
        """The plan of the result file; None where there is none."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "result.json"
            command = [*self.command, f"--lms_limit={limit_mib}", f"--result_json={path}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == NO_PLAN:
                return None
            if done.returncode != 0:
                raise Failure(f"exit code {done.returncode}: {' '.join(command)}\n{done.stderr.strip()[-300:]}")
            return json.loads(path.read_text(encoding="utf-8"))["plan"]


def least_budget(planner: Planner, most: int) -> int:
    """By bisection; the floor that the program prints is not asked."""
    refused, least = 0, most
    while least - refused > 1:
        middle = (refused + least) // 2
        if planner.plan(middle) is None:
            refused = middle
        else:
            least = middle
    return least


def budgets_between(least: int, most: int, count: int) -> list[int]:
    return sorted({least + (most - least) * i // max(1, count - 1) for i in range(count)})


def check(planner: Planner, name: str, count: int, jobs: int) -> list[str]:
    whole = planner.plan(1_000_000)
    if whole is None:
        raise Failure(f"{name}: a limit of 1,000,000 MiB is refused")
    most = whole["arena_bytes"] // MIB + 1
    least = least_budget(planner, most)
    budgets = budgets_between(least, most, count)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        plans = dict(zip(budgets, pool.map(planner.plan, budgets)))
    problems, best = [], (float("inf"), 0)
    for budget, plan in plans.items():
        if plan is None:
            problems.append(f"{name}: no plan in {budget} MiB, but in {least}")
            continue
        seconds = plan["lms"]["predicted_step_seconds"]
        if seconds > best[0]:
            problems.append(f"{name}: {seconds * 1e3:.3f} ms in {budget} MiB, {best[0] * 1e3:.3f} ms in {best[1]} MiB")
        best = min(best, (seconds, budget))
    planned = [plan["lms"] for plan in plans.values() if plan]
    gaps = [plan["predicted_step_seconds"] / plan["lower_bound_seconds"] - 1 for plan in planned]
    print(f"{name}: {len(planned)} budgets from {least} to {most} MiB, {len(problems)} slower than a smaller one, gap to the bound "
          f"{100 * gaps[0]:.1f} % at the least, {100 * sorted(gaps)[len(gaps) // 2]:.1f} % in the median", flush=True)
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", help="cnn_benchmarks")
    parser.add_argument("--budgets", type=int, default=200, help="for each network (%(default)s)")
    parser.add_argument("--models", default=MODELS, help="names and batch sizes (%(default)s)")
    parser.add_argument("--machine", default="p100-pcie3", help="profile that is simulated (%(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once (%(default)s)")
    options = parser.parse_args()
    problems = []
    try:
        for item in options.models.split(","):
            model, _, batch = item.partition(":")
            problems += check(Planner(options.program, options.machine, model, int(batch)), item, options.budgets, options.jobs)
    except (Failure, OSError) as problem:
        print(f"monotone_budgets.py: {problem}", file=sys.stderr)
        return 1
    print("\n".join(problems) or "more memory was never slower")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
