"""The rows of docs/discrepancies.yaml as text, as data and as the page's section."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from typing import Any

from sam_repro.report.page_parts import line, sortable
from sam_repro.report.text import NONE
from sam_repro.tables.discrepancies import Discrepancy, Effect, paper_names

HEAD = (
    *("row", "paper", "the paper says", "the code does", "we do", "profile=official"),
    *("where it matters", "effect measured here", "source"),
)
_PLAIN = ("id", "paper", "topic", "says", "code", "ours", "official", "matters")
SAME = "the same"
RELEASED = "not released"


def records(rows: Sequence[Discrepancy]) -> list[dict[str, Any]]:
    return [
        {
            **{
                key: getattr(row, key)
                for key in ("id", "paper", "topic", "says", "code", "ours", "official", "matters")
            },
            "seen": {"paper": row.seen_paper, "code": row.seen_code},
            "measured": row.measured and vars(row.measured),
        }
        for row in rows
    ]


def text(rows: Sequence[Discrepancy]) -> str:
    return "\n".join(_paragraphs(row) for row in rows)


def _paragraphs(row: Discrepancy) -> str:
    lines = (
        ("paper", row.says),
        ("code", row.code or RELEASED),
        ("ours", row.ours),
        ("official", row.official or SAME),
        ("matters", row.matters),
        ("seen", _seen(row)),
        ("measured", measured(row.measured)),
    )
    shown = [
        textwrap.fill(value, 110, initial_indent=f"  {key:<9} ", subsequent_indent=" " * 12, break_on_hyphens=False)
        for key, value in lines
    ]
    return "\n".join((f"{row.id}  ({paper_names()[row.paper]}, {row.topic})", *shown, ""))


def measured(effect: Effect | None) -> str:
    if effect is None:
        return "not yet"
    return f"{effect.effect:+g} {effect.unit} [{effect.low:+g}, {effect.high:+g}], {effect.how}"


def section(rows: Sequence[Discrepancy]) -> str:
    """The page's table; a cell of another table links to a row by `anchor`."""
    if not rows:
        return ""
    lines = []
    for number, row in enumerate(rows, start=1):
        cells = (
            f"{paper_names()[row.paper]}, {row.topic}",
            row.says,
            row.code or RELEASED,
            row.ours,
            row.official or SAME,
            row.matters,
            measured(row.measured) if row.measured else NONE,
            _seen(row),
        )
        lines.append(line(f"{number} {row.id}", HEAD, [escape(cell) for cell in cells], anchor=anchor(row.id)))
    return (
        '<section id="discrepancies" class="long"><h2>Paper against code</h2>'
        "<p>Where a paper contradicts itself, another version of it or its released code, or is silent, and what is "
        f"done here.</p>{sortable(HEAD, lines, small=True)}</section>"
    )


def anchor(name: str) -> str:
    return f"d-{name}"


def links(ids: Sequence[str], rows: dict[str, Discrepancy]) -> str:
    """From a table's cell to the rows that concern it, by their numbers on the page."""
    found = [
        f'<a href="#{escape(anchor(name))}" title="{escape(name)}">{number}</a>'
        for number, name in enumerate(rows, start=1)
        if name in ids
    ]
    return f'<span class="rows" title="differences and unstated choices">{" ".join(found)}</span>' if found else ""


def _seen(row: Discrepancy) -> str:
    return "; ".join(place for place in (row.seen_paper, row.seen_code) if place)
