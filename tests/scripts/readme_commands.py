"""Runs the commands of all pages of the tree, shortened to a few seconds, so that none of them can rot.

    readme_commands.py BUILD          BUILD: the folder of the programs
    readme_commands.py BUILD --check  runs none of them: prints each as it would run, and checks the names in it

A command is a line of a block that begins with ```sh, with the lines that a backslash at its end joins to it. A second word
says what the block needs:
  gpu     runs on a simulated H100, without the flags that need a card
  long    trains for some steps only
  data    reads CIFAR-10 from files that this script makes
  images  reads folders of PNG files that this script makes; is only looked up where the programs read none
  peers   needs other frameworks: only its names are checked
  names   takes too long or needs what is not here: only its names are checked
Commands in bf16 are only looked up where the program says that the processor lacks it.
Names are those of flags, scripts and presets: all must exist, whatever the block needs.
"""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import pickle
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
SECONDS = 240  # limit for one command on a loaded machine
# Flags that need a real card and that a simulated one refuses.
NEEDS_CARD = ("num_gpus", "variable_update", "tune", "plan_cache")
# The last of several equal flags counts, so these make a run short.
SHORT = ["--num_batches=1", "--num_warmup_batches=0", "--nomeasure_ceilings"]


@dataclasses.dataclass
class Command:
    place: str  # file:line
    need: str
    text: str


