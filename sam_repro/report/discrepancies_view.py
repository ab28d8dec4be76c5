"""The rows of docs/discrepancies.yaml as text, as data and as the page's section."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from sam_repro.report.page_parts import line, sortable
from sam_repro.report.text import NONE
from sam_repro.tables.discrepancies import Discrepancy, paper_names
from sam_repro.tables.prices import Price

HEAD = (
    *("row", "paper", "the paper says", "the code does", "we do", "profile=official"),
    *("where it matters", "effect measured here", "source"),
)
_PLAIN = ("id", "paper", "topic", "says", "code", "ours", "official", "matters")
SAME = "the same"
RELEASED = "not released"
Prices = Mapping[str, Sequence[Price]]  # by the row that they concern


def records(rows: Sequence[Discrepancy], prices: Prices) -> list[dict[str, Any]]:
    return [
        {
            **{
                key: getattr(row, key)
                for key in ("id", "paper", "topic", "says", "code", "ours", "official", "matters")
            },
            "seen": {"paper": row.seen_paper, "code": row.seen_code},
            "measured": [_record(price) for price in prices.get(row.id, ())],
        }
        for row in rows
    ]


def _record(price: Price) -> dict[str, Any]:
    found = price.difference
    return {
        **{key: getattr(price, key) for key in ("changed", "default", "unit", "runs", "planned", "table")},
        "difference": found.value,
        "interval": None if found.low is None else [found.low, found.high],
        "rule": found.rule,
    }


def text(rows: Sequence[Discrepancy], prices: Prices) -> str:
    return "\n".join(_paragraphs(row, measured(prices.get(row.id, ()))) for row in rows)


def _paragraphs(row: Discrepancy, effect: str) -> str:
    lines = (
        ("paper", row.says),
        ("code", row.code or RELEASED),
        ("ours", row.ours),
        ("official", row.official or SAME),
        ("matters", row.matters),
        ("seen", _seen(row)),
        ("measured", effect),
    )
    shown = [
        textwrap.fill(value, 110, initial_indent=f"  {key:<9} ", subsequent_indent=" " * 12, break_on_hyphens=False)
        for key, value in lines
    ]
    return "\n".join((f"{row.id}  ({paper_names()[row.paper]}, {row.topic})", *shown, ""))


def measured(prices: Sequence[Price]) -> str:
    """ "+0.42 % [-0.31, +1.15]: ASAM, eta 0, less ASAM, the default (5 of 5 runs, paired by seed, ours/prices)"."""
    return "; ".join(map(_price, prices)) or "not measured"


def _price(price: Price) -> str:
    found = price.difference
    inside = "" if found.low is None else f" [{found.low:+.2f}, {found.high:+.2f}]"
    runs = f"{price.runs} of {price.planned} runs, {found.rule}, {price.table}"
    return f"{found.value:+.2f} {price.unit}{inside}: {price.changed}, less {price.default} ({runs})"


def section(rows: Sequence[Discrepancy], prices: Prices) -> str:
    """The page's table; a cell of another table links to a row by its number."""
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
            measured(prices[row.id]) if row.id in prices else NONE,
            _seen(row),
        )
        found = line(f"{number} {row.id}", HEAD, [*map(escape, cells)], anchor=f"d{number}", labels=False)
        lines.append(found)
    return (
        '<section id="discrepancies" class="long"><h2>Paper against code</h2>'
        "<p>Where a paper contradicts itself, another version of it or its released code, or is silent, and what is "
        f"done here.</p>{sortable(HEAD, lines, small=True)}</section>"
    )


def _seen(row: Discrepancy) -> str:
    return "; ".join(place for place in (row.seen_paper, row.seen_code) if place)
