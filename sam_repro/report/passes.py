"""Accuracy over cost as one SVG file: a panel for each row of a table, a point with its 95 % interval for each column.

A method that takes two passes a step stands further to the right than the baseline it is compared with, and beside the
baseline that was given as many passes. The file carries its own style, light and dark, and needs nothing else.
A table of too many columns for a legend is drawn by `bands.py`, with the same marks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from sam_repro.report.curves import nice_ticks
from sam_repro.tables.results import Joined, Result
from sam_repro.tables.statistics import Sample

WIDTH, HEIGHT = 330, 260  # of a panel
ACROSS = 3  # panels beside each other, the others below: more would be shrunk beyond reading where a page is narrow
LEFT, RIGHT, TOP, BOTTOM = 44, 14, 30, 40
# Distinguishable with any colour vision; each column has a shape of its own as well, for print.
COLOURS = ("#0072b2", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
Height = Callable[[float], float]  # of a value, from the top of the picture
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #333 } .head { font-weight: 600; font-size: 13px }
.grid { stroke: #ddd } .bar { stroke-width: 1.5 } .back { fill: #fff }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .grid { stroke: #444 } .back { fill: #111 } }
"""


def render(joined: Joined) -> str | None:
    """None where a row of the table has nothing measured with an interval."""
    rows = [(row.label, shown(joined, row.id)) for row in joined.table.rows]
    rows = [(label, results) for label, results in rows if results]
    if not rows:
        return None
    width, top = WIDTH * min(len(rows), ACROSS), HEIGHT * math.ceil(len(rows) / ACROSS)
    legend, height = _legend(joined, width, top)
    panels = [
        f'<svg x="{WIDTH * (place % ACROSS)}" y="{HEIGHT * (place // ACROSS)}" width="{WIDTH}" height="{HEIGHT}">'
        f"{_panel(joined, label, results)}</svg>"
        for place, (label, results) in enumerate(rows)
    ]
    title = escape(joined.table.title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img"><title>{title}</title><style>{STYLE}</style>'
        f'<rect class="back" width="{width}" height="{height}"/>{"".join(panels)}{legend}</svg>\n'
    )


def shown(joined: Joined, row: str) -> list[tuple[int, Result]]:
    """(place of its column, result), of the cells that have an interval, and runs that know what they cost."""
    found = [(place, joined.result(row, column.id)) for place, column in enumerate(joined.table.columns)]
    known = [(place, result) for place, result in found if math.isfinite(result.passes_each)]
    return [(place, r) for place, r in known if (value := joined.measured(r)) is not None and value.low is not None]


def _panel(joined: Joined, label: str, results: Sequence[tuple[int, Result]]) -> str:
    intervals = [(value.low, value.high) for _, r in results if (value := joined.measured(r)) is not None]
    lows, highs = [low for low, _ in intervals if low is not None], [high for _, high in intervals if high is not None]
    ticks = nice_ticks(min(lows), max(highs))
    across = nice_ticks(0.0, max(r.passes_each for _, r in results) / 1000)

    def x(thousands: float) -> float:
        return LEFT + thousands / across[-1] * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (HEIGHT - TOP - BOTTOM)

    unit = joined.results[0].cell.unit
    beside, above = (unit, "") if len(unit) == 1 else ("", f", {unit}")  # a word does not fit beside a number
    out = [f'<text class="head" x="{LEFT}" y="18">{escape(label + above)}</text>']
    out += levels(ticks, y, (LEFT, WIDTH - RIGHT), beside)
    for tick in across:
        out.append(f'<text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    out.append(f'<text x="{middle:.1f}" y="{HEIGHT - 6}" text-anchor="middle">thousand passes over a batch</text>')
    # Columns of as many passes stand beside each other, in the columns' order, and not on top of each other.
    seen: dict[float, int] = {}
    for place, result in results:
        thousands = result.passes_each / 1000
        number = seen[thousands] = seen.get(thousands, -1) + 1
        shared = sum(other.passes_each / 1000 == thousands for _, other in results)
        if (value := joined.measured(result)) is not None:
            left = x(thousands) + 14 * (number - (shared - 1) / 2)
            out.append(point(joined.table.columns[place].label, place, value, left, y))
    return "".join(out)


def levels(ticks: Sequence[float], y: Height, ends: tuple[float, float], unit: str) -> list[str]:
    """The lines across a panel, from its left end to its right one, and their numbers."""
    left, right = (f"{end:g}" for end in ends)
    out = []
    for tick in ticks:
        out.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        number = f"{tick:g}{escape(unit)}"
        out.append(f'<text x="{ends[0] - 6:g}" y="{y(tick) + 4:.1f}" text-anchor="end">{number}</text>')
    return out


def point(name: str, place: int, value: Sample, x: float, y: Height) -> str:
    """A mean with its interval; `place` decides on colour and shape."""
    assert value.low is not None
    assert value.high is not None
    colour = COLOURS[place % len(COLOURS)]
    words = f"{name}: {value.mean:.2f} [{value.low:.2f}, {value.high:.2f}], n = {value.n}"
    ends = f'y1="{y(value.low):.1f}" y2="{y(value.high):.1f}"'
    bar = f'<line class="bar" stroke="{colour}" x1="{x:.1f}" x2="{x:.1f}" {ends}/>'
    return f"<g><title>{escape(words)}</title>{bar}{mark(place, x, y(value.mean))}</g>"


def mark(place: int, x: float, y: float) -> str:
    colour = COLOURS[place % len(COLOURS)]
    shapes = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>',
        f'<circle class="back" cx="{x:.1f}" cy="{y:.1f}" r="4.5" stroke="{colour}" stroke-width="2"/>',
        f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" fill="{colour}"/>',
        f'<path d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6Z" fill="{colour}"/>',
    )
    return shapes[place % len(shapes)]


def _legend(joined: Joined, width: float, top: int) -> tuple[str, int]:
    """In as many lines as it takes, from `top` on; and where they end."""
    items, x, y = [], float(LEFT), top + 8
    for place, column in enumerate(joined.table.columns):
        wide = 34 + 7.2 * len(column.label)
        if x > LEFT and x + wide - 22 > width:
            x, y = float(LEFT), y + 18
        label = f'<text x="{x + 12:.1f}" y="{y + 4}">{escape(column.label)}</text>'
        items.append(mark(place, x, y) + label)
        x += wide
    return "".join(items), y + 18
