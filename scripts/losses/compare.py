#!/usr/bin/env python3
"""Runs models for 20 steps and compares their losses with the recorded ones of the CPU backend (tests/losses).

Prints one line for each model: the mean deviation of its steps, the tolerance of the precision (tolerance.py says what
and why), and the largest deviation of a step. Exit code 1 if a model fails or none was compared. Models that the budget
left no time for are named, in the JSON file too (`left_out`), and are no failure: run those again.
"""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import subprocess
import sys
import time
from typing import Any, Optional

import curve
import tolerance

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRECISIONS = ("fp32", "tf32", "fp32_strict", "fp16", "bf16")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--device", choices=("gpu", "cpu"), required=True)
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32")
    parser.add_argument("--fusion", choices=("auto", "none", "bn", "conv"), help="default: the program's")
    parser.add_argument("--models", help="comma list of curves without .json and .fine (default: all)")
    parser.add_argument("--threads", type=int, help="of each run on a CPU (default: the program's)")
    parser.add_argument("--steps", type=int, help="only the first so many, where a run takes long (default: all)")
    parser.add_argument("--jobs", type=int, help="runs side by side (default: 1 on a CPU; on a GPU, whose runs mostly "
                        "wait for their start, half of the cores, at most 8)")
    parser.add_argument("--curves", type=pathlib.Path, default=ROOT / "tests/losses", help="default: %(default)s")
    parser.add_argument("--timeout_s", type=float, default=300, help="for each model (default: %(default)s)")
    parser.add_argument("--budget_s", type=float, default=math.inf, help="for all models (default: none)")
    parser.add_argument("--json", type=pathlib.Path, help="write all numbers to this file")
    options = parser.parse_args()
    known = curve.names(options.curves)
    options.models = options.models.split(",") if options.models else known
    if unknown := [name for name in options.models if name not in known]:
        parser.error(f"--models: {', '.join(unknown)} is not one of {', '.join(known)}")
    if options.steps is not None and options.steps < 1:
        parser.error(f"--steps={options.steps}: at least one step is to be compared")
    if options.jobs is None:
        options.jobs = 1 if options.device == "cpu" else min(8, max(1, len(os.sched_getaffinity(0)) // 2))
    return options


class Comparison:
    def __init__(self, options: argparse.Namespace):
        self._options = options
        self._setting = curve.Setting(options.device, options.precision, options.fusion, options.threads,
                                      options.steps)
        self._kind = tolerance.kind_of(options.device, options.precision)
        self._started = time.monotonic()
        self._rows: dict[str, dict[str, Any]] = {}

    def run(self) -> bool:
        """Whether all that ran is within its tolerance, and something did."""
        with concurrent.futures.ThreadPoolExecutor(self._options.jobs) as pool:
            futures = {pool.submit(self._compare, name): name for name in self._options.models}
            for future in concurrent.futures.as_completed(futures):
                if row := future.result():
                    self._keep(futures[future], row)
        if left_out := self._left_out():
            print(f"no time left in the budget of {self._options.budget_s:g} s for {', '.join(left_out)}")
        if self._options.json:
            self._write()
        return self._ok()

    def _compare(self, name: str) -> Optional[dict[str, Any]]:
        """The row of this model, or None if the budget ended before it."""
        options = self._options
        left = self._started + options.budget_s - time.monotonic()
        if left <= 0:
            return None
        row: dict[str, Any] = {"ok": False, "tolerance": None, "deviation": None, "error": None}
        begin = time.monotonic()
        try:
            recorded = curve.load(options.curves, name, self._kind)
            row["tolerance"] = allowed = recorded["tolerance"][self._kind]
            found, _ = curve.run(options.program, recorded, self._setting, min(options.timeout_s, left))
            expected = curve.Losses(recorded["base_loss"], recorded["weight_loss"]).first(len(found.base_loss))
            apart = curve.deviation(expected, found)
            # Strict JSON has no infinity.
            losses = [loss if math.isfinite(loss) else None for loss in found.base_loss]
            row |= {"ok": apart.mean <= allowed, "base_loss": losses}
            if apart.finite:
                row |= {"deviation": apart.mean, "largest": apart.largest, "where": apart.where}
            else:
                row["error"] = f"no positive number: {apart.where}"
        except curve.RunFailed as failure:
            row["error"] = str(failure)
        except subprocess.TimeoutExpired:
            if left < options.timeout_s:
                return None
            row["error"] = f"not done after {options.timeout_s:g} s"
        return {**row, "seconds": time.monotonic() - begin}

    def _keep(self, name: str, row: dict[str, Any]) -> None:
        self._rows[name] = row
        said = row["error"] or (f"{row['deviation']:.1e} of {row['tolerance']:.1e}, largest {row['largest']:.1e} in "
                                f"{row['where']}")
        print(f"{name:16} {'ok  ' if row['ok'] else 'FAIL'} {said} ({row['seconds']:.1f} s)", flush=True)
        if self._options.json:  # after each model, so that a run that is cut off leaves something
            self._write()

    def _left_out(self) -> list[str]:
        return [name for name in self._options.models if name not in self._rows]

    def _ok(self) -> bool:
        return bool(self._rows) and all(row["ok"] for row in self._rows.values())

    def _write(self) -> None:
        options = self._options
        text = json.dumps({"device": options.device, "precision": options.precision, "fusion": options.fusion,
                           "tolerance_of": self._kind, "ok": self._ok(), "left_out": self._left_out(),
                           "seconds": time.monotonic() - self._started, "models": self._rows}, indent=1)
        fresh = options.json.with_name(options.json.name + ".new")
        fresh.write_text(text + "\n")
        fresh.replace(options.json)


def main() -> None:
    sys.exit(0 if Comparison(arguments()).run() else 1)


if __name__ == "__main__":
    main()
