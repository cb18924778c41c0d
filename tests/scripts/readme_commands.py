"""Runs the commands of all README files, made small, so that none of them can rot.

    readme_commands.py BUILD     BUILD: the folder with cnn_benchmarks, cnn_compare and all_reduce_benchmark

A command is a line of a block that begins with ```sh. A second word says what the block needs:
  gpu    runs on a simulated H100, without the flags that need a card
  long   trains for some steps only
  data   reads CIFAR-10 from files that this script makes
  peers  needs other frameworks: only the flags are checked
Every flag and every script that a block names must exist, whatever the block needs.
"""
from __future__ import annotations

import dataclasses
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
SECONDS = 240  # for one command on a loaded machine
# Flags that need a card, which a simulated one refuses.
NEEDS_CARD = ("num_gpus", "variable_update", "tune", "plan_cache")
# The last of equal flags counts, so these make a run short.
SHORT = ["--num_batches=1", "--num_warmup_batches=0", "--nomeasure_ceilings"]


@dataclasses.dataclass
class Command:
    place: str  # file:line
    need: str
    text: str


def commands() -> list[Command]:
    found = []
    pages = [*ROOT.glob("*.md"), *ROOT.glob("*/*.md"), *ROOT.glob("layers/*/*.md"), *ROOT.glob("bench/*/*.md")]
    for path in sorted(page for page in pages if page.parts[-2] != "build"):
        need = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("```"):
                words = line[3:].split()
                need = (words[1:] or [""])[0] if need is None and words[:1] == ["sh"] else None
            elif need is not None and line.strip():
                found.append(Command(f"{path.relative_to(ROOT)}:{number}", need, re.sub(r"\s+# .*", "", line)))
    return found


def flag_names(text: str) -> list[str]:
    return re.findall(r"(?<!\S)--?([a-z][a-z_0-9]*)", text)


def without(text: str, *names: str) -> str:
    return re.sub(rf"\s--({'|'.join(names)})(=\S+)?(?=\s|$)", "", text)


def small(command: Command) -> str | None:
    """The same command for a run of a few seconds; None: it is not run."""
    text = command.text
    if command.need == "peers" or re.match(r"scripts/(test|gpu_check|bundle)\.sh", text):
        return None
    if text.startswith("scripts/plots/"):
        text = text.replace("--measured ", "").replace("lms.py", "lms.py --points=2 --policies=planned")
        return text.replace("exchange.py", "exchange.py --largest=64K") if "lms.py" in text or shutil.which("mpirun") else None
    if text == "scripts/run.sh":  # the program's defaults would train at full length
        text += " --model=resnet50"
    text = text.replace("../before/build/cpu/", "build/cpu/").replace("--runs=8", "--runs=2 --only=alexnet")
    text = re.sub(r"^(scripts/cnnrun)", r"\1 --dry_run", text)
    text = re.sub(r"^mpirun( --mca \S+ \S+)? -np \d+( -H \S+)?", "mpirun --allow-run-as-root --oversubscribe -np 2", text)
    if text.startswith("scripts/virtual_hosts.sh"):
        return None  # needs network namespaces: scripts.cut_link covers it
    if "all_reduce_benchmark" in text:
        return text.replace("100M", "1M") + ("" if " -b " in text else " --num_batches=2 --num_warmup_batches=1")
    if text.startswith("scripts/fusion_table.py"):
        return text + " --machines=h100 --batch_size=16"
    if "cnn_benchmarks" not in text and "run.sh" not in text or "cnnrun" in text or "suite.sh" in text:
        return text
    if command.need == "gpu":
        return without(text, *NEEDS_CARD) + " --simulate=h100"
    if any(word in text for word in ("--simulate=", "--find_max", "--lms_simulate_only", "--help")):
        return text
    if "resnet152" in text:  # too large to run here
        return text + " --lms_simulate_only"
    if "--lms" in text:
        text = text.replace("--lms_limit=2000", "--lms_limit=500").replace("_mb=900", "_mb=500")
        return " ".join([text, "--batch_size=8", *SHORT])
    if "--min_time" in text:  # refuses a number of batches
        return text + " --batch_size=2 --min_time=0.1 --nomeasure_ceilings"
    batch = "--batch_size=10" if command.need else "--batch_size=2"
    return " ".join([without(text, "num_epochs", "num_eval_epochs"), batch, *SHORT])


