"""Accuracy over cost of a table with many columns, as one SVG file: a panel for each row, the panels below each other.

Of twenty methods most take the same two passes a step, so on an axis of passes they would stand on one spot. Here the
axis has a band for each cost, rising to the right, and in it the columns side by side, rising by their mean, each with
its 95 % interval and its name below. What the methods are compared with, the baseline and the same with more epochs,
goes on across the whole panel, so that what is above it and what is below it is seen without reading a number. There
is room for the names of some thirty columns.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby

from sam_repro.report import text
from sam_repro.report.curves import nice_ticks
from sam_repro.report.passes import COLOURS, STYLE, levels, mark, point, shown
from sam_repro.tables.results import Joined
from sam_repro.tables.statistics import Sample
from sam_repro.tables.table import Line

WIDTH, PLOT, EDGE = 760, 230, 14
LEFT = 62  # of a panel, more where a long name of its first columns needs it
GAP = 14  # between two bands
SLOPE = math.radians(50)  # of the names
LETTER, LINE = 7.2, 17  # no letter of the usual fonts is wider on average, no line higher
KEY = 34  # the width of a baseline in the legend
METHOD, BASELINE = 0, 2  # the marks: a circle for each method, for the baselines a square, a rhombus, ...
AFTER = {"best": "of the best epoch", "last": "after the last epoch", "picked": "of the epoch picked on validation"}
COST = "cost of a run, in thousand forward and backward passes over a batch:"
ORDER = "Columns of one cost stand side by side, in the order of their means."
MORE = """
.soft { fill: #666 } .shade { fill: #f4f5f7 } .across { fill-opacity: .16 } .mean { stroke-opacity: .75 }
.bracket { stroke: #999; fill: none }
@media (prefers-color-scheme: dark) { .soft { fill: #aaa } .shade { fill: #1d1f22 } .across { fill-opacity: .22 }
.bracket { stroke: #777 } [fill="#0072b2"] { fill: #4da9e0 } [stroke="#0072b2"] { stroke: #4da9e0 }
[fill="#d55e00"] { fill: #f08a3c } [stroke="#d55e00"] { stroke: #f08a3c }
[fill="#009e73"] { fill: #2dc79b } [stroke="#009e73"] { stroke: #2dc79b } }
"""


@dataclass(frozen=True)
class Mark:
    name: str
    place: int  # decides on colour and shape
    value: Sample
    cost: float  # thousand passes
    band: int = 0  # how many cost less
    at: float = 0.0  # its place among the columns, from 0 on the left to 1 on the right


@dataclass(frozen=True)
class Panel:
    row: Line
    marks: tuple[Mark, ...]  # by cost, then by mean
    missing: tuple[str, ...]  # lines that say what has no interval

    @property
    def gaps(self) -> float:
        """Between all its bands."""
        return GAP * max(mark.band for mark in self.marks)

    @property
    def names(self) -> float:
        """How high the names are."""
        return max(LETTER * len(mark.name) for mark in self.marks) * math.sin(SLOPE) + 16


def render(joined: Joined) -> str | None:
    """None where nothing of the table is measured with an interval."""
    baselines = {name: BASELINE + number for number, name in enumerate(_baselines(joined))}
    panels = [found for row in joined.table.rows if (found := _panel(joined, row, baselines)).marks]
    if not panels:
        return None
    left = max(_left(mark, panel.gaps) for panel in panels for mark in panel.marks)
    out, height = _head(joined, baselines)
    for panel in panels:
        drawn, height = _drawn(joined, panel, left, height)
        out += drawn
    drawn, height = _caption(joined, panels, height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" role="img"><title>{escape(joined.table.title)}</title><style>{STYLE}{MORE}</style>'
        f'<rect class="back" width="{WIDTH}" height="{height:.0f}"/>{"".join([*out, *drawn])}</svg>\n'
    )


def _baselines(joined: Joined) -> list[str]:
    """The column that the others are compared with, and those that train as it does, but longer, say."""
    named = {r.cell.baseline[1] for r in joined.results if r.cell.baseline and r.cell.baseline[1] != r.cell.column}
    plain = [r.config.method for r in joined.results if r.cell.column in named and r.config]
    alike = {r.cell.column for r in joined.results if r.config and r.config.method in plain}
    return [column.id for column in joined.table.columns if column.id in named | alike]


def _panel(joined: Joined, row: Line, baselines: Mapping[str, int]) -> Panel:
    columns, marks = joined.table.columns, list[Mark]()
    for place, result in shown(joined, row.id):
        if (value := joined.measured(result)) is not None:
            name = columns[place].label + (f" (n = {value.n})" if value.n < result.planned else "")
            cost = float(f"{result.passes_each / 1000:.2g}")
            marks.append(Mark(name, baselines.get(columns[place].id, METHOD), value, cost))
    marks.sort(key=lambda one: (one.cost, one.value.mean))
    costs = sorted({one.cost for one in marks})
    placed = [
        replace(one, band=costs.index(one.cost), at=(number + 0.5) / len(marks)) for number, one in enumerate(marks)
    ]
    return Panel(row, tuple(placed), tuple(_missing(joined, row)))


def _missing(joined: Joined, row: Line) -> list[str]:
    """Which columns have no run of the row yet, and which too few that succeeded for an interval."""
    labels = {line.id: line.label for line in joined.table.columns}
    there = {joined.table.columns[place].id for place, _ in shown(joined, row.id)}
    rest = [r for r in joined.results if r.cell.row == row.id and r.cell.column not in there]
    not_run = [labels[r.cell.column] for r in rest if not r.finished]
    few = [f"{labels[r.cell.column]} ({text.runs_of(r)})" for r in rest if r.finished]
    lines = []
    for words, names in ((f"not run yet, {len(not_run)} of {len(labels)}", not_run), ("no interval yet", few)):
        if names:
            lines += _wrapped(f"{words}: {'; '.join(names)}")
    return lines


def _x(mark: Mark, gaps: float, left: float) -> float:
    """Where a mark stands on a plot that begins at `left`."""
    return left + mark.at * (WIDTH - EDGE - gaps - left) + GAP * mark.band


def _left(mark: Mark, gaps: float) -> float:
    """Where the plot must begin for a mark's name, which leans to the left, to stay inside the picture: `_x` solved."""
    reach = LETTER * len(mark.name) * math.cos(SLOPE) + 10
    return max(LEFT, (reach - GAP * mark.band - mark.at * (WIDTH - EDGE - gaps)) / (1 - mark.at))


def _head(joined: Joined, baselines: Mapping[str, int]) -> tuple[list[str], float]:
    """The title, and which mark is what. Returns what is drawn and how far down it goes."""
    out, y = list[str](), 6.0
    for line in _wrapped(joined.table.title):
        y += LINE
        out.append(f'<text class="head" x="{EDGE}" y="{y:g}">{escape(line)}</text>')
    labels = {line.id: line.label for line in joined.table.columns}
    items = [(place, f"level of {labels[name]}") for name, place in baselines.items()]
    x, y = float(EDGE), y + LINE + 6
    for place, words in [*items, (METHOD, "a method")]:
        if x > EDGE and x + KEY + 8 + LETTER * len(words) > WIDTH:
            x, y = float(EDGE), y + LINE
        if place != METHOD:
            out.append(_across(place, (y - 11, y - 4, y + 3), (x, x + KEY)))
        out.append(f'{mark(place, x + KEY / 2, y - 4)}<text x="{x + KEY + 8:.1f}" y="{y:g}">{escape(words)}</text>')
        x += KEY + 30 + LETTER * len(words)
    return out, y + 6


def _drawn(joined: Joined, panel: Panel, left: float, top: float) -> tuple[list[str], float]:
    """A panel from `top` on, and where it ends."""
    high = top + 76
    low, right = high + PLOT, WIDTH - EDGE
    ends = [end for mark in panel.marks for end in (mark.value.low, mark.value.high) if end is not None]
    ticks = nice_ticks(min(ends), max(ends))

    def y(value: float) -> float:
        return low - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (low - high)

    cell = next(r.cell for r in joined.results if r.cell.row == panel.row.id)
    measured = f"{cell.metric.replace('_', ' ')}{f', {cell.unit}' if cell.unit else ''}"
    middle = f"translate({left - 46:.1f} {(low + high) / 2:.1f}) rotate(-90)"
    out = [
        f'<text class="head" x="{left:.1f}" y="{top + 24:g}">{escape(panel.row.label)}</text>',
        f'<text class="soft" x="{left:.1f}" y="{top + 24 + LINE:g}">{COST}</text>',
        *_costs(panel, left, (high, low)),
        *levels(ticks, y, (round(left, 1), right), ""),
        f'<text transform="{middle}" text-anchor="middle">{escape(measured)}</text>',
    ]
    for one in panel.marks:
        if one.place != METHOD and one.value.low is not None and one.value.high is not None:
            heights = (y(one.value.high), y(one.value.mean), y(one.value.low))
            out.append(_across(one.place, heights, (left, right)))
    for one in panel.marks:
        x = _x(one, panel.gaps, left)
        place = f"translate({x + 4:.1f} {low + 14:.1f}) rotate({-math.degrees(SLOPE):g})"
        out.append(point(one.name, one.place, one.value, x, y))
        out.append(f'<text class="name" transform="{place}" text-anchor="end">{escape(one.name)}</text>')
    end = low + panel.names
    for line in panel.missing:
        out.append(f'<text class="soft" x="{EDGE}" y="{end + LINE:.1f}">{escape(line)}</text>')
        end += LINE
    return out, end + 10


def _costs(panel: Panel, left: float, ends: tuple[float, float]) -> list[str]:
    """The bands, shaded from the top of the plot to its bottom, and above each its cost."""
    top, bottom = ends
    half = (WIDTH - EDGE - panel.gaps - left) / len(panel.marks) / 2  # of a column's width
    out = []
    for cost, marks in groupby(panel.marks, key=lambda one: one.cost):
        places = [_x(one, panel.gaps, left) for one in marks]
        start, end = places[0] - half, places[-1] + half
        number = f"{cost:g}" if cost >= 10 else f"{cost:#.2g}"
        out.append(
            f'<rect class="shade" x="{start:.1f}" y="{top:.1f}" width="{end - start:.1f}" height="{bottom - top:.1f}"/>'
            f'<path class="bracket" d="M{start + 1:.1f} {top - 4:.1f}v-5H{end - 1:.1f}v5"/>'
            f'<text class="cost" x="{(start + end) / 2:.1f}" y="{top - 14:.1f}" text-anchor="middle">{number}</text>'
        )
    return out


def _across(place: int, heights: tuple[float, float, float], ends: tuple[float, float]) -> str:
    """A baseline's interval and its mean, from the left end to the right one; heights of its top, mean and bottom."""
    colour, (top, mean, bottom), (left, right) = COLOURS[place % len(COLOURS)], heights, ends
    return (
        f'<rect class="across" fill="{colour}" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
        f'height="{bottom - top:.1f}"/><line class="mean" stroke="{colour}" x1="{left:.1f}" x2="{right:.1f}" '
        f'y1="{mean:.1f}" y2="{mean:.1f}" stroke-dasharray="{2 * place} 3"/>'
    )


def _caption(joined: Joined, panels: Sequence[Panel], top: float) -> tuple[list[str], float]:
    """What a mark is: of how many seeds, which of a run's epochs. And the rows of which nothing is measured."""
    counts = sorted({mark.value.n for panel in panels for mark in panel.marks})
    n = " to ".join(f"{count}" for count in dict.fromkeys((counts[0], counts[-1])))
    metric = next(r.cell.metric for r in joined.results).replace("_", " ")
    words = [f"n = {n} seeds, mean and 95 % interval, {metric} {AFTER[joined.table.statistic]}.", ORDER]
    drawn = {panel.row.id for panel in panels}
    rest = [row.label for row in joined.table.rows if row.id not in drawn]
    words += [f"Not drawn, since nothing of it has an interval yet: {'; '.join(rest)}."] if rest else []
    out = []
    for line in (line for one in words for line in _wrapped(one)):
        top += LINE
        out.append(f'<text x="{EDGE}" y="{top:.1f}">{escape(line)}</text>')
    return out, top + 12


def _wrapped(words: str) -> list[str]:
    return textwrap.wrap(words, int((WIDTH - 2 * EDGE) / LETTER))
