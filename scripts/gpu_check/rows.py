"""What all slices share: a row (one command whose outcome is kept), and the surroundings in which rows run."""
from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

from execute import Finished

OK, FAILED, TIMEOUT, DOES_NOT_FIT = "ok", "failed", "timeout", "does_not_fit"
BAD = (FAILED, TIMEOUT)


@dataclasses.dataclass
class Outcome:
    status: str
    command: list[str]
    error: str = ""
    result: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Row:
    """`rank` orders rows of all slices, the most valuable first; `run` gets the seconds that it may take."""
    name: str
    part: str
    rank: int
    timeout_s: float
    run: Callable[[float], Outcome]


@dataclasses.dataclass(frozen=True)
class Context:
    """Where things are and what is asked for; nothing here changes during a run."""
    root: pathlib.Path  # of the repository or the bundle
    program: pathlib.Path
    tests: tuple[pathlib.Path, ...]  # binaries of GoogleTest
    device: str  # gpu, or cpu in a rehearsal
    environment: dict[str, str]  # where the CUDA libraries are
    output: pathlib.Path  # folder for what rows leave for later rows
    models: tuple[str, ...]  # empty: all
    precisions: tuple[str, ...]  # empty: all
    torch_python: str | None  # None: there is no PyTorch
    memory_bytes: int | None  # of the device, where it is known
    processes: int = 1  # that may use the device at once
    timeout_scale: float = 1.0
    toy: bool = False  # toy models in few steps, where speed means nothing

    @property
    def rehearsal(self) -> bool:
        return self.device == "cpu"


def words(command: list[Any]) -> list[str]:
    return [str(word) for word in command]


def failed(command: list[str], finished: Finished) -> Outcome:
    """The outcome of a command that did not end well."""
    status = TIMEOUT if finished.status is None else FAILED
    return Outcome(status, command, finished.failure(), {"stderr": finished.err[-2000:]})
