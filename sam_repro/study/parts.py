"""What a study has measured so far, so that it goes on where it was killed, and says how far it is.

Of several ranks the main one alone reads and writes the file, and its values are everybody's: ranks that knew different
parts would wait for each other in different sums.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sam_repro.files.lines import append, open_to_append, read_lines

if TYPE_CHECKING:
    from sam_repro.engine.ranks import Ranks

FILE = "parts.jsonl"
T = TypeVar("T")


class Parts:
    """Measured parts by name, a line each. Those of other settings, other runs or another program are not used."""

    def __init__(self, folder: Path, what: Mapping[str, Any], quiet: bool = False, ranks: Ranks | None = None) -> None:
        self.file = folder / FILE
        self.digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
        self.ranks, self.main = ranks, ranks is None or ranks.main
        self.quiet = quiet or not self.main
        self.total = self.done = 0
        self.spent = self.measured = 0.0
        self.known: dict[str, Any] = self._mains(self._read() if self.main else None)

    def _read(self) -> dict[str, Any]:
        known = dict[str, Any]()
        with suppress(FileNotFoundError):
            for line in read_lines(self.file)[0]:
                if line.get("of") == self.digest and isinstance(line.get("name"), str):
                    known[line["name"]] = line.get("value")
        return known

    def _mains(self, value: Any) -> Any:
        """The main rank's, on every rank."""
        return value if self.ranks is None else self.ranks.share(value)

    def expect(self, count: int) -> None:
        self.total = count

    def get(self, name: str, measure: Callable[[], T]) -> T:
        """The part's value, which must be plain JSON: measured now, or before the program was killed."""
        self.done += 1
        if name in self.known:
            return self.known[name]  # type: ignore[no-any-return]
        began = time.monotonic()
        # Through JSON in both cases, so that a study that was killed gives the same bytes as one that was not.
        value = self._mains(json.loads(json.dumps(measure(), allow_nan=False)))
        self.spent += time.monotonic() - began
        self.measured += 1
        if self.main:
            self._keep(name, value)
        if not self.quiet and self.total:
            left = (self.total - self.done) * self.spent / self.measured
            print(f"[{self.done}/{self.total}] {name}, about {left:.0f} s left", file=sys.stderr, flush=True)
        return value  # type: ignore[no-any-return]

    def _keep(self, name: str, value: Any) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = open_to_append(self.file)
        try:
            append(descriptor, json.dumps({"of": self.digest, "name": name, "value": value}) + "\n")
        finally:
            os.close(descriptor)

    def forget(self) -> None:
        """They are in the figure's numbers now."""
        self.file.unlink(missing_ok=True)
