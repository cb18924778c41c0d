#!/usr/bin/env python3
"""Prints a table of what the LMS planner predicts for several networks, described machines and budgets, as tab-separated text.

The budgets lie between the smallest one with a plan and the need of the step. Each row has the share of the unlimited
speed and the gap of the plan to its lower bound. With --against the exit status is 1 if a plan is slower than in an earlier
table. tests/scripts/monotone_budgets.py checks that no larger budget is slower.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import pathlib
import sys
import time
from typing import Any

from lms import MIB, PlotError, run

NETWORKS = ("googlenet:64,resnet50:64,resnet152:32,inception3:64,inception4:32,mobilenet:128,"
            "densenet40_k12:64:cifar10")
MACHINES = "p100-pcie3,v100-nvlink2,h200"


@dataclasses.dataclass(frozen=True)
class Network:
    """A network with its batch size, and a data set where it is not the usual one."""
    model: str
    batch: int
    data: str = ""

    @staticmethod
    def parse(text: str) -> "Network":
        words = text.split(":")
        if len(words) not in (2, 3) or not words[1].isdigit():
            raise argparse.ArgumentTypeError(f"{text}: give model:batch_size or model:batch_size:data_name")
        return Network(words[0], int(words[1]), *words[2:])

    def flags(self, machine: str) -> list[str]:
        data = [f"--data_name={self.data}"] if self.data else []
        return [f"--simulate={machine}", f"--model={self.model}", f"--batch_size={self.batch}", *data, "--lms", "--lms_simulate_only"]

    @property
    def name(self) -> str:
        return f"{self.model}:{self.batch}"


@dataclasses.dataclass(frozen=True)
class Row:
    network: str
    machine: str
    mib: int  # the budget
    share: float  # of the unlimited speed, in percent
    gap: float  # of the predicted step over the bound, in percent
    predicted: float  # milliseconds
    bound: float
    relative: float  # need / budget over need / floor
    wall: float  # seconds of the program

    @property
    def key(self) -> tuple[str, str, int]:
        return self.network, self.machine, self.mib

    def text(self) -> str:
        return "\t".join([self.network, self.machine, str(self.mib), f"{self.relative:.3f}", f"{self.share:.1f}", f"{self.gap:.1f}",
                          f"{self.predicted:.3f}", f"{self.bound:.3f}", f"{self.wall:.1f}"])

    @staticmethod
    def parse(line: str) -> "Row":
        network, machine, mib, relative, share, gap, predicted, bound, wall = line.split("\t")
        return Row(network, machine, int(mib), float(share), float(gap), float(predicted), float(bound), float(relative), float(wall))


HEADER = "network\tmachine\tMiB\trelative\tshare_%\tgap_%\tpredicted_ms\tbound_ms\tseconds"


def plan_within(options: argparse.Namespace, network: Network, machine: str, mib: int) -> dict[str, Any] | None:
    result = run(options.program, [*network.flags(machine), *options.flags, f"--lms_limit={mib}"])
    return result["plan"]["lms"] if result else None


def limits(options: argparse.Namespace, network: Network, machine: str) -> tuple[int, int]:
    """Bytes of the smallest plan, and of the step without one."""
    # A budget far too large tells what the step needs, and a plan just below that the floor.
    whole = run(options.program, [*network.flags(machine), *options.flags, "--lms_limit=1000000"])
    if whole is None:
        raise PlotError(f"{network.name} on {machine}: --lms_limit=1000000 does not fit")
    need = whole["plan"]["arena_bytes"]
    plan = plan_within(options, network, machine, int(need * 0.97) // MIB)
    if plan is None or not plan["necessary"]:
        raise PlotError(f"{network.name} on {machine}: no plan within 97 % of {need} bytes")
    return plan["floor_bytes"], plan["need_bytes"]


def row_of(options: argparse.Namespace, network: Network, machine: str, mib: int) -> Row | None:
    start = time.monotonic()
    plan = plan_within(options, network, machine, mib)
    if plan is None or not plan["necessary"]:
        return None
    seconds, bound = plan["predicted_step_seconds"], plan["lower_bound_seconds"]
    return Row(network.name, machine, mib, 100 * plan["unlimited_step_seconds"] / seconds, 100 * (seconds / bound - 1),
               1e3 * seconds, 1e3 * bound, plan["floor_bytes"] / (mib * MIB), time.monotonic() - start)


def spread(floor: int, need: int, points: int) -> list[int]:
    """Budgets in MiB at equal distances of need over budget, so that small budgets, which cost the most, lie dense."""
    most = need / floor
    ratios = [most + (1.02 - most) * i / (points - 1) for i in range(points)]
    return sorted({max(-int(-floor // MIB), int(need / ratio) // MIB) for ratio in ratios})


def rows_of(options: argparse.Namespace) -> list[Row]:
    """Runs the program for all budgets of all networks on all machines, and prints each row as it comes."""
    rows = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for network in options.networks:
            for machine in options.machines.split(","):
                floor, need = limits(options, network, machine)
                sizes = spread(floor, need, options.points)
                for row in pool.map(lambda mib, n=network, m=machine: row_of(options, n, m, mib), sizes):
                    if row is not None:
                        rows.append(row)
                        print(row.text(), flush=True)
    return rows


def gaps(options: argparse.Namespace) -> int:
    slower = []
    rows = rows_of(options)
    if options.against:
        lines = options.against.read_text(encoding="utf-8").splitlines()
        before = {row.key: row for row in map(Row.parse, (line for line in lines if line and not line.startswith(("#", "network\t"))))}
        for row in rows:
            old = before.get(row.key)
            if old and row.predicted > old.predicted * (1 + options.tolerance / 100):
                slower.append(f"# slower: {row.text()}, before {old.predicted:.3f} ms")
    print("\n".join([*slower, f"# {len(rows)} plans, {len(slower)} slower than in {options.against}" if options.against
                     else f"# {len(rows)} plans"]))
    return 1 if slower else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("program", help="cnn_benchmarks")
    parser.add_argument("--networks", default=NETWORKS, help="model:batch_size or model:batch_size:data_name, separated by commas (%(default)s)")
    parser.add_argument("--machines", default=MACHINES, help="profiles that are simulated (%(default)s)")
    parser.add_argument("--points", type=int, default=12, help="budgets of each network and machine (%(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time (%(default)s)")
    parser.add_argument("--against", type=pathlib.Path, help="an earlier table: the exit status is 1 if a plan is slower than there")
    parser.add_argument("--tolerance", type=float, default=0.5, help="percent by which a plan may be slower than there (%(default)s)")
    parser.add_argument("--flags", nargs="*", default=[], metavar="WORD=VALUE", help="more flags of the program, without their dashes")
    options = parser.parse_args()
    options.flags = [f"--{flag}" for flag in options.flags]
    if options.points < 2 or options.jobs < 1:
        parser.error("--points is at least 2, --jobs at least 1")
    try:
        options.networks = [Network.parse(text) for text in options.networks.split(",")]
        print("# scripts/plots/lms_gaps.py " + " ".join(word for word in sys.argv[1:] if word != options.program))
        print(HEADER)
        return gaps(options)
    except (PlotError, OSError, argparse.ArgumentTypeError) as problem:
        print(f"lms_gaps.py: {problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
