#!/usr/bin/env python3
"""Draws what scripts/peers.sh has measured: the speed of each network in this program and its peers, as bars.

A bar is the median of a program's steps, as a multiple of the slowest program's; the images a second stand above it.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

import chart

ROOT = pathlib.Path(__file__).resolve().parents[2]


class PlotError(Exception):
    """One line for the user."""


def bars_of(measured: dict[str, Any]) -> chart.BarChart:
    networks = {name: programs for name, programs in measured["models"].items() if len(programs) > 1}
    if not networks:
        raise PlotError("no network was measured in two programs: give scripts/peers.sh a --torch_python or a --tf_python")
    groups = []
    for name, row in networks.items():
        slowest = min(result["median"] for result in row.values())
        bars = {program: chart.Bar(result["median"] / slowest, f"{result['median']:.1f}") for program, result in row.items()}
        groups.append(chart.Group(f"{name}, {measured['batches'][name]}", bars))
    most = max(bar.height for group in groups for bar in group.bars.values())
    step = next(step for step in (0.5, 1, 2, 5, 10, 20, 50, most) if most * 1.1 / step <= 6)
    ticks = [(i * step, f"{i * step:g}x") for i in range(int(most * 1.1 / step) + 2)]
    machine = measured["machine"]
    work = "training" if measured["mode"] == "training" else "forward only"
    return chart.BarChart(
        f"Images a second on a CPU, {work}, {measured['precision']}",
        f"{machine['name']}, {measured['threads']} threads; medians of {measured['rounds']} rounds in which the programs took turns",
        chart.Axis("network, images in a batch", []), chart.Axis("times the slowest program's speed", ticks),
        {program: label(program, result["version"]) for row in networks.values() for program, result in row.items()}, groups)


def label(program: str, version: str) -> str:
    if program == "this program":
        return program
    return f"{'TensorFlow' if program == 'tf_cnn_benchmarks' else program} {version.split('+')[0]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("json", type=pathlib.Path, help="the file that scripts/peers.sh --json has written")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/machine/plots", help="folder of the SVG files (%(default)s)")
    options = parser.parse_args()
    try:
        chart.write(bars_of(json.loads(options.json.read_text(encoding="utf-8"))), options.out, "speed_beside_peers")
    except (PlotError, OSError) as problem:
        print(f"peers.py: {problem}", file=sys.stderr)
        return 1
    except (json.JSONDecodeError, KeyError, TypeError) as problem:
        print(f"peers.py: {options.json} is not a file of scripts/peers.sh --json: {problem!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
