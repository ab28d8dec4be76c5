"""Every cell of every table as a line, claimed and measured side by side, to sort and to filter. A cell opens: its
command, runs, seeds, cost, curves, and where paper and code differ."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from sam_repro.config.schema import Config
from sam_repro.report import text
from sam_repro.report.page_parts import anchor_of, line, sortable
from sam_repro.tables.cost import cost
from sam_repro.tables.papers import shown
from sam_repro.tables.plan import PAPER
from sam_repro.tables.results import Joined, Result

HEAD = ("cell", "claimed", "measured", "95 % interval", "runs", "measured minus claimed", "verdict", "budget")
# What a visitor may choose, by the cell's data.
CHOICES = ("paper", "data", "model", "method", "budget", "verdict")
UNKNOWN = "not trained here"


@dataclass(frozen=True)
class Places:
    """What else is on the page, to link to."""

    differences: Mapping[str, int]  # a discrepancy's name -> its number
    curves: Collection[str]  # anchors of the panels with learning curves


def section(tables: Sequence[Joined], places: Places) -> str:
    cells = [(joined, result) for joined in tables for result in joined.results]
    kinds = [_kinds(joined, result) for joined, result in cells]
    options = [sorted({kind[place] for kind in kinds}) for place in range(len(CHOICES))]
    choosers = "".join(_chooser(name, values) for name, values in zip(CHOICES, options, strict=True))
    search = '<label>with the words <input type="search" size="14"></label>'
    rows = [_row(*cell, kind, options) for cell, kind in zip(cells, kinds, strict=True)]
    count = f'<output aria-live="polite">{len(rows)} cells</output>'
    without = "<noscript><p>What a cell opens is in its table's file: see Download.</p></noscript>"
    summary = f"{len(rows)} cells of {len(tables)} tables, to sort by any column, to filter and to open"
    return (
        f'<section id="cells"><h2>All cells</h2><details><summary>{summary}</summary><form class="filter">{choosers}'
        f"{search}{count}</form>{without}{sortable(HEAD, rows, small=True)}</details></section>"
        f"{_details(tables, places)}"
    )


def _kinds(joined: Joined, result: Result) -> tuple[str, ...]:
    paper = shown([joined.table.paper])[joined.table.paper].name
    budget, config = "miniature" if joined.table.is_miniature or joined.table.own else joined.budget, result.config
    trained = (config.dataset.name.value, _model(config), config.method.name) if config else (UNKNOWN,) * 3
    return paper, *trained, budget, result.verdict.kind.replace("_", " ")


def _model(config: Config) -> str:
    model = config.model
    size = [str(part) for part in (model.depth, model.width) if part]
    return model.name or " ".join([model.architecture.value, "-".join(size)]).strip()


def _chooser(name: str, values: Sequence[str]) -> str:
    options = "".join(f"<option>{escape(value)}</option>" for value in values)
    return f'<label>{name} <select name="{name}"><option value="">any</option>{options}</select></label>'


def _row(joined: Joined, result: Result, kinds: Sequence[str], options: Sequence[list[str]]) -> str:
    """`data-kinds` has the position of each of the cell's kinds among the options that a visitor may choose."""
    labels = {one.id: one.label for one in (*joined.table.rows, *joined.table.columns)}
    where = f"{joined.table.ref}: {labels[result.cell.row]}, {labels[result.cell.column]}"
    ours, claim, difference = joined.measured(result), result.cell.claim, result.verdict.difference
    places = text.decimals(result)
    values = (
        escape(text.claimed(claim) + (f", n = {claim.n}" if claim.mean is not None and claim.n else "")),
        escape(text.measured(ours, places)),
        escape(text.interval(ours, places)),
        escape(text.runs_of(result)) if result.planned else text.NONE,
        escape(text.difference(difference, places)),
        escape(kinds[-1]),
        escape(kinds[-2]),
    )
    places_of = " ".join(str(values.index(kind)) for values, kind in zip(options, kinds, strict=True))
    name = f"<details><summary>{escape(where)}</summary></details>"
    anchor = anchor_of(joined, result.cell.row, result.cell.column)
    found = line(name, HEAD, values, anchor=anchor, html=True, labels=False)
    return found.replace("<tr", f'<tr data-kinds="{places_of}"', 1)


def _details(tables: Sequence[Joined], page: Places) -> str:
    """What the cells show when they are opened, for the script, which knows the words: with them it were half the page.

    It stands there as text that nobody runs; `details` in page.js reads it, each table's cells in the order of rows.
    """
    found = [
        [
            shlex.join(["sam-repro", "sweep", f"table={joined.table.ref}"]),
            "" if joined.budget == PAPER else f" budget={joined.budget}",
            "core of a processor" if joined.table.is_miniature else "A100",
            [text.EPOCHS[kind] for kind in text.epochs(joined)],
            anchor_of(joined),
            bool(rows_of(page, joined.table.discrepancies)),
            [_opened(joined, result, page) for result in joined.results],
        ]
        for joined in tables
    ]
    data = json.dumps(found, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="details">{data}</script>'


def _opened(joined: Joined, result: Result, page: Places) -> list[Any]:
    """In the order in which the script takes them; what is not there at the end is left out."""
    config, seeds = result.config, [item.run.seed for item in result.runs]
    ended = [item.run for item in result.runs if item.state in ("done", "collapsed")]
    named, panel = joined.table.concerning(result.cell.row, result.cell.column), anchor_of(joined, result.cell.row)
    difference = text.difference(result.difference, text.decimals(result)) if result.difference else None
    found = [
        shlex.quote(f"cells={result.cell.row}/{result.cell.column}") if config else None,
        _cost(result, config, miniature=joined.table.is_miniature) if config else None,
        [part for run in ended for part in (run.seed, run.id)],
        text.duration(result.seconds) if ended else None,
        _epochs(joined, result) if ended else [],
        difference if ended else None,
        panel.removeprefix(anchor_of(joined)) if ended and panel in page.curves else None,
        [n for name, n in page.differences.items() if name in named and name not in joined.table.discrepancies],
        " to ".join(map(str, dict.fromkeys((seeds[0], seeds[-1])))) if seeds and not ended else None,
        result.why,
    ]
    while found and not found[-1]:
        found.pop()
    return found


def rows_of(page: Places, names: Collection[str]) -> str:
    """Links to the rows of "paper against code" of these ids."""
    return " ".join(f'<a href="#d{n}">{n}</a>' for name, n in page.differences.items() if name in names)


def _epochs(joined: Joined, result: Result) -> list[str | None]:
    values = [getattr(result, kind) for kind in text.epochs(joined)]
    return [text.measured(value, text.decimals(result)) if value else None for value in values]


def _cost(result: Result, config: Config, *, miniature: bool) -> list[Any]:
    """Runs, passes of each, hours: on a device that is always the same, so that the page is, wherever it is made."""
    spent = replace(cost(config), threads=1)
    hours = spent.hours("cpu" if miniature else "a100")
    return [result.planned, text.large(spent.passes), None if hours is None else text.duration(3600 * hours)]
