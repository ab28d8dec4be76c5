"""Every cell of every table as a line, claimed and measured side by side, to sort and to filter. A cell opens: its
command, runs, seeds, cost, curves, and where paper and code differ."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

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
    rows = [_row(*cell, kind, options, places) for cell, kind in zip(cells, kinds, strict=True)]
    count = f'<output aria-live="polite">{len(rows)} cells</output>'
    summary = f"{len(rows)} cells of {len(tables)} tables, to sort by any column, to filter and to open"
    return (
        f'<section id="cells"><h2>All cells</h2><details><summary>{summary}</summary><form class="filter">{choosers}'
        f"{search}{count}</form>{sortable(HEAD, rows, small=True)}</details></section>"
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


def style() -> str:
    """The names of its columns where cells stand below each other: once, and not in each of some hundred rows."""
    rules = (
        f'  #cells td:nth-child({n})::before {{ content: "{name}"; }}\n' for n, name in enumerate(HEAD[1:], start=2)
    )
    return f"@media (max-width: 56rem) {{\n{''.join(rules)}}}\n"


def _chooser(name: str, values: Sequence[str]) -> str:
    options = "".join(f"<option>{escape(value)}</option>" for value in values)
    return f'<label>{name} <select name="{name}"><option value="">any</option>{options}</select></label>'


def _row(joined: Joined, result: Result, kinds: Sequence[str], options: Sequence[list[str]], page: Places) -> str:
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
    name = f"<details><summary>{escape(where)}</summary>{_opened(joined, result, page)}</details>"
    anchor = anchor_of(joined, result.cell.row, result.cell.column)
    found = line(name, HEAD, values, anchor=anchor, html=True, labels=False)
    return found.replace("<tr", f'<tr data-kinds="{places_of}"', 1)


def _opened(joined: Joined, result: Result, page: Places) -> str:
    lines = []
    if result.why:
        lines.append(("not run", escape(result.why)))
    if result.config:
        lines.append(("command", f"<code>{escape(command(joined, result))}</code>"))
        lines.append(("cost", escape(_cost(result, result.config, miniature=joined.table.is_miniature))))
    if ended := [item.run for item in result.runs if item.state in ("done", "collapsed")]:
        runs = "; ".join(f"seed {run.seed}: <code>{run.id}</code>" for run in ended)
        lines.append(("runs", f"{runs}, in {text.duration(result.seconds)}"))
        lines += [(name, escape(value)) for name, value in _epochs(joined, result)]
        if result.difference:
            lines.append(("to the baseline", escape(text.difference(result.difference, text.decimals(result)))))
        if (panel := anchor_of(joined, result.cell.row)) in page.curves:
            lines.append(("curves", f'<a href="#{panel}">of the row</a>'))
    elif result.planned:
        seeds = [item.run.seed for item in result.runs]
        lines.append(("seeds", f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"))
    names = joined.table.concerning(result.cell.row, result.cell.column)
    of_all = joined.table.discrepancies
    links = [one for one in (rows_of(page, [name for name in names if name not in of_all]),) if one]
    if rows_of(page, of_all):
        links.append(f'<a href="#{anchor_of(joined)}-rows">those of every cell</a>')
    if links:
        lines.append(("paper against code, rows", " ".join(links)))
    return "".join(f"<p><b>{name}</b> {value}</p>" for name, value in lines)


def rows_of(page: Places, names: Collection[str]) -> str:
    """Links to the rows of "paper against code" of these ids."""
    return " ".join(f'<a href="#d{n}">{n}</a>' for name, n in page.differences.items() if name in names)


def _epochs(joined: Joined, result: Result) -> list[tuple[str, str]]:
    found = [(text.EPOCHS[kind], getattr(result, kind)) for kind in text.epochs(joined)]
    return [(name, text.measured(value, text.decimals(result))) for name, value in found if value]


def command(joined: Joined, result: Result) -> str:
    """What trains the cell's runs that are missing."""
    words = ["sam-repro", "sweep", f"table={joined.table.ref}", f"cells={result.cell.row}/{result.cell.column}"]
    return shlex.join([*words, *([] if joined.budget == PAPER else [f"budget={joined.budget}"])])


def _cost(result: Result, config: Config, *, miniature: bool) -> str:
    """On a device that is always the same one, so that the page is the same wherever it is made."""
    spent = replace(cost(config), threads=1)
    device, name = ("cpu", "core of a processor") if miniature else ("a100", "A100")
    hours = spent.hours(device)
    time = "" if hours is None else f", {text.duration(3600 * hours)} on one {name}, estimated"
    runs = f"{result.planned} runs of" if result.planned > 1 else "a run of"
    return f"{runs} {text.large(spent.passes)} passes{time}"
