#!/usr/bin/env python3
"""Prints a Markdown table of predicted training speeds by machine and --fusion: what the simulator says, no measurement.

    scripts/fusion_table.py --program=build/cuda/cnn_benchmarks
    scripts/fusion_table.py --machines=a100,h100 --model=resnet152 --batch_size=128
    scripts/fusion_table.py --emulated=build/cuda/tests/support/cuda/emulated    # counts kernels on the emulated GPU too
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

ROOT = pathlib.Path(__file__).resolve().parents[1]
FUSIONS = ("none", "bn", "conv")
# A program without CUDA's libraries has no fused convolutions to describe.
NO_SUCH_FUSION = "--fusion=conv needs the CUDA backend"


class TableError(Exception):
    """One line for the user."""


def simulation(program: str, machine: str, fusion: str, flags: list[str]) -> dict[str, Any] | None:
    """The prediction of one step; None where this program cannot fuse so far."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "result.json"
        command = [program, f"--simulate={machine}", f"--fusion={fusion}", *flags, f"--result_json={path}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0 and NO_SUCH_FUSION in done.stderr:
            return None
        if done.returncode != 0:
            raise TableError(f"exit code {done.returncode}: {' '.join(command)}\n{done.stderr.strip()[-300:]}")
        return json.loads(path.read_text(encoding="utf-8"))["simulation"]


def counted(folder: str, flags: list[str], steps: int) -> int:
    """The kernels of ours and of the libraries in so many steps on the emulated GPU, of small images: it is slow."""
    with tempfile.TemporaryDirectory() as temporary:
        path = pathlib.Path(temporary) / "counts"
        command = [f"{folder}/cnn_benchmarks", *flags, "--device=gpu", "--notune", "--nomeasure_ceilings",
                   "--nouse_cuda_graph", "--num_warmup_batches=0", "--image_size=32", "--batch_size=2",
                   f"--num_batches={steps}"]
        environment = {**os.environ, "LD_LIBRARY_PATH": folder, "CNN_EMULATED_COUNTS": str(path)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode != 0:
            raise TableError(f"exit code {done.returncode}: {' '.join(command)}\n{done.stderr.strip()[-300:]}")
        counts = dict(line.split() for line in path.read_text(encoding="utf-8").splitlines())
        return int(counts["launches"]) + int(counts["executions"])


def kernels_per_step(folder: str | None, fusion: str, flags: list[str]) -> int | None:
    if folder is None:
        return None
    flags = [*flags, f"--fusion={fusion}"]
    return counted(folder, flags, 2) - counted(folder, flags, 1)


def row(machine: str, fusion: str, found: dict[str, Any] | None, kernels: int | None) -> str:
    launched = "–" if kernels is None else kernels
    if found is None:
        return f"| {machine} | {fusion} | – | – | – | – | – | {launched} |"
    norms = sum(op["seconds"] for op in found["by_op"] if "norm" in op["op"] and "conv" not in op["op"])
    share = norms / sum(op["seconds"] for op in found["by_op"])
    operations = sum(op["nodes"] for op in found["by_op"])
    return (f"| {machine} | {fusion} | {found['images_per_sec']:.0f} | {1e3 * found['step_seconds']:.2f} | "
            f"{1e-6 * found['bytes_per_image']:.0f} | {100 * share:.0f} % | {operations} | {launched} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build/cuda/cnn_benchmarks"))
    parser.add_argument("--machines", default="h100,h200", help="names of scripts/machines, or files, with commas between")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch_size", type=int, default=256)
    parser.add_argument("--precision", default="fp16")
    parser.add_argument("--emulated", metavar="FOLDER", help="of the program on the emulated GPU, to count kernels per step")
    asked = parser.parse_args()
    flags = [f"--model={asked.model}", f"--batch_size={asked.batch_size}", f"--precision={asked.precision}"]
    print("| machine | fusion | images/sec | step, ms | MB for each image | time in batch norms of their own | operations | "
          "kernels per step |")
    print("|---|---|---|---|---|---|---|---|")
    try:
        kernels = {fusion: kernels_per_step(asked.emulated, fusion, flags) for fusion in FUSIONS}
        for machine in asked.machines.split(","):
            for fusion in FUSIONS:
                print(row(machine, fusion, simulation(asked.program, machine, fusion, flags), kernels[fusion]), flush=True)
    except (TableError, OSError) as error:
        print(f"fusion_table.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
