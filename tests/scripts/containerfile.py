"""Reads a Containerfile into its instructions by stage and joins continued lines."""
from __future__ import annotations

import dataclasses
import pathlib
import re
import shlex
import sys


@dataclasses.dataclass
class Stage:
    base: str
    name: str | None
    steps: list[tuple[str, str]] = dataclasses.field(default_factory=list)  # ("RUN", "apt-get update")

    def words(self, instruction: str) -> list[str]:
        return [text for name, text in self.steps if name == instruction]


@dataclasses.dataclass
class Containerfile:
    arguments: dict[str, str]  # before the first stage
    stages: list[Stage]

    def base_of(self, stage: Stage) -> str:
        return re.sub(r"\$\{(\w+)\}", lambda match: self.arguments[match[1]], stage.base)


def read(path: pathlib.Path) -> Containerfile:
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    found = Containerfile({}, [])
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if not line.strip():
            continue
        name, text = line.split(maxsplit=1)
        if name == "FROM":
            base = re.fullmatch(r"(\S+)(?: AS (\w+))?", text)
            found.stages.append(Stage(base[1], base[2]))
        elif not found.stages:
            argument, value = text.split("=", 1)
            found.arguments[argument] = value
        else:
            found.stages[-1].steps.append((name, text))
    return found


def last_stage_in_shell(path: pathlib.Path) -> list[str]:
    """Returns the steps of the last stage as bash commands. $image is the root of a Debian, $staged the first stage's
    /staged, and $root the repository."""
    lines = []
    for name, text in read(path).stages[-1].steps:
        if name == "RUN":
            lines.append(f'chroot "$image" /bin/sh -c {shlex.quote(text)}')
        elif name == "ENV":
            lines.append(f"export {text}")
        elif name == "COPY":
            source, target = text.split()[-2:]
            folder = '"$staged"' if "--from=build" in text else '"$root"'
            place = shlex.quote(source.removeprefix("/staged"))
            lines.append(f'mkdir -p "$(dirname "$image"{target})" && cp -rT {folder}/{place} "$image"{target}')
        elif name not in ("USER", "WORKDIR", "CMD"):
            raise ValueError(f"{path}: nobody knows how to do {name}")
    return lines


if __name__ == "__main__":
    print("\n".join(last_stage_in_shell(pathlib.Path(sys.argv[1]))))
