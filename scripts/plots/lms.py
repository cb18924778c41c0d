#!/usr/bin/env python3
"""Draws what a memory budget costs: the share of the unlimited speed over the budget, for each LMS policy, with the bound.

The first chart is simulated, on the profile of a machine. With --measured a second one is of real steps on this CPU,
which plays a device with a memory and a link of its own, beside what the plan of each run predicts.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any

import chart

ROOT = pathlib.Path(__file__).resolve().parents[2]
POLICIES = "planned,dtr,superneurons,recompute,capuchin,tflms2,window,vdnn_dynamic"
NO_PLAN = 3  # the exit status where a policy has no plan of that size
MIB = 1 << 20


class PlotError(Exception):
    """One line for the user."""


def run(program: str, flags: list[str]) -> dict[str, Any] | None:
    """The result of a run; None where it does not fit."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "result.json"
        command = [program, *flags, f"--result_json={path}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == NO_PLAN:
            return None
        if done.returncode != 0:
            raise PlotError(f"exit code {done.returncode}: {' '.join(command)}\n{done.stderr.strip()[-300:]}")
        return json.loads(path.read_text(encoding="utf-8"))


def budgets(least: float, most: float, points: int) -> list[int]:
    """In MiB, from the smallest with a plan to what the step needs."""
    return sorted({max(1, -int(-(least + (most - least) * i / (points - 1)) // MIB)) for i in range(points)})


def percent_axis(title: str, points: list[tuple[float, float]]) -> chart.Axis:
    least = min((y for _, y in points), default=0)
    first = max(0, int(least // 10) * 10)
    return chart.Axis(title, [(value, f"{value} %") for value in range(first, 101, 10)])


def memory_axis(points: list[tuple[float, float]]) -> chart.Axis:
    least, most = min(x for x, _ in points), max(x for x, _ in points)
    step = next(step for step in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if (most - least) / step <= 8)
    first, last = int(least // step), -int(-most // step)
    return chart.Axis("memory budget, GiB", [(i * step, f"{i * step:g}") for i in range(first, last + 1)])


def gib(mib: float) -> float:
    return mib / 1024


def simulated(options: argparse.Namespace) -> chart.Chart:
    base = [f"--simulate={options.machine}", f"--model={options.model}", f"--batch_size={options.batch_size}"]
    # A budget far too large is refused by no policy and tells what the step needs.
    whole = run(options.program, [*base, "--lms", "--lms_limit=1000000"])
    if whole is None:
        raise PlotError("--lms_limit=1000000 does not fit: the host of that machine is too small")
    need = whole["plan"]["arena_bytes"]
    probe = run(options.program, [*base, "--lms", f"--lms_limit={int(need * 0.9) // MIB}"])
    least = probe["plan"]["lms"]["floor_bytes"] if probe else need * 0.5
    series = {name: chart.Series(name, []) for name in options.policies.split(",")}
    bound = chart.Series("no plan is faster", [], bound=True)
    for budget in budgets(least, need, options.points):
        for name, line in series.items():
            result = run(options.program, [*base, "--lms", f"--lms_policy={name}", f"--lms_limit={budget}"])
            if result is None:
                continue
            plan = result["plan"]["lms"]
            unlimited = plan["unlimited_step_seconds"]
            line.points.append((gib(budget), 100 * unlimited / plan["predicted_step_seconds"]))
            if name == "planned":
                bound.points.append((gib(budget), 100 * unlimited / plan["lower_bound_seconds"]))
    all_points = [point for line in [*series.values(), bound] for point in line.points]
    return chart.Chart(f"Training {options.model}, batch {options.batch_size}, in less memory",
                       f"simulated on {options.machine}; without a limit the step needs {gib(need / MIB):.1f} GiB",
                       memory_axis(all_points), percent_axis("speed, of that without a limit", all_points), [bound, *series.values()])


def seconds_of(result: dict[str, Any]) -> float:
    return statistics.median(step["seconds"] for step in result["steps"])


def measured(options: argparse.Namespace) -> chart.Chart:
    base = ["--device=cpu", f"--model={options.model}", f"--batch_size={options.measured_batch_size}",
            f"--num_batches={options.steps}", "--num_warmup_batches=3", "--nomeasure_ceilings"]
    whole = run(options.program, base)
    if whole is None:
        raise PlotError(f"--measured_batch_size={options.measured_batch_size} does not fit without --lms")
    need, unlimited = whole["plan"]["arena_bytes"], seconds_of(whole)
    series = []
    bound = chart.Series("no plan is faster", [], bound=True)
    for name in options.measured_policies.split(","):
        predicted, seen = chart.Series(name, []), chart.Series(f"{name}, measured", [], marks=True)
        for budget in budgets(need * 0.35, need * 0.95, options.measured_points):
            result = run(options.program, [*base, "--lms", f"--lms_policy={name}", f"--device_memory_mb={budget}",
                                           f"--emulate_link_gbps={options.link}"])
            if result is None or not result["plan"]["lms"]["necessary"]:
                continue
            plan = result["plan"]["lms"]
            predicted.points.append((gib(budget), 100 * plan["unlimited_step_seconds"] / plan["predicted_step_seconds"]))
            seen.points.append((gib(budget), min(100.0, 100 * unlimited / seconds_of(result))))
            if name == "planned":
                bound.points.append((gib(budget), 100 * plan["unlimited_step_seconds"] / plan["lower_bound_seconds"]))
        series += [predicted, seen]
    all_points = [point for line in [*series, bound] for point in line.points]
    if not all_points:
        raise PlotError("no budget needed a plan: give a larger --measured_batch_size")
    return chart.Chart(f"{options.model}, batch {options.measured_batch_size}, on a CPU that plays a device",
                       f"circles are measured, lines are what the plans predict; a link of {options.link} GB/s",
                       memory_axis(all_points), percent_axis("speed, of that without a limit", all_points), [bound, *series])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", help="cnn_benchmarks")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "lms/plots", help="folder of the SVG files (%(default)s)")
    parser.add_argument("--machine", default="p100-pcie3", help="profile that is simulated (%(default)s)")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch_size", type=int, default=200)
    parser.add_argument("--policies", default=POLICIES, help="(%(default)s)")
    parser.add_argument("--points", type=int, default=24, help="budgets of the simulated chart (%(default)s)")
    parser.add_argument("--measured", action="store_true", help="measure on this CPU too, for some minutes")
    parser.add_argument("--measured_batch_size", type=int, default=8)
    parser.add_argument("--measured_policies", default="planned,tflms2", help="(%(default)s)")
    parser.add_argument("--measured_points", type=int, default=6)
    parser.add_argument("--steps", type=int, default=10, help="timed steps of a measured run (%(default)s)")
    parser.add_argument("--link", default="0.5,0.5", help="10^9 bytes a second out and in of the device that is played")
    options = parser.parse_args()
    if options.points < 2 or options.measured_points < 2:
        parser.error("--points and --measured_points are at least 2")
    try:
        chart.write(simulated(options), options.out, "speed_over_memory")
        if options.measured:
            chart.write(measured(options), options.out, "speed_over_memory_measured")
    except (PlotError, OSError) as problem:
        print(f"lms.py: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
