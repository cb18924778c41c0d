"""The one JSON file: written anew after every row, in one move, so that a run cut off anywhere leaves all it did."""
from __future__ import annotations

import datetime
import json
import os
import pathlib
import tempfile
from typing import Any

FORMAT = 1


class StoreError(Exception):
    """The file cannot be gone on with; one line."""


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_atomically(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


class Store:
    """`data["rows"]` maps the name of a row to what became of it."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.data: dict[str, Any] = {"format": FORMAT, "started": now(), "identity": {}, "machine": {}, "runs": [],
                                     "rows": {}, "summary": []}
        if path.exists():
            self.data = self._read()

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.path} cannot be gone on with, name another file by --json: {error}") from error
        if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("rows"), dict):
            raise StoreError(f"{self.path} is no result of gpu_check, name another file by --json")
        return data

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        return self.data["rows"]

    def forget(self, parts: set[str]) -> None:
        self.data["rows"] = {name: row for name, row in self.rows.items() if row["slice"] not in parts}

    def identify(self, identity: dict[str, Any]) -> None:
        """Rows of two programs or two cards in one table would compare what cannot be compared."""
        before = self.data["identity"]
        if self.rows and before != identity:
            raise StoreError(f"{self.path} has rows of {before}, and this is {identity}: name another file by --json, "
                             "or --slice=all --again to start anew")
        self.data["identity"] = identity

    def put(self, name: str, row: dict[str, Any]) -> None:
        self.rows[name] = row
        self.save()

    def save(self) -> None:
        self.data["updated"] = now()
        write_atomically(self.path, json.dumps(self.data, indent=1) + "\n")
