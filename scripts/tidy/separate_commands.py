#!/usr/bin/env python3
"""Prints a compilation database in which every source has a command of its own.

  separate_commands.py compile_commands.json

A build that joins several sources into one (CNN_JOIN) has commands for the joined ones only, which clang-tidy
would report as files of the build folder.
"""
import json
import re
import sys
from pathlib import Path


def sources_of(joined: Path) -> list[str]:
    """Returns the sources that a joined file includes."""
    return re.findall(r'^#include "(.+\.cpp)"$', joined.read_text(), re.MULTILINE)


def separate(commands: list[dict]) -> list[dict]:
    result = []
    for entry in commands:
        file = Path(entry["file"])
        if not re.fullmatch(r"unity_\d+_cxx\.cxx", file.name):
            result.append(entry)
            continue
        for source in sources_of(file):
            # Only the argument of -c: the output keeps its name, and nothing is written there.
            command = entry["command"].replace(f"-c {file}", f"-c {source}")
            result.append({**entry, "command": command, "file": source})
    return result


if __name__ == "__main__":
    print(json.dumps(separate(json.loads(Path(sys.argv[1]).read_text())), indent=1))
