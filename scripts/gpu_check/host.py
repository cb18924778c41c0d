"""The host: where its CUDA libraries are, what the program finds there, and what the card and its driver are."""
from __future__ import annotations

import glob
import json
import os
import pathlib
import platform
import re
import tempfile
from typing import Any

from execute import execute

NO_DEVICE = "no CUDA device"
# Messages of the program where a build with an older toolkit would run on this host.
OLD_DRIVER = ("the NVIDIA driver takes CUDA up to", "cudaErrorInsufficientDriver", "cudaErrorUnsupportedPtxVersion")
# cuDNN loads these by name when it compiles an engine; the program itself does not name them.
LOADED_LATER = ("libnvrtc.so",)
PROCESSES = 4  # of tests: the reference loops on the CPU take longer than the kernels
CARD = ("name", "driver_version", "memory.total", "pstate", "clocks.sm", "clocks.max.sm", "clocks.mem",
        "power.limit", "temperature.gpu", "pci.bus_id", "compute_mode")


class HostError(Exception):
    """Nothing can be run here; one line."""


class LoadError(HostError):
    """This program cannot be run here; one that is built here might."""


def wheel_folders(pythons: list[str]) -> list[pathlib.Path]:
    """The lib folders of NVIDIA's wheels, which PyTorch brings."""
    found = []
    for python in dict.fromkeys(pythons):
        finished = execute([python, "-c", "import nvidia; print(*nvidia.__path__, sep='\\n')"], 60)
        if finished.status == 0:
            found += [pathlib.Path(lib) for home in finished.out.split("\n") if home
                      for lib in sorted(glob.glob(f"{home}/*/lib"))]
    return found


def toolkit_folders() -> list[pathlib.Path]:
    homes = [os.environ.get("CUDA_HOME", "/usr/local/cuda"), *sorted(glob.glob("/usr/local/cuda-*"), reverse=True)]
    return [pathlib.Path(home) / lib for home in homes for lib in ("lib64", "targets/x86_64-linux/lib")]


def missing_libraries(program: pathlib.Path, environment: dict[str, str]) -> list[str]:
    """Names that the loader does not find; asks the loader itself, which runs nothing then."""
    finished = execute([str(program)], 60, {**environment, "LD_TRACE_LOADED_OBJECTS": "1"})
    return re.findall(r"^\s*(\S+) => not found", finished.out, re.M)


def folders_with(names: list[str], folders: list[pathlib.Path]) -> list[pathlib.Path]:
    """For each name the first folder that has it, without repetition."""
    found = [next((folder for folder in folders if (folder / name).exists()), None) for name in names]
    return list(dict.fromkeys(folder for folder in found if folder))


def other_versions(name: str, folders: list[pathlib.Path]) -> list[str]:
    stem = name.split(".so")[0]
    return sorted({path.name for folder in folders for path in folder.glob(f"{stem}.so.*")})


def environment_for(program: pathlib.Path, folders: list[pathlib.Path]) -> dict[str, str]:
    """LD_LIBRARY_PATH with what the program needs of these folders. Throws LoadError if something is nowhere."""
    lacking = missing_libraries(program, {})
    compilers = [path.name for folder in folders for stem in LOADED_LATER for path in folder.glob(f"{stem}.*")]
    chosen = folders_with(lacking + compilers, folders)
    path = [str(folder) for folder in chosen] + [part for part in [os.environ.get("LD_LIBRARY_PATH", "")] if part]
    environment = {"LD_LIBRARY_PATH": ":".join(path)} if path else {}
    if lacking and (still := missing_libraries(program, environment)):
        there = [version for name in still for version in other_versions(name, folders)]
        raise LoadError(f"{program.name} needs {', '.join(still)}, which the loader, the CUDA toolkit and Python's "
                        f"wheels do not have (there is {', '.join(there) or 'no other version either'}): build it on "
                        "this host, or install that version")
    return environment


def check_start(program: pathlib.Path, environment: dict[str, str]) -> None:
    """Throws LoadError where the loader refuses: an older glibc, say."""
    finished = execute([str(program), "--help"], 60, environment)
    if "--model" not in finished.out:
        raise LoadError(f"{program} does not start here: {finished.failure()}")


def probe(program: pathlib.Path, device: str, environment: dict[str, str]) -> dict[str, Any]:
    """The program's report of one small step. Throws HostError where there is no device, LoadError where the driver is
    too old for the program."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "probe.json"
        finished = execute([str(program), f"--device={device}", "--model=trivial", "--batch_size=1", "--num_batches=1",
                            "--num_warmup_batches=0", "--nomeasure_ceilings", f"--result_json={path}"], 120,
                           environment)
        for line in finished.err.splitlines():
            if any(text in line for text in OLD_DRIVER):
                raise LoadError(line)
            if NO_DEVICE in line:
                raise HostError(line)
        report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if finished.status == 127 or not report and finished.status != 0:
        raise HostError(f"{program} does not run: {finished.failure()}")
    # A program that fails on the card is what the rows are there to show.
    return {**report, "failure": finished.failure()}


def card(bus_id: str | None) -> dict[str, str] | None:
    """What the driver says of the card at that place, which the program uses; without a place of the only one. CUDA
    and the driver count cards in different orders, so a number would not tell."""
    place = [f"--id={bus_id}"] if bus_id else []
    finished = execute(["nvidia-smi", *place, f"--query-gpu={','.join(CARD)}", "--format=csv,noheader"], 30)
    lines = finished.out.strip().splitlines()
    if finished.status != 0 or len(lines) != 1:
        return None
    return dict(zip(CARD, [value.strip() for value in lines[0].split(",")]))


def processes_at_once(facts: dict[str, Any], device: str) -> int:
    """How many processes may use the device together: in the exclusive modes the second one gets none."""
    if device != "gpu":
        return PROCESSES
    return PROCESSES if (facts["card"] or {}).get("compute_mode") == "Default" else 1


def processor() -> str:
    found = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return found[1] if found else platform.processor()


def machine(report: dict[str, Any]) -> dict[str, Any]:
    ours = report.get("machine") or {}
    gpu = ours.get("gpu")
    return {"card": card((gpu or {}).get("pci_bus_id")), "gpu": gpu, "libraries": ours.get("libraries"),
            "cpu": processor(), "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(), "python": platform.python_version(),
            "probe_failure": report.get("failure")}


def memory_bytes(facts: dict[str, Any]) -> int | None:
    """Of the device, as the program or else the driver says."""
    if facts["gpu"]:
        return facts["gpu"]["memory_bytes"]
    mib = re.match(r"(\d+) MiB", (facts["card"] or {}).get("memory.total", ""))
    return int(mib[1]) << 20 if mib else None
