"""A recorded curve (tests/losses/<name>.json), running its flags again, and how far two curves are apart."""
import dataclasses
import json
import math
import os
import pathlib
import subprocess
import tempfile
from typing import Any, Optional

import images

FINE = ".fine"  # after the name, before .json: the curve for fp32_strict of a model that has two
LOSSES = ("base_loss", "weight_loss")  # weight_loss: what weight decay adds, so that total = base + weight


@dataclasses.dataclass(frozen=True)
class Losses:
    base_loss: list[float]
    weight_loss: list[float]

    def first(self, steps: int) -> "Losses":
        return Losses(self.base_loss[:steps], self.weight_loss[:steps])


@dataclasses.dataclass(frozen=True)
class Setting:
    """What a recorded run leaves open."""
    device: str = "cpu"
    precision: str = "fp32"
    fusion: Optional[str] = None
    threads: Optional[int] = None
    steps: Optional[int] = None  # fewer than the recorded ones

    @property
    def flags(self) -> list[str]:
        # The speed of the machine says nothing about losses. Timing engines would take up to a minute of each run, and
        # choose other ones each time.
        return ["--nomeasure_ceilings", *(["--notune"] if self.device == "gpu" else []),
                f"--device={self.device}", f"--precision={self.precision}",
                *([f"--fusion={self.fusion}"] if self.fusion else []),
                *([f"--num_intra_threads={self.threads}"] if self.threads else []),
                *([f"--num_batches={self.steps}"] if self.steps else [])]  # of two the program takes the last


class RunFailed(Exception):
    """A run that left no losses; the text says why."""


def names(folder: pathlib.Path) -> list[str]:
    return sorted({path.name.removesuffix(".json").removesuffix(FINE) for path in folder.glob("*.json")})


def load(folder: pathlib.Path, name: str, kind: str) -> dict[str, Any]:
    """The curve that serves this kind of precision."""
    for file in (folder / f"{name}{FINE}.json", folder / f"{name}.json"):
        if file.exists() and kind in (recorded := json.loads(file.read_text()))["tolerance"]:
            # Networks with two curves have gradients that grow towards the input (see cases.py).
            return {**recorded, "steep": (folder / f"{name}{FINE}.json").exists()}
    raise RunFailed(f"{folder} has no curve for {kind}")


def losses_of(result: dict[str, Any], steps: int) -> Losses:
    rows = result.get("steps") or []
    if len(rows) != steps:
        raise RunFailed(f"{len(rows)} steps were reported, not {steps}")
    # JSON has no infinity: what is not finite comes as null.
    pairs = [tuple(math.nan if row[key] is None else float(row[key]) for key in ("base_loss", "total_loss"))
             for row in rows]
    return Losses([base for base, _ in pairs], [total - base for base, total in pairs])


def run(program: str, recorded: dict[str, Any], setting: Setting, timeout_s: float,
        environment: Optional[dict[str, str]] = None) -> tuple[Losses, dict[str, Any]]:
    """Losses and result file of the recorded flags in this setting. Throws RunFailed or subprocess.TimeoutExpired."""
    with tempfile.TemporaryDirectory(prefix="losses_") as folder:
        result = pathlib.Path(folder) / "result.json"
        command = [program, *recorded["flags"], *setting.flags, f"--result_json={result}"]
        if recorded.get("steep") and setting.device == "gpu" and setting.precision == "fp16":
            # The loss scale is against small gradients. Times 128 some of these leave the range of 16 bits.
            command.append("--fp16_loss_scale=1")
        if recorded["images"]:
            data = pathlib.Path(folder) / "examples.safetensors"
            images.write(data, **recorded["images"], data_set=recorded["data_set"])
            command.append(f"--data_dir={data}")
        # Threads that spin while they wait take the cores of those that run beside.
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s,
                              check=False, env={"OMP_WAIT_POLICY": "passive", **os.environ, **(environment or {})})
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise RunFailed(f"exit code {done.returncode}: {said[-1] if said else 'nothing was said'}")
        report = json.loads(result.read_text())
    return losses_of(report, setting.steps or recorded["steps"]), report


@dataclasses.dataclass(frozen=True)
class Deviation:
    mean: float  # of |log(found / expected)| over the steps; infinite if a loss is not a positive number
    largest: float  # of a step
    where: str  # it is

    @property
    def finite(self) -> bool:
        return math.isfinite(self.mean)


def deviation(expected: Losses, found: Losses) -> Deviation:
    """Of the base loss or of the weight loss, whichever is further off."""
    candidates = []
    for name in LOSSES:
        apart = [abs(math.log(value / wanted)) if math.isfinite(value) and value > 0 else math.inf
                 for wanted, value in zip(getattr(expected, name), getattr(found, name))]
        largest = max(apart)
        candidates.append(Deviation(sum(apart) / len(apart), largest, f"{name} of step {apart.index(largest) + 1}"))
    return max(candidates, key=lambda candidate: candidate.mean)
