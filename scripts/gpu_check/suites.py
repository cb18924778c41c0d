"""The slice `tests`: the GoogleTest binaries of the CUDA backend, as many processes of each as the card takes.

Results are read from what a test prints, so that a crash loses nothing: the tests after it go on in a new process.
A CUDA error can make every later test of its process fail as well, so those that failed are tried again one by one.
"""
from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import pathlib
import re
import tempfile
import time

from execute import Finished, execute
from rows import BAD, FAILED, OK, TIMEOUT, Context, Outcome, Row, words

CRASHES_AT_MOST = 5
TRIED_ALONE = 20
STARTED = re.compile(r"^\[ RUN      \] (\S+)$")
ENDED = re.compile(r"^\[ {1,7}(OK|FAILED|SKIPPED) {1,2}\] ([^\s,]+).*\((\d+) ms\)$")


@dataclasses.dataclass
class Tally:
    """Verdicts by name, OK, FAILED or SKIPPED, and what the failures printed."""
    verdicts: dict[str, str] = dataclasses.field(default_factory=dict)
    messages: dict[str, str] = dataclasses.field(default_factory=dict)
    unfinished: list[str] = dataclasses.field(default_factory=list)
    timed_out: bool = False

    def add(self, other: Tally) -> None:
        self.verdicts.update(other.verdicts)
        self.messages.update(other.messages)
        self.unfinished += other.unfinished
        self.timed_out = self.timed_out or other.timed_out

    def names(self, verdict: str) -> list[str]:
        return [name for name, found in self.verdicts.items() if found == verdict]


def parse(finished: Finished) -> tuple[Tally, str | None]:
    """The tally, and the test that was running when the process ended."""
    tally, running, said = Tally(), None, []
    for line in finished.out.splitlines():
        if begun := STARTED.match(line):
            running, said = begun[1], []
        elif ended := ENDED.match(line):
            tally.verdicts[ended[2]] = ended[1]
            if ended[1] == "FAILED":
                tally.messages[ended[2]] = "\n".join(said)[:600]
            running = None
        else:
            said.append(line)
    return tally, running


def list_tests(binary: pathlib.Path, pattern: str, context: Context) -> list[str]:
    finished = execute([str(binary), "--gtest_list_tests", f"--gtest_filter={pattern}"], 60, context.environment)
    if finished.status != 0:
        raise RuntimeError(f"{binary.name} cannot list its tests: {finished.failure()}")
    names, suite = [], ""
    for line in finished.out.splitlines():
        name = line.split("#")[0].strip()
        if line.startswith("  ") and not name.startswith("DISABLED_") and "DISABLED_" not in suite:
            names.append(suite + name)
        elif name.endswith("."):
            suite = name
    return names


def run_once(binary: pathlib.Path, names: list[str], seconds: float, context: Context) -> Finished:
    # Names go by a file: there are more than a command line takes.
    with tempfile.NamedTemporaryFile("w", suffix=".flags") as flags:
        flags.write(f"--gtest_filter={':'.join(names)}\n--gtest_color=no\n")
        flags.flush()
        return execute([str(binary), f"--gtest_flagfile={flags.name}"], seconds, context.environment)


def run_list(binary: pathlib.Path, names: list[str], deadline: float, context: Context) -> Tally:
    """All of them, in new processes after crashes."""
    tally, left = Tally(), list(names)
    for _ in range(CRASHES_AT_MOST):
        finished = run_once(binary, left, deadline - time.monotonic(), context)
        found, running = parse(finished)
        tally.add(found)
        if running:
            tally.verdicts[running] = "FAILED"
            tally.messages[running] = finished.failure() or "ended in the middle"
        left = [name for name in left if name not in tally.verdicts]
        tally.timed_out = finished.status is None
        if not left or tally.timed_out:
            break
        if not running and not found.verdicts:
            tally.messages[left[0]] = finished.failure() or "the process ran no test"
            break
    tally.unfinished = left
    return tally


def alone(binary: pathlib.Path, names: list[str], deadline: float, context: Context) -> list[str]:
    """Those of the failed that pass in a process of their own: another test broke theirs."""
    passed = []
    for name in names[:TRIED_ALONE]:
        if time.monotonic() >= deadline:
            break
        found, _ = parse(run_once(binary, [name], deadline - time.monotonic(), context))
        if found.verdicts.get(name) == "OK":
            passed.append(name)
    return passed


def run_suite(binary: pathlib.Path, pattern: str, context: Context, seconds: float) -> Outcome:
    deadline = time.monotonic() + seconds
    names = list_tests(binary, pattern, context)
    count = max(1, min(context.processes, os.cpu_count() or 1, len(names)))
    tally = Tally()
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        for found in pool.map(lambda part: run_list(binary, part, deadline, context),
                              [names[index::count] for index in range(count)]):
            tally.add(found)
    failures = tally.names("FAILED")
    result = {"tests": len(names), "passed": len(tally.names("OK")), "skipped": len(tally.names("SKIPPED")),
              "failed": failures, "not_run": tally.unfinished,
              "failed_but_pass_alone": alone(binary, failures, deadline, context), "messages": tally.messages}
    command = words([binary, f"--gtest_filter={pattern}"])
    if tally.timed_out:
        return Outcome(TIMEOUT, command, f"{len(tally.unfinished)} tests did not run within {seconds:.0f} s", result)
    if failures or tally.unfinished:
        first = (failures + tally.unfinished)[0]
        return Outcome(FAILED, command, f"{len(failures)} of {len(names)} tests failed, {len(tally.unfinished)} did "
                       f"not run, first {first}", result)
    return Outcome(OK, command, "", result)


def rank_of(binary: pathlib.Path, slow: bool) -> int:
    """Those of the program's plans need no card, so they are the last to take its time."""
    return 900 if "_bench_" in binary.name else 800 if slow else 0


def rows(context: Context) -> list[Row]:
    found = []
    for binary in context.tests:
        # In a rehearsal there is nothing of the device in the slow ones.
        for slow in (False,) if context.rehearsal else (False, True):
            found.append(Row(f"tests/{binary.name}{'/slow' if slow else ''}", "tests", rank_of(binary, slow),
                             300 * context.timeout_scale,
                             lambda seconds, b=binary, p="Slow*" if slow else "-Slow*": run_suite(b, p, context,
                                                                                                  seconds)))
    return found


def text(row: dict) -> str:
    result = row["result"]
    if "tests" not in result:
        return row["error"]
    line = f"{result['passed']} passed, {len(result['failed'])} failed, {result['skipped']} skipped"
    return f"{line}; {row['error']}" if row["status"] in BAD else line
