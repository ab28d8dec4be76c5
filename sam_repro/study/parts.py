"""What a study has measured so far, so that it goes on where it was killed, and says how far it is."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from sam_repro.files.lines import append, open_to_append, read_lines

FILE = "parts.jsonl"
T = TypeVar("T")


class Parts:
    """Measured parts by name, a line each. Those of other settings, other runs or another program are not used."""

    def __init__(self, folder: Path, what: Mapping[str, Any], quiet: bool = False) -> None:
        self.file = folder / FILE
        self.digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
        self.known = dict[str, Any]()
        self.quiet = quiet
        self.total = self.done = 0
        self.spent = self.measured = 0.0
        with suppress(FileNotFoundError):
            for line in read_lines(self.file)[0]:
                if line.get("of") == self.digest and isinstance(line.get("name"), str):
                    self.known[line["name"]] = line.get("value")

    def expect(self, count: int) -> None:
        self.total = count

    def get(self, name: str, measure: Callable[[], T]) -> T:
        """The part's value, which must be plain JSON: measured now, or before the program was killed."""
        self.done += 1
        if name in self.known:
            return self.known[name]  # type: ignore[no-any-return]
        began = time.monotonic()
        # Through JSON in both cases, so that a study that was killed gives the same bytes as one that was not.
        value = json.loads(json.dumps(measure(), allow_nan=False))
        self.spent += time.monotonic() - began
        self.measured += 1
        self.file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = open_to_append(self.file)
        try:
            append(descriptor, json.dumps({"of": self.digest, "name": name, "value": value}) + "\n")
        finally:
            os.close(descriptor)
        if not self.quiet and self.total:
            left = (self.total - self.done) * self.spent / self.measured
            print(f"[{self.done}/{self.total}] {name}, about {left:.0f} s left", file=sys.stderr, flush=True)
        return value  # type: ignore[no-any-return]

    def forget(self) -> None:
        """They are in the figure's numbers now."""
        self.file.unlink(missing_ok=True)
