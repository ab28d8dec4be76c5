"""Which lines of a table stand across and which down, wherever people read it.

A table is laid out as its paper prints it. One of more columns than a screen or a sheet holds is turned: its columns,
twenty methods perhaps, stand down the side, and its rows across, as long as that is narrower.
"""

from __future__ import annotations

from dataclasses import dataclass

from sam_repro.tables.results import Joined, Result
from sam_repro.tables.table import Line

MOST = 8  # columns beside each other


@dataclass(frozen=True)
class Layout:
    head: tuple[Line, ...]  # across
    lines: tuple[tuple[Line, tuple[Result, ...]], ...]  # down, each with its cells in the order of the head


def wide(joined: Joined) -> bool:
    """Whether the columns are too many to stand beside each other."""
    return len(joined.table.columns) > MOST


def laid_out(joined: Joined) -> Layout:
    rows, columns = joined.table.rows, joined.table.columns
    if wide(joined) and len(rows) < len(columns):
        return Layout(rows, tuple((c, tuple(joined.result(r.id, c.id) for r in rows)) for c in columns))
    return Layout(columns, tuple((r, tuple(joined.result(r.id, c.id) for c in columns)) for r in rows))
