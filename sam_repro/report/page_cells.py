"""Every cell of every table as a line, claimed and measured side by side, to sort and to filter."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sam_repro.report import text
from sam_repro.report.page_parts import line, sortable
from sam_repro.tables.papers import shown
from sam_repro.tables.results import Joined, Result

HEAD = ("cell", "claimed", "measured", "runs", "measured minus claimed", "verdict", "budget")
# What a visitor may choose, by the cell's data: of the paper, of the budget, of the verdict.
CHOICES = ("paper", "budget", "verdict")


def section(tables: Sequence[Joined]) -> str:
    cells = [(joined, result) for joined in tables for result in joined.results]
    kinds = [_kinds(joined, result) for joined, result in cells]
    choosers = "".join(_chooser(name, [kind[place] for kind in kinds]) for place, name in enumerate(CHOICES))
    search = '<label>with the words <input type="search" size="14"></label>'
    rows = [_row(*cell, kind) for cell, kind in zip(cells, kinds, strict=True)]
    count = f'<output aria-live="polite">{len(rows)} cells</output>'
    summary = f"{len(rows)} cells of {len(tables)} tables, to sort by any column and to filter"
    return (
        f'<section id="cells"><h2>All cells</h2><details><summary>{summary}</summary><form class="filter">{choosers}'
        f"{search}{count}</form>{sortable(HEAD, rows, small=True)}</details></section>"
    )


def _kinds(joined: Joined, result: Result) -> tuple[str, str, str]:
    budget = "miniature" if joined.table.is_miniature or joined.table.own else joined.budget
    paper = joined.table.paper
    return shown([paper])[paper].name, budget, result.verdict.kind.replace("_", " ")


def _chooser(name: str, values: Sequence[str]) -> str:
    options = "".join(f"<option>{escape(value)}</option>" for value in dict.fromkeys(values))
    return f'<label>{name} <select name="{name}"><option value="">any</option>{options}</select></label>'


def _row(joined: Joined, result: Result, kinds: tuple[str, str, str]) -> str:
    labels = {one.id: one.label for one in (*joined.table.rows, *joined.table.columns)}
    where = f"{joined.table.ref}: {labels[result.cell.row]}, {labels[result.cell.column]}"
    ours, claim, difference = joined.measured(result), result.cell.claim, result.verdict.difference
    places = text.decimals(result)
    values = (
        escape(text.claimed(claim)),
        escape(text.measured(ours, places)),
        escape(text.runs_of(result)) if result.planned else text.NONE,
        escape(text.difference(difference, places)),
        escape(kinds[2]),
        escape(kinds[1]),
    )
    means = (claim.mean, ours.mean if ours else None, result.finished, difference.value if difference else None)
    data = "".join(f' data-{name}="{escape(kind)}"' for name, kind in zip(CHOICES, kinds, strict=True))
    return line(where, HEAD, values, (*means, None, None)).replace("<tr", f"<tr{data}", 1)
