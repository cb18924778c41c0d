#!/usr/bin/env python3
"""Compiles the CUDA kernels for sm_90 and checks the registers and shared memory that each of them takes.

    kernel_resources.py --nvcc=NVCC --folder=FOLDER            exit code 1 if a kernel spills registers to memory, or
                                                               takes more registers or static shared memory than
                                                               tests/layers/cuda/kernel_resources.tsv allows
    kernel_resources.py --nvcc=NVCC --folder=FOLDER --update   writes that table instead
    kernel_resources.py --self-test                            seeds violations and checks that each is found

FOLDER keeps nvcc's output for later runs in which no source has changed.
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "layers" / "cuda"
TABLE = ROOT / "tests" / "layers" / "cuda" / "kernel_resources.tsv"
HEAD = """\
# The most registers of a thread and bytes of static shared memory of a block that the instances of each kernel may take
# on sm_90, checked by tests/scripts/kernel_resources.py; --update writes this file. Registers are rounded up to the
# steps at which a multiprocessor holds one block of 256 threads less.
# file	kernel	registers	shared_bytes
"""
# With up to this many registers per thread, a multiprocessor holds 8, 7, 6, 5, 4, 3, 2 or 1 blocks of 256 threads.
STEPS = (32, 36, 40, 48, 64, 80, 128, 255)


def kernel_name(mangled):
    """Returns the last part of a mangled name: 'pad' of '_ZN3cnn6layers4cuda12_GLOBAL__N_13padILi4EEEvPKt'."""
    at, name = len("_ZN"), mangled
    while digits := re.match(r"\d+", mangled[at:]):
        begin = at + digits.end()
        at = begin + int(digits[0])
        name = mangled[begin:at]
    return name


def usage_of(output):
    """Parses the output of ptxas -v into (kernel, registers, static shared bytes, spilled bytes) for each instance."""
    found, kernel, spilled = [], None, 0
    for line in output.splitlines():
        if entry := re.search(r"Compiling entry function '(\S+)'", line):
            kernel = kernel_name(entry[1])
        elif spills := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spilled = int(spills[1]) + int(spills[2])
        elif used := re.search(r"Used (\d+) registers", line):
            shared = re.search(r"(\d+) bytes smem", line)
            found.append((kernel, int(used[1]), int(shared[1]) if shared else 0, spilled))
    return found


def most_of(files):
    """Returns the maximum over instances by file and kernel, and one line for each instance that spills."""
    most, spills = {}, []
    for file, output in files:
        for kernel, registers, shared, spilled in usage_of(output):
            before = most.get((file, kernel), (0, 0))
            most[file, kernel] = (max(before[0], registers), max(before[1], shared))
            if spilled > 0:
                spills.append(f"{file}: {kernel} spills {spilled} bytes of registers to memory for a thread: give it fewer "
                              "blocks at once in __launch_bounds__, or keep fewer values alive")
    return most, spills


def read_table(text):
    rows = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    return {(file, kernel): (int(registers), int(shared)) for file, kernel, registers, shared in rows}


def table_of(most):
    lines = [f"{file}\t{kernel}\t{min(step for step in STEPS if step >= registers)}\t{shared}\n"
             for (file, kernel), (registers, shared) in sorted(most.items())]
    return HEAD + "".join(lines)


def problems_of(most, allowed):
    problems = []
    for key, (registers, shared) in sorted(most.items()):
        name = f"{key[0]}: {key[1]}"
        if key not in allowed:
            problems.append(f"{name} has no row in {TABLE.name}; --update adds one")
            continue
        if registers > allowed[key][0]:
            problems.append(f"{name} takes {registers} registers, {allowed[key][0]} are allowed: fewer blocks run at once; "
                            "if it is faster so, --update")
        if shared > allowed[key][1]:
            problems.append(f"{name} takes {shared} bytes of static shared memory, {allowed[key][1]} are allowed")
    return problems + [f"{file}: {kernel} is in {TABLE.name}, but no kernel is called so; --update drops the row"
                       for file, kernel in sorted(allowed.keys() - most.keys())]


def digest_of(source, nvcc):
    """Returns a digest of everything on which the compiler's output may depend."""
    digest = hashlib.sha256(subprocess.run([nvcc, "--version"], check=True, capture_output=True).stdout)
    headers = [path for folder in ("layers", "runtime") for ending in ("h", "cuh")
               for path in (ROOT / folder).rglob(f"*.{ending}")]
    for path in [source, *sorted(headers)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def compiled(source, nvcc, folder):
    """Returns ptxas's output for a source, from the folder if nothing has changed since."""
    known, digest = folder / f"{source.stem}.txt", digest_of(source, nvcc)
    if known.is_file() and known.read_text().startswith(digest):
        return known.read_text()
    done = subprocess.run([nvcc, "-std=c++20", "-O3", "-arch=sm_90", "-cubin", "-Xptxas=-v", f"-I{ROOT}", source, "-o",
                           folder / f"{source.stem}.cubin"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"kernel_resources.py: {source.name} does not compile for sm_90:\n{done.stderr}")
    known.write_text(f"{digest}\n{done.stderr}")
    return known.read_text()


def self_test():
    said = """
ptxas info    : Compiling entry function '_ZN3cnn6layers4cuda12_GLOBAL__N_13padILi4EEEvPKt' for 'sm_90'
    16 bytes stack frame, {spills} bytes spill stores, 0 bytes spill loads
ptxas info    : Used {registers} registers, used 1 barriers, 512 bytes smem
"""
    allowed = {("a.cu", "pad"): (32, 512)}

    def complaints(spills=0, registers=32, allowed=allowed):
        most, spilled = most_of([("a.cu", said.format(spills=spills, registers=registers))])
        return spilled + problems_of(most, allowed)

    assert complaints() == [], complaints()
    assert "pad spills 8 bytes" in complaints(spills=8)[0]
    assert "takes 33 registers, 32 are allowed" in complaints(registers=33)[0]
    assert "512 bytes of static shared memory, 0 are" in complaints(allowed={("a.cu", "pad"): (32, 0)})[0]
    assert "has no row" in complaints(allowed={})[0]
    assert "no kernel is called so" in complaints(allowed={**allowed, ("a.cu", "gone"): (32, 0)})[0]
    assert read_table(table_of({("a.cu", "pad"): (33, 512)})) == {("a.cu", "pad"): (36, 512)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if not arguments.nvcc or not arguments.folder:
        parser.error("--nvcc and --folder are needed")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    sources = sorted(KERNELS.glob("*.cu"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outputs = list(pool.map(lambda source: compiled(source, arguments.nvcc, arguments.folder), sources))
    most, problems = most_of([(source.name, output) for source, output in zip(sources, outputs)])
    if arguments.update:
        TABLE.write_text(table_of(most))
    problems += problems_of(most, read_table(TABLE.read_text()))
    print("\n".join(problems) or f"{len(most)} kernels of {len(sources)} files, none of which spills")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
