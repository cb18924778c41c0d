"""Child processes with a time limit: one that hangs is killed together with all that it started."""
from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence


@dataclasses.dataclass(frozen=True)
class Finished:
    """`status` is the exit code, minus the number of the signal, or None where the time was up."""
    status: int | None
    out: str
    err: str
    seconds: float

    def last_line(self) -> str:
        """What most programs end with when they fail: the last line of stderr, or of stdout."""
        lines = [line.strip() for text in (self.out, self.err) for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def failure(self) -> str:
        """One line; empty if the process ended well."""
        if self.status is None:
            return f"killed after {self.seconds:.0f} s"
        if self.status < 0:
            return f"ended by {signal.Signals(-self.status).name}: {self.last_line()}"
        return f"exit code {self.status}: {self.last_line()}" if self.status else ""


def execute(command: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None) -> Finished:
    """Runs it to its end, or for that long. Its output goes through files: what it leaves behind may hold a pipe."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                     env={**os.environ, **(environment or {})}, start_new_session=True)
        except OSError as error:
            return Finished(127, "", str(error), 0.0)
        try:
            status: int | None = child.wait(timeout=max(seconds, 0.01))
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end_group(child)
        out.seek(0)
        err.seek(0)
        return Finished(status, out.read().decode(errors="replace"), err.read().decode(errors="replace"),
                        time.monotonic() - started)


def end_group(child: subprocess.Popen) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all of them have ended
    child.wait()
