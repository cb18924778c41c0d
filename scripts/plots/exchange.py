#!/usr/bin/env python3
"""Draws what an exchange of gradients takes: time over bytes, beside MPI_Allreduce, a copy of as many bytes, and the bound.

All of them are measured in turn by all_reduce_benchmark, in one run of processes that mpirun starts on this host.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import chart

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINES = (("this program", "median_seconds"), ("MPI_Allreduce", "mpi_median_seconds"), ("memcpy", "memcpy_median_seconds"),
         ("hardware bound", "bound_seconds"))


class PlotError(Exception):
    """One line for the user."""


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rows.json"
        command = ["mpirun", *root, "--oversubscribe", "-np", str(options.ranks), options.program, "-b", "4K", "-e", options.largest,
                   "-f", "4", "--compare=mpi", "-J", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise PlotError(f"exit code {done.returncode}: {' '.join(command)}\n{done.stderr.strip()[-300:]}")
        return json.loads(path.read_text(encoding="utf-8"))["rows"]


def time_label(seconds: float) -> str:
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size * 0.999:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def time_axis(values: list[float]) -> chart.Axis:
    first, last = 1e-9, 1e-9
    while first * 10 <= min(values):
        first *= 10
    while last < max(values):
        last *= 10
    ticks = [first]
    while ticks[-1] < last * 0.999:
        ticks.append(ticks[-1] * 10)
    return chart.Axis("time of one exchange", [(value, time_label(value)) for value in ticks], log=True)


def exchange_chart(rows: list[dict[str, Any]], ranks: int) -> chart.Chart:
    series = []
    for name, key in LINES:
        points = [(row["bytes"], row[key]) for row in rows if row.get(key)]
        series.append(chart.Series(name, points, bound=key == "bound_seconds"))
    sizes = [row["bytes"] for row in rows]
    return chart.Chart("Summing gradients of processes on one host", f"{ranks} ranks, median of a size; lower is better",
                       chart.Axis("bytes of the buffer", [(size, chart.bytes_label(size)) for size in sizes], log=True),
                       time_axis([y for line in series for _, y in line.points]), series)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", help="all_reduce_benchmark")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "allreduce/plots", help="folder of the SVG files (%(default)s)")
    parser.add_argument("--ranks", type=int, default=2, help="processes (%(default)s)")
    parser.add_argument("--largest", default="64M", help="bytes of the largest buffer, with K, M or G (%(default)s)")
    options = parser.parse_args()
    try:
        chart.write(exchange_chart(measure(options), options.ranks), options.out, "time_over_bytes")
    except (PlotError, OSError) as problem:
        print(f"exchange.py: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
