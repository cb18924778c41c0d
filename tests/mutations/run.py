#!/usr/bin/env python3
"""Mutation testing of the CUDA backend: plants the faults of faults.py one at a time and looks for a test that fails.

    run.py                  plants every fault; prints a table of fault, file, the test that found it and the seconds
    run.py --only=REGEX     only the faults whose name or file matches
    run.py --check          only looks whether the text of every fault is in the sources exactly once; builds nothing
    run.py --list           prints the names of the faults with the tests that are to find them

Works on a copy of the tree with a build of its own (--folder), which later runs use again. Exit code 1 if a fault was
not found or did not compile, 2 if a fault cannot be planted or a test fails without any fault, 77 if the emulated GPU
cannot be built here.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from faults import FAULTS, Fault, Tests

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRESET = "cpu"  # the emulated GPU needs CUDA's headers, but neither nvcc nor a device
EMULATED_GPU = "cnn_emulated_layers_tests"
LINES_OF_A_FAILED_BUILD = 12


def say(text):
    print(text, file=sys.stderr, flush=True)


def texts_not_found_once(root, faults):
    """Returns one line for each fault that cannot be planted."""
    problems = []
    for fault in faults:
        path = root / fault.file
        count = path.read_text().count(fault.find) if path.is_file() else 0
        if count != 1:
            problems.append(f"{fault.name}: its text occurs {count} times in {fault.file}, not once: {fault.find!r}")
        if fault.find == fault.put:
            problems.append(f"{fault.name}: changes nothing")
    return problems


def copy_tree(tree):
    """Makes `tree` equal to the sources. Equal files keep their times, so that they cause no rebuild."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True, text=True).stdout
    names = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        source, target = ROOT / name, tree / name
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for path in tree.rglob("*"):
        name = str(path.relative_to(tree))
        if path.is_file() and not name.startswith("build/") and name not in names:
            path.unlink()
    dependencies = tree / "build" / "deps"
    if (ROOT / "build" / "deps").exists() and not dependencies.exists():
        dependencies.parent.mkdir(parents=True, exist_ok=True)
        dependencies.symlink_to((ROOT / "build" / "deps").resolve())


class Build:
    """The build folder of the copied tree."""

    def __init__(self, tree, jobs, limit):
        self.tree, self.jobs, self.limit = tree, jobs, limit
        self.folder = tree / "build" / PRESET
        # Makes paths relative, so that a compiler cache also serves objects that another checkout compiled.
        self.environment = {**os.environ, "CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "true",
                            "OMP_WAIT_POLICY": "passive"}

    def configure(self):
        subprocess.run(["cmake", "--preset", PRESET], cwd=self.tree, env=self.environment, check=True,
                       stdout=subprocess.DEVNULL)

    def has(self, target):
        listed = subprocess.run(["ninja", "-C", self.folder, "-t", "query", target], capture_output=True)
        return listed.returncode == 0

    def make(self, targets):
        """Returns the end of the output if the build fails, otherwise ""."""
        done = subprocess.run(["ninja", "-C", self.folder, f"-j{self.jobs}", *targets], env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return "" if done.returncode == 0 else "\n".join(done.stdout.splitlines()[-LINES_OF_A_FAILED_BUILD:])

    def first_failure(self, tests):
        """Returns the name of the first test that fails, or None."""
        program = next(path for path in self.folder.rglob(tests.target) if path.is_file())
        command = [program, f"--gtest_filter={tests.filter}-Slow*", "--gtest_fail_fast"]
        try:
            done = subprocess.run(command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=self.limit)
            output, passed = done.stdout.decode(errors="replace"), done.returncode == 0
        except subprocess.TimeoutExpired as late:
            output, passed = (late.stdout or b"").decode(errors="replace"), False
        if not passed:
            return failed_test(output) or tests.target
        if not re.search(r"^\[  PASSED  \] [1-9]", output, re.MULTILINE):
            raise SystemExit(f"run.py: {tests.target} has no test that matches {tests.filter}")
        return None


def failed_test(output):
    """Returns the test that GoogleTest's output names as failed, or during which it ends."""
    failed = re.findall(r"^\[  FAILED  \] ([^ ,]+)", output, re.MULTILINE)
    begun = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
    return failed[0] if failed else begun[-1] if begun else None


def examine(fault, build, tree):
    """Plants the fault and returns the test that found it and the seconds of building and testing."""
    path = tree / fault.file
    original = path.read_text()
    path.write_text(original.replace(fault.find, fault.put))
    started = time.monotonic()
    found = None
    try:
        for tests in fault.tests:
            if problem := build.make([tests.target]):
                found = f"DOES NOT COMPILE\n{problem}"
                break
            if found := build.first_failure(tests):
                break
    finally:
        path.write_text(original)
    return found, time.monotonic() - started


def check_without_faults(build, faults):
    """Checks that all tests pass without a fault, because a test that always fails finds none."""
    every = dict.fromkeys(tests for fault in faults for tests in fault.tests)
    if problem := build.make(list(dict.fromkeys(tests.target for tests in every))):
        raise SystemExit(f"run.py: the tests do not build without a fault\n{problem}")
    for tests in every:
        if failed := build.first_failure(tests):
            say(f"run.py: {failed} fails without any fault, so it can find none")
            sys.exit(2)


def table(rows):
    lines = ["| fault | file | found by | seconds |", "|---|---|---|---|"]
    for fault, found, seconds in rows:
        lines.append(f"| {fault.name} | {fault.file} | {(found or 'NO TEST').splitlines()[0]} | {seconds:.0f} |")
    return "\n".join(lines)


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutations")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=int, default=300, metavar="SECONDS", help="for each run of a test program")
    return parser.parse_args()


def main():
    arguments = parsed_arguments()
    faults = [fault for fault in FAULTS if re.search(arguments.only, f"{fault.name}\n{fault.file}")]
    if not faults:
        raise SystemExit(f"run.py: --only={arguments.only}: no fault matches")
    if problems := texts_not_found_once(ROOT, faults):
        say("\n".join(problems) + "\nChange tests/mutations/faults.py so that it fits the sources.")
        return 2
    if arguments.check or arguments.list:
        for fault in faults if arguments.list else ():
            print(f"{fault.name}: {', '.join(f'{tests.target} {tests.filter}' for tests in fault.tests)}")
        return 0
    tree = arguments.folder.resolve() / "tree"
    copy_tree(tree)
    build = Build(tree, arguments.jobs, arguments.limit)
    build.configure()
    if not build.has(EMULATED_GPU):
        say("run.py: skipped: the headers of CUDA, cuDNN or cuBLAS are missing")
        return 77
    check_without_faults(build, faults)
    rows = []
    for fault in faults:
        found, seconds = examine(fault, build, tree)
        rows.append((fault, found, seconds))
        say(f"{fault.name}: {found or 'NO TEST FOUND IT'} ({seconds:.0f} s)")
    print(table(rows))
    missed = [fault for fault, found, _ in rows if found is None or found.startswith("DOES NOT COMPILE")]
    say(f"{len(rows) - len(missed)} of {len(rows)} faults were found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
