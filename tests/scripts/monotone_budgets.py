#!/usr/bin/env python3
"""Plans Large Model Support for many budgets of several networks and fails where more memory makes a step slower, or where a plan
beats the printed lower bound.

    monotone_budgets.py PROGRAM [--budgets=N] [--models=NAME:BATCH,...] [--machines=PROFILE,...] [--jobs=N]
    monotone_budgets.py --self-test

Every budget is a run of its own, from the smallest that has a plan to what the step needs without a limit, so that nothing
but the planner connects them. The gap of a plan to its bound is printed for every budget.
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
MACHINES = "p100-pcie3,v100-nvlink2,h200"
ROUNDING = 1e-9  # the share by which a plan may seem to beat its bound
NO_PLAN = 3  # the exit status if the budget is too small
MIB = 1 << 20


class Failure(Exception):
    """An error with one line for the user."""


class Planner:
    def __init__(self, program: str, machine: str, model: str, batch: int) -> None:
        data = ["--data_name=cifar10"] if model.startswith("densenet") else []
        self.command = [program, f"--simulate={machine}", f"--model={model}", *data, f"--batch_size={batch}", "--lms", "--lms_simulate_only"]

    def plan(self, limit_mib: int) -> dict[str, Any] | None:
        """Returns the plan in the result file, or None."""
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
    """Returns the smallest budget with a plan, by bisection and without the floor that the program prints."""
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


def plan_gap(plan: dict[str, Any]) -> float:
    """Returns the share by which a plan is slower than its bound; -1 if the bound is infinite (null in the file)."""
    bound = plan["lower_bound_seconds"]
    return -1 if bound is None else plan["predicted_step_seconds"] / bound - 1


def problems_of(name: str, plans: dict[int, dict[str, Any] | None]) -> list[str]:
    """Returns a line for each plan that is missing, slower than a smaller budget's, or faster than its bound."""
    problems, best = [], (float("inf"), 0)
    for budget, plan in plans.items():
        if plan is None:
            problems.append(f"{name}: no plan in {budget} MiB, but in {min(plans)}")
            continue
        seconds = plan["predicted_step_seconds"]
        if seconds > best[0]:
            problems.append(f"{name}: {seconds * 1e3:.3f} ms in {budget} MiB, {best[0] * 1e3:.3f} ms in {best[1]} MiB")
        if plan_gap(plan) < -ROUNDING:
            problems.append(f"{name}: {seconds * 1e3:.3f} ms in {budget} MiB beat the lower bound of {plan['lower_bound_seconds']} s")
        best = min(best, (seconds, budget))
    return problems


def gap_lines(name: str, plans: dict[int, dict[str, Any] | None], problems: int) -> list[str]:
    gaps = {budget: 100 * plan_gap(plan) for budget, plan in plans.items() if plan}
    ascending = sorted(gaps.values())
    return [f"{name}: {len(gaps)} budgets from {min(plans)} to {max(plans)} MiB, {problems} wrong, gap to the bound "
            f"{gaps[min(gaps)]:.1f} % at the least, {ascending[len(ascending) // 2]:.1f} % in the median, {ascending[-1]:.1f} % at most",
            "  gap by MiB: " + " ".join(f"{budget}:{gap:.1f}" for budget, gap in gaps.items())]


def check(planner: Planner, name: str, count: int, jobs: int) -> list[str]:
    whole = planner.plan(1_000_000)
    if whole is None:
        raise Failure(f"{name}: a limit of 1,000,000 MiB is refused")
    most = whole["arena_bytes"] // MIB + 1
    least = least_budget(planner, most)
    budgets = budgets_between(least, most, count)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(planner.plan, budgets))
    plans = {budget: plan and plan["lms"] for budget, plan in zip(budgets, found)}
    problems = problems_of(name, plans)
    print("\n".join(gap_lines(name, plans, len(problems))), flush=True)
    return problems


def self_test() -> int:
    """Runs the checks on results that are known to be right or wrong."""

    def plan(seconds: float, bound: float | None) -> dict[str, Any]:
        return {"predicted_step_seconds": seconds, "lower_bound_seconds": bound}

    right = {10: plan(3.0, 2.9), 20: plan(2.0, 2.0), 30: plan(2.0, 2.0 * (1 + ROUNDING / 2))}
    cases = [(right, 0), ({**right, 40: plan(2.1, 2.0)}, 1), ({**right, 40: plan(1.9, 2.0)}, 1), ({**right, 40: plan(2.0, None)}, 1),
             ({**right, 40: None}, 1)]
    failed = [plans for plans, expected in cases if len(problems_of("net", plans)) != expected]
    printed = gap_lines("net", right, 0)[1] == "  gap by MiB: 10:3.4 20:0.0 30:-0.0"
    print(f"{len(failed)} of {len(cases)} cases judged wrongly, gaps printed {'right' if printed else 'wrong'}")
    return 1 if failed or not printed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", nargs="?", help="cnn_benchmarks")
    parser.add_argument("--budgets", type=int, default=200, help="for each network (%(default)s)")
    parser.add_argument("--models", default=MODELS, help="names and batch sizes (%(default)s)")
    parser.add_argument("--machines", default=MACHINES, help="profiles that are simulated (%(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once (%(default)s)")
    parser.add_argument("--self-test", action="store_true", help="check the checks and run no program")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.program is None:
        parser.error("PROGRAM is missing: give the path of cnn_benchmarks")
    problems = []
    try:
        for machine in options.machines.split(","):
            for item in options.models.split(","):
                model, _, batch = item.partition(":")
                planner = Planner(options.program, machine, model, int(batch))
                problems += check(planner, f"{machine} {item}", options.budgets, options.jobs)
    except (Failure, OSError) as problem:
        print(f"monotone_budgets.py: {problem}", file=sys.stderr)
        return 1
    print("\n".join(problems) or "more memory was never slower, and no plan beat its bound")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
