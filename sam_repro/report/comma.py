"""Rows as CSV, for every command that prints it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def separated(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Under the names of `columns`, or of the first row where none are given; lists as words."""
    found = list(rows)
    names = columns or list(next(iter(found), {}))
    if not names:
        return ""
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: " ".join(map(str, v)) if isinstance(v, list) else v for k, v in row.items()} for row in found)
    return out.getvalue()
