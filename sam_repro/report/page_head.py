"""The page's head: what was measured in a line of numbers, where to find what, and what the words mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from sam_repro.report import text
from sam_repro.report.page_parts import anchor_of
from sam_repro.runs.entry import Entry
from sam_repro.tables.papers import shown as shown_papers
from sam_repro.tables.points import Shown, points
from sam_repro.tables.results import Joined
from sam_repro.tables.verdicts import AGREES, DIFFERS

# In the words of docs/statistics.md.
WORDS = (
    (
        "interval",
        "[low, high]: holds the true value in 95 of 100 repetitions; Welch's of both samples, where there are two",
    ),
    ("agrees", "the interval of measured minus claimed lies inside the margin that the table states: the same number"),
    ("differs", "that interval lies outside the margin; or Fisher's exact test tells the rates of success apart"),
    ("undecided", "anything else: more runs would decide it"),
    ("point", "what the table is about: that the one column is better than the other; a point needs no equal levels"),
    (
        "same sign shown",
        "the interval of the two columns' difference lies on the claimed side of zero; opposite: on the other",
    ),
    (
        "holds",
        "the sign is shown, and still after Holm's correction for the number of the table's points that are measured; "
        "and the column that is ahead lost no larger share of its runs than the other",
    ),
    ("in words", "a sentence of the paper as a claim of a type, judged by intervals in the same way"),
    ("miniature", "the table's question asked again with small data and a small net: it judges points and no levels"),
    (
        "best epoch, last epoch",
        "a run's maximum over the epochs on test data, as ASAM prints; what it ended with. Where runs hold out a "
        "validation split beside the test set there is a third: the test value at the epoch picked on that split",
    ),
    ("collapsed", "ended in NaN or stayed at chance, as the papers count failed runs: (3/5) succeeded"),
)


def render(tables: Sequence[Joined], entries: Mapping[str, Entry], more: Mapping[str, str]) -> str:
    paper = [result for joined in tables if joined.budget == "paper" for result in joined.results]
    claimed = [result for result in paper if result.cell.claim.mean is not None]
    kinds = [result.verdict.kind for result in claimed]
    shown = _distinct(tables)
    seconds = math.fsum(entry["seconds"] for entry in entries.values())
    facts = (
        (f"{sum(point.holds for point in shown)} of {len(shown)}", "points that were measured hold"),
        (f"{len(entries)}", "runs in the ledger"),
        (text.duration(seconds), "of training"),
        (f"{len(claimed)}", f"claims of {len({r.cell.table.partition('/')[0] for r in claimed})} papers"),
        (f"{sum(r.succeeded > 0 for r in claimed)}", "of them measured at the paper's budget"),
        (f"{kinds.count(AGREES)}", "of them agree"),
        (f"{kinds.count(DIFFERS)}", "of them differ"),
    )
    links = []
    for name, published in shown_papers(joined.table.paper for joined in tables).items():
        mine = [joined for joined in tables if joined.table.paper == name]
        items = "".join(f'<li><a href="#{anchor_of(j)}">{escape(short(j))}</a></li>' for j in mine)
        links.append(f"<ul><li><b>{escape(published.name)}</b></li>{items}</ul>")
    others = "".join(f'<li><a href="#{anchor}">{label}</a></li>' for anchor, label in more.items())
    return (
        "<header><h1>Sharpness-aware minimization: claimed and measured</h1>"
        "<p>The papers' tables. In each cell the measured mean ± sample standard deviation stands above the claimed "
        "one; a verdict is given only where the runs had the paper's budget. Everything measured comes from the ledger "
        "of runs. A number opens its cell: command, runs, cost, curves.</p>"
        f'<ul class="facts">{"".join(f"<li><b>{value}</b>{label}</li>" for value, label in facts)}</ul>'
        f'<nav aria-label="tables">{"".join(links)}'
        '<ul><li><b>More</b></li><li><a href="#cells">all cells</a></li>'
        f'<li><a href="#words">what the words mean</a></li>{others}'
        f'<li><a href="#cost">cost and hardware</a></li></ul></nav>{_definitions()}</header>'
    )


def _distinct(tables: Sequence[Joined]) -> list[Shown]:
    """A point that two tables judge by the same runs is one, and holds where it does in both."""
    found = dict[tuple[tuple[str, ...], ...], Shown]()
    for joined in (table for table in tables if not table.table.own):
        for shown in points(joined):
            cells = [joined.result(*place) for place in (shown.pair.better, shown.pair.worse)]
            key = tuple((cell.cell.metric, *(item.run.id for item in cell.runs)) for cell in cells)
            if key not in found or not shown.holds:
                found[key] = shown
    return list(found.values())


def _definitions() -> str:
    words = "".join(f"<dt>{escape(word)}</dt><dd>{escape(meaning)}.</dd>" for word, meaning in WORDS)
    return f'<details id="words"><summary>What the words mean</summary><dl>{words}</dl></details>'


def short(joined: Joined) -> str:
    number = joined.table.number
    name = f"table {number}" if number.isdigit() else number
    if number.startswith("fig"):
        name = "figure " + number.removeprefix("fig").replace("_", ", ")
    if joined.table.is_miniature:
        return f"{name} in miniature"
    return name if joined.budget == "paper" else f"{name}, {joined.budget} budget"
