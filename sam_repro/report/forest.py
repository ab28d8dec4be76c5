"""A forest plot as a list: a line of text for each difference, beside it a bar for its interval, on one scale for all.

The text says everything, so a screen reader loses nothing; on a phone the bar stands under its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from sam_repro.report import text
from sam_repro.report.curves import nice_ticks
from sam_repro.tables.judged import JUDGED
from sam_repro.tables.points import points
from sam_repro.tables.results import Joined
from sam_repro.tables.verdicts import AGREES, DIFFERS, OPPOSITE, SAME, UNDECIDED, Difference

WIDTH, HEIGHT, EDGE = 320, 16, 16
COLOUR = {SAME: AGREES, OPPOSITE: DIFFERS}  # of a point, as of a level


@dataclass(frozen=True)
class Bar:
    words: str
    difference: Difference
    kind: str  # agrees, differs or undecided
    claimed: float | None = None  # drawn as a diamond


def of_points(joined: Joined) -> list[Bar]:
    """What the table is about, pair by pair."""
    return [
        Bar(text.point(one), one.point.difference, COLOUR.get(one.point.verdict, UNDECIDED), claimed=one.pair.claimed)
        for one in points(joined)
    ]


def of_levels(joined: Joined) -> list[Bar]:
    """Measured minus claimed, cell by cell, of those that were judged."""
    labels = {line.id: line.label for line in (*joined.table.rows, *joined.table.columns)}
    return [
        Bar(
            f"{labels[result.cell.row]}, {labels[result.cell.column]}: {result.verdict.text}",
            result.verdict.difference,
            result.verdict.kind,
        )
        for result in joined.results
        if result.verdict.kind in JUDGED and result.verdict.difference
    ]


def draw(bars: Sequence[Bar], axis: str, name: str, margin: float | None = None) -> str:
    """`margin`: a band around zero within which two levels are one. `name`: the page's own for this plot's zero."""
    if not bars:
        return ""
    ends = [0.0, *(-margin, margin)] if margin else [0.0]
    for bar in bars:
        found = bar.difference
        shown = (found.value, found.low, found.high, bar.claimed)
        ends += [value for value in shown if value is not None]
    ticks = nice_ticks(min(ends), max(ends))
    ground = [f'<g id="{name}">{_ground(ticks, margin)}</g>'] + [f'<use href="#{name}"/>'] * (len(bars) - 1)
    drawn = [_svg(below + _bar(bar, ticks)) for below, bar in zip(ground, bars, strict=True)]
    lines = [
        f'<li class="{bar.kind}"><span>{escape(bar.words)}</span>{svg}</li>'
        for bar, svg in zip(bars, drawn, strict=True)
    ]
    names = [(_x(tick, ticks), f"{tick:+g}" if tick else "0") for tick in ticks]
    marks = "".join(f'<text class="tick mid" x="{x:.1f}" y="11">{name}</text>' for x, name in names)
    return f'<ul class="forest">{"".join(lines)}<li><span class="soft">{escape(axis)}</span>{_svg(marks)}</li></ul>'


def _svg(inside: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{inside}</svg>'


def _x(value: float, ticks: Sequence[float]) -> float:
    return EDGE + (value - ticks[0]) / (ticks[-1] - ticks[0]) * (WIDTH - 2 * EDGE)


def _ground(ticks: Sequence[float], margin: float | None) -> str:
    """What every line of a plot shows below its bar: zero, and the margin around it."""
    zero = f'<path class="zero" d="M{_x(0.0, ticks):.1f} 0V{HEIGHT}"/>'
    if not margin:
        return zero
    left, right = _x(-margin, ticks), _x(margin, ticks)
    return f'<rect class="band" x="{left:.1f}" y="0" width="{right - left:.1f}" height="{HEIGHT}"/>{zero}'


def _bar(bar: Bar, ticks: Sequence[float]) -> str:
    middle, found, out = HEIGHT / 2, bar.difference, ""
    if found.low is not None and found.high is not None:
        out += f'<path class="ci" d="M{_x(found.low, ticks):.1f} {middle:g}H{_x(found.high, ticks):.1f}"/>'
    if bar.claimed is not None:
        x = _x(bar.claimed, ticks)
        out += f'<path class="claimed" d="M{x - 4:.1f} {middle:g}l4 -4l4 4l-4 4z"/>'
    return f'{out}<circle cx="{_x(found.value, ticks):.1f}" cy="{middle:g}" r="3.5"/>'