def pages() -> list[pathlib.Path]:
    """Returns all pages of the tree including new ones; without git, all pages outside build."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return sorted(path for name in set(listed.stdout.splitlines()) if (path := ROOT / name).exists())
    return sorted(path for path in ROOT.rglob("*.md") if path.relative_to(ROOT).parts[0] != "build")


def commands_of(page: pathlib.Path) -> list[Command]:
    found: list[Command] = []
    in_block, need, continues = False, None, False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            words = line[3:].split()
            in_block = not in_block
            need = (words[1:] or [""])[0] if in_block and words[:1] == ["sh"] else None
        elif need is not None and line.strip():
            text = re.sub(r"\s+# .*", "", line).strip()
            if continues:
                found[-1].text += " " + text.rstrip("\\ ")
            else:
                found.append(Command(f"{page.relative_to(ROOT)}:{number}", need, text.rstrip("\\ ")))
            continues = text.endswith("\\")
    return found


def flag_names(text: str) -> list[str]:
    return re.findall(r"(?<!\S)--?([a-z][a-z_0-9]*)", text)


def without(text: str, *names: str) -> str:
    return re.sub(rf"\s--({'|'.join(names)})(=\S+)?(?=\s|$)", "", text)


def small(command: Command) -> str | None:
    """Returns the command for a run of a few seconds, or None if it is not run."""
    text = command.text
    if command.need in ("peers", "names") or re.match(r"scripts/(test|gpu_check|bundle)\.sh", text):
        return None
    if text.startswith("scripts/plots/"):
        text = text.replace("--measured ", "").replace("lms.py", "lms.py --points=2 --policies=planned")
        return text.replace("exchange.py", "exchange.py --largest=64K") if "lms.py" in text or shutil.which("mpirun") else None
    if text == "scripts/run.sh":  # the program's defaults would train at full length
        text += " --model=resnet50"
    text = text.replace("../before/build/cpu/", "build/cpu/").replace("--runs=8", "--runs=1 --only=resnet50-forward")
    text = re.sub(r"^(scripts/cnnrun)", r"\1 --dry_run", text)
    text = re.sub(r"^mpirun( --mca \S+ \S+)? -np \d+( -H \S+)?", "mpirun --allow-run-as-root --oversubscribe -np 2", text)
    if text.startswith("mpirun"):  # other commands run it: its weights on two ranks take a tenth of this test
        text = text.replace("--model=vgg16", "--model=resnet50")
    if text.startswith("scripts/virtual_hosts.sh"):
        return None  # needs network namespaces: scripts.cut_link covers it
    if "all_reduce_benchmark" in text:
        return text.replace("100M", "1M") + ("" if " -b " in text else " --num_batches=2 --num_warmup_batches=1")
    if text.startswith("scripts/fusion_table.py"):
        return re.sub(r" --emulated=\S+", "", text) + " --machines=h100 --batch_size=16"  # kernels are counted by a test
    if "cnn_benchmarks" not in text and "run.sh" not in text or "cnnrun" in text or "suite.sh" in text:
        return text
    if "--input_only" in text:
        return text + " --batch_size=2 --num_batches=1 --num_warmup_batches=0"
    if command.need == "gpu":
        return without(text, *NEEDS_CARD) + " --simulate=h100"
    if any(word in text for word in ("--simulate=", "--find_max", "--lms_simulate_only", "--help")):
        return text
    if "resnet152" in text:  # too large for this test
        return text + " --lms_simulate_only"
    if "--lms" in text:
        text = text.replace("--lms_limit=2000", "--lms_limit=500").replace("_mb=900", "_mb=500")
        return " ".join([text, "--batch_size=8", *SHORT])
    if "--min_time" in text:  # --min_time refuses a number of batches
        return text + " --batch_size=2 --min_time=0.1 --nomeasure_ceilings"
    batch = "--batch_size=10" if command.need else "--batch_size=2"
    return " ".join([without(text, "num_epochs", "num_eval_epochs"), batch, *SHORT])


def make_cifar(folder: pathlib.Path) -> None:
    folder.mkdir()
    for name in [f"data_batch_{n}" for n in range(1, 6)] + ["test_batch"]:
        content = {b"data": bytes(20 * 3072), b"labels": [n % 10 for n in range(20)]}
        (folder / name).write_bytes(pickle.dumps(content, protocol=4))


def png(side: int, colour: int) -> bytes:
    """Returns a square RGB image of one colour."""
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = (b"\0" + bytes([colour]) * 3 * side) * side
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def make_images(folder: pathlib.Path) -> None:
    for subset in ("train", "val"):
        for label, name in enumerate(("cat", "dog")):
            (folder / subset / name).mkdir(parents=True)
            for number in range(10):
                (folder / subset / name / f"{number}.png").write_bytes(png(32, 100 * label + number))


def run(text: str, folder: pathlib.Path, build: pathlib.Path) -> str | None:
    """Runs the command and returns None, or why it failed."""
    # Do this before inserting the paths of this checkout, which may lie in /tmp too.
    text = re.sub(r"(?<![\w.])/(tmp|data)/", f"{folder}/", text).replace("build/suites", f"{folder}/suites")
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
    # A verdict over a run of each may be "cannot tell".
    good = (0, 1, 2) if "cnn_compare" in text else (0,)
    if done.returncode in good:
        return None
    return f"exit code {done.returncode}: {text}\n  " + "\n  ".join((done.stdout + done.stderr).splitlines()[-4:])


def unknown_names(command: Command, known: set[str]) -> list[str]:
    """Returns the scripts, flags and presets that do not exist."""
    missing = []
    for text in command.text.split("&&"):
        missing += [word for word in re.findall(r"(?<!\S)scripts/[\w./]+", text) if not (ROOT / word).exists()]
        # These scripts pass their flags on to the program.
        passed_on = re.split(r"scripts/run\.sh|train\.sbatch|(?:^|[\s/])cnn_benchmarks(?=\s|$)", text, maxsplit=1)
        if len(passed_on) == 2 and "suite.sh" not in text:
            missing += [f"--{name}" for name in flag_names(passed_on[1])
                        if name not in known and not (name.startswith("no") and name[2:] in known)]
        own = re.match(r"\s*(?:python3 )?(scripts/[\w./]+)(.*)", passed_on[0])
        if own and (ROOT / own[1]).is_file():
            # peers.sh passes flags on to peers/*.py.
            parts = [ROOT / own[1], *(ROOT / own[1]).with_suffix("").glob("*.py")]
            source = "".join(path.read_text(encoding="utf-8") for path in parts)
            before_program = re.split(r"\sbuild/cpu/", own[2], maxsplit=1)[0]
            missing += [f"{own[1]} --{name}" for name in re.findall(r"(?<!\S)--([a-z][a-z_]*)", before_program)
                        if f"--{name}" not in source]
        presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]
        missing += [f"preset {name}" for name in re.findall(r"--preset (\w+)", text)
                    if name not in [preset["name"] for preset in presets if not preset.get("hidden")]]
    return missing


def reads_png(build: pathlib.Path) -> bool:
    """Returns whether make_records accepts the images of make_images()."""
    with tempfile.TemporaryDirectory(prefix="readme_commands.") as name:
        make_images(pathlib.Path(name) / "in")
        done = subprocess.run([build / "make_records", f"{name}/in", f"{name}/out"], capture_output=True, text=True, check=False)
    return "built without libpng" not in done.stderr


def has_bf16(build: pathlib.Path) -> bool:
    """Returns whether the program trains in bf16 on this processor."""
    done = subprocess.run([build / "cnn_benchmarks", "--model=trivial", "--device=cpu", "--precision=bf16", "--batch_size=1", *SHORT],
                          capture_output=True, text=True, check=False)
    return "--precision=bf16 is not available on this machine" not in done.stderr


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    only_check = sys.argv[2:] == ["--check"]
    # Like absl's help, this one ends with exit code 1. It lists the flags without effect last.
    listed = subprocess.run([build / "cnn_benchmarks", "--helpfull"], capture_output=True, text=True, check=False)
    acting = listed.stdout.split("\nFlags of the original without effect here:")[0]
    known = set(re.findall(r"--(?:\[no\])?([a-z][a-z_0-9]*)", acting)) | {"help", "helpfull"}
    found = [command for page in pages() for command in commands_of(page)]
    failures, ran, left_out = [], 0, 0
    done: set[str] = set()  # several pages may have one command
    folder = pathlib.Path(tempfile.mkdtemp(prefix="readme_commands."))
    try:
        make_cifar(folder / "cifar-10-batches-py")
        has_images, can_bf16 = reads_png(build), has_bf16(build)
        for name in ("photos", "imagenet"):
            make_images(folder / name)
        for command in found:
            if missing := unknown_names(command, known):
                failures.append(f"{command.place}: there is no {', '.join(missing)}")
            text = small(command)
            requirements = ((command.need == "images", has_images), ("--precision=bf16" in command.text, can_bf16),
                            (command.text.startswith("mpirun"), shutil.which("mpirun")),
                            (str(FASHION) in command.text, FASHION.exists()))
            if text is None or any(needed and not there for needed, there in requirements):
                left_out += 1
                text = None
            if only_check:
                print(f"{command.place}: {text or '(looked up) ' + command.text}")
            elif text is not None and text not in done:
                done.add(text)
                ran += 1
                if why := run(text, folder, build):
                    failures.append(f"{command.place}: {why}")
    finally:
        shutil.rmtree(folder)
    for failure in failures:
        print(failure)
    print(f"{ran} commands of {len(found)} ran, {left_out} were only looked up, {len(failures)} failures")
    return 1 if failures or ran < 30 and not only_check else 0


if __name__ == "__main__":
    sys.exit(main())