def make_cifar(folder: pathlib.Path) -> None:
    folder.mkdir()
    for name in [f"data_batch_{n}" for n in range(1, 6)] + ["test_batch"]:
        content = {b"data": bytes(20 * 3072), b"labels": [n % 10 for n in range(20)]}
        (folder / name).write_bytes(pickle.dumps(content, protocol=4))


def run(text: str, folder: pathlib.Path, build: pathlib.Path) -> str | None:
    """None, or why the command failed."""
    # Before the paths of this checkout come in, which may lie in /tmp too.
    text = text.replace("/tmp/", f"{folder}/").replace("build/suites", f"{folder}/suites")
    text = re.sub(r"(?<!\S)scripts/run\.sh", str(build / "cnn_benchmarks"), text)
    text = re.sub(r"(?<!\S)(--\w+=)?build/cpu/", lambda m: f"{m[1] or ''}{build}/", text)
    text = re.sub(r"(?<!\S)scripts/", f"{ROOT}/scripts/", text)
    if "suite.sh" in text:
        text += f" --program={build}/cnn_benchmarks --out={folder}/suites/quick"
    environment = dict(os.environ, OMP_WAIT_POLICY="passive")
    try:
        done = subprocess.run(["bash", "-c", text], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"did not end within {SECONDS} s: {text}"
    # A verdict over two runs may well be "cannot tell".
    good = (0, 1, 2) if "cnn_compare" in text else (0,)
    if done.returncode in good:
        return None
    return f"exit code {done.returncode}: {text}\n  " + "\n  ".join((done.stdout + done.stderr).splitlines()[-4:])


def unknown_names(command: Command, known: set[str]) -> list[str]:
    """Flags of cnn_benchmarks and scripts that do not exist."""
    missing = [word for word in re.findall(r"(?<!\S)scripts/[\w.]+", command.text) if not (ROOT / word).exists()]
    if re.search(r"run\.sh|/cnn_benchmarks", command.text) and "suite.sh" not in command.text:
        arguments = re.split(r"run\.sh|/cnn_benchmarks", command.text, maxsplit=1)[1]
        missing += [f"--{name}" for name in flag_names(arguments)
                    if name not in known and not (name.startswith("no") and name[2:] in known)]
    return missing


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    # As absl's, the help ends with exit code 1. The flags that do not act come last.
    listed = subprocess.run([build / "cnn_benchmarks", "--helpfull"], capture_output=True, text=True, check=False)
    acting = listed.stdout.split("\nFlags of the original without effect here:")[0]
    known = set(re.findall(r"--(?:\[no\])?([a-z][a-z_0-9]*)", acting)) | {"help", "helpfull"}
    found, failures, ran, left_out = commands(), [], 0, 0
    done: set[str] = set()  # several pages may have one command
    folder = pathlib.Path(tempfile.mkdtemp(prefix="readme_commands."))
    try:
        make_cifar(folder / "cifar-10-batches-py")
        for command in found:
            if missing := unknown_names(command, known):
                failures.append(f"{command.place}: there is no {', '.join(missing)}")
            text = small(command)
            if text is None or str(FASHION) in text and not FASHION.exists() or (
                    text.startswith("mpirun") and not shutil.which("mpirun")):
                left_out += 1
            elif text not in done:
                done.add(text)
                ran += 1
                if why := run(text, folder, build):
                    failures.append(f"{command.place}: {why}")
    finally:
        shutil.rmtree(folder)
    for failure in failures:
        print(failure)
    print(f"{ran} commands of {len(found)} ran, {left_out} were only looked up, {len(failures)} failures")
    return 1 if failures or ran < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
