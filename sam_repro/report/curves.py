"""Learning curves as inline SVG: a panel for each row of a table, a line for each column, the mean over the seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

from sam_repro.runs import archive
from sam_repro.tables.results import Joined
from sam_repro.tasks.metric import Metric

WIDTH, HEIGHT = 320, 190
LEFT, RIGHT, TOP, BOTTOM = 40, 10, 24, 30  # margins
EDGE = 4  # around the lines, for their width
POINTS, EACH = 60, (10, 60)  # of a panel's learning curves together, so that the page stays small; of one of them
FEW = 10  # points, below which each is marked
MOST_TICKS = 7
COLOURS = 7  # classes c0 ... c6 of the page, each with its own dash
Curve = list[tuple[float, float]]  # epoch, the metric's value
Line = tuple[int, str, Curve]  # number of its look, label, points


def panels(joined: Joined, results: Path) -> dict[str, str]:
    """Row -> SVG, of each row that has a curve; rows without stored epochs have none."""
    found = {}
    for row in joined.table.rows:
        lines, shown, higher = list[Line](), "", True
        for number, column in enumerate(joined.table.columns):
            result = joined.result(row.id, column.id)
            ended = [item.run for item in result.runs if item.state in ("done", "collapsed")]
            # A run that failed would cut the others' curve short; where all failed that is what there is to see.
            runs = [run.id for run in ended if run.seed in result.values] or [run.id for run in ended]
            metric = Metric(result.cell.metric, result.cell.unit, joined.higher_is_better(result.cell.metric))
            higher &= metric.higher_is_better
            curve = mean([c for run in runs if (c := of_run(results, run, metric.name))])
            shown = shown or f"{row.label}: {metric.title}"
            # Columns of one run differ in the metric only.
            if curve and not any(other == curve for _, _, other in lines):
                lines.append((number, column.label, curve))
        if lines:
            found[row.id] = learning(shown, lines, higher_is_better=higher)
    return found


def of_run(results: Path, run: str, metric: str) -> Curve:
    """From the curves that travel with the ledger, so that a page is the same wherever it is made."""
    records = archive.read(results, run) or []
    points = [(r["epoch"], r.get(metric)) for r in records if r.get("kind") == "epoch"]
    return [(float(epoch), float(value)) for epoch, value in points if value is not None and math.isfinite(value)]


def mean(curves: Sequence[Curve]) -> Curve:
    """Over the runs, for the epochs that all of them reached."""
    if not curves:
        return []
    values = [dict(curve) for curve in curves]
    common = sorted(set.intersection(*(set(value) for value in values)))
    return [(epoch, math.fsum(v[epoch] for v in values) / len(values)) for epoch in common]


def learning(title: str, lines: Sequence[Line], *, higher_is_better: bool = True) -> str:
    """A panel of learning curves."""
    points = [point for _, _, curve in lines for point in curve]
    last = max(epoch for epoch, _ in points)
    first = min(min(epoch for epoch, _ in points), last - 1)
    # The steep beginning would flatten the end, where the lines differ: it may leave the panel where the worst is.
    settled = [value for epoch, value in points if epoch >= first + 0.25 * (last - first)]
    ticks = {epoch: f"{epoch:g}" for epoch in sorted({first, float(round((first + last) / 2)), last})}
    values = [value for _, value in points]
    low, high = (min(settled), max(values)) if higher_is_better else (min(values), max(settled))
    each = min(EACH[1], max(EACH[0], POINTS // len(lines)))
    thin = [(number, label, _thinned(curve, each)) for number, label, curve in lines]
    return draw(title, thin, ticks, (low, high))


def _thinned(curve: Curve, most: int) -> Curve:
    """Every so many epochs, and the last."""
    step = -(-len(curve) // most)
    return curve[:-1:step] + curve[-1:]


def figure(joined: Joined) -> str | None:
    """What a published figure shows: measured values over its rows, a line for each column. None: nothing measured."""
    rows, lines = joined.table.rows, list[Line]()
    for number, column in enumerate(joined.table.columns):
        values = [joined.measured(joined.result(row.id, column.id)) for row in rows]
        curve = [(float(place), value.mean) for place, value in enumerate(values) if value]
        if curve:
            lines.append((number, column.label, curve))
    if not lines:
        return None
    shown = range(0, len(rows), max(1, -(-len(rows) // 6)))  # at most six labels fit
    ticks = {float(place): rows[place].label for place in (*shown, len(rows) - 1) if place in shown or len(rows) < 7}
    ticks.setdefault(max(1.0, len(rows) - 1.0), "")
    heights = [value for _, _, curve in lines for _, value in curve]
    return draw(f"{joined.table.title}, {joined.budget} budget", lines, ticks, (min(heights), max(heights)))


def draw(title: str, lines: Sequence[Line], x_ticks: Mapping[float, str], limits: tuple[float, float]) -> str:
    ticks = nice_ticks(*limits)
    first, last = min(x_ticks), max(x_ticks)

    def x(place: float) -> float:
        return LEFT + (place - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (HEIGHT - TOP - BOTTOM)

    name = escape(title)
    fitted = f' textLength="{WIDTH - LEFT - RIGHT}" lengthAdjust="spacingAndGlyphs"' if len(title) > 42 else ""
    head = f'<text class="head"{fitted}>{name}</text>' if len(name) < 50 else ""
    heights = "".join(f'<text y="{y(tick) + 3.5:.0f}">{tick:g}</text>' for tick in ticks)
    places = "".join(f'<text x="{x(place):.0f}">{escape(label)}</text>' for place, label in x_ticks.items())
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">{head}<use href="#grid{len(ticks)}"/>'
        f'<g class="tick end">{heights}</g><g class="tick mid">{places}</g>'
        # An SVG inside an SVG cuts what leaves it, and has its own corner: coordinates are shorter there.
        f'<svg class="line" x="{LEFT - EDGE}" y="{TOP - EDGE}" width="{WIDTH - LEFT - RIGHT + 2 * EDGE}" '
        f'height="{HEIGHT - TOP - BOTTOM + 2 * EDGE}">{"".join(_line(line, x, y) for line in lines)}</svg></svg>'
    )


def style() -> str:
    """What all panels have in common."""
    return (
        f".curves .head, .figure .head {{ transform: translate({LEFT}px, 14px); }}\n"
        f".curves .end, .figure .end {{ transform: translateX({LEFT - 5}px); }}\n"
        f".curves .mid, .figure .mid {{ transform: translateY({HEIGHT - 15}px); }}\n"
    )


def grids() -> str:
    """The lines behind the curves, which depend on the number of ticks alone: once for all panels of the page."""
    drawn = []
    for count in range(2, MOST_TICKS + 1):
        heights = [HEIGHT - BOTTOM - place / (count - 1) * (HEIGHT - TOP - BOTTOM) for place in range(count)]
        lines = "".join(f"M{LEFT} {height:.1f}H{WIDTH - RIGHT}" for height in heights)
        drawn.append(f'<path id="grid{count}" class="grid" d="{lines}"/>')
    return f'<svg class="shared" aria-hidden="true"><defs>{"".join(drawn)}</defs></svg>'


def _line(line: Line, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    number, label, curve = line
    places = [(x(place) - LEFT + EDGE, y(value) - TOP + EDGE) for place, value in curve]
    colour = f"c{number % COLOURS}"
    out = f'<path class="{colour}" d="{path(places)}"><title>{escape(label)}</title></path>'
    if len(curve) < FEW:  # few points are shown as such
        out += "".join(f'<circle class="dot {colour}" cx="{left:.1f}" cy="{top:.1f}" r="2.5"/>' for left, top in places)
    return out


def path(places: Sequence[tuple[float, float]]) -> str:
    """From point to point, each relative to the one before: of many points half a unit is nothing to see."""
    scale = 10 if len(places) < FEW else 1
    whole = [(round(scale * left), round(scale * top)) for left, top in places]
    steps = [f"M{whole[0][0] / scale:g} {whole[0][1] / scale:g}"]
    for (left, top), (right, bottom) in pairwise(whole):
        down = f"{(bottom - top) / scale:g}"
        steps.append(f"l{(right - left) / scale:g}{down if down[0] == '-' else f' {down}'}")
    return "".join(steps)


def legend(joined: Joined) -> str:
    """Which line is which column, once for all panels of a table."""
    items = []
    for number, column in enumerate(joined.table.columns):
        line = f'<line class="line c{number % COLOURS}" x1="0" x2="30" y1="4" y2="4"/>'
        items.append(f'<span><svg viewBox="0 0 30 8" class="key">{line}</svg> {escape(column.label)}</span>')
    return f'<p class="legend">{"".join(items)}</p>'


def nice_ticks(low: float, high: float) -> list[float]:
    """Two to seven round numbers that enclose the range."""
    span = max(high - low, 1e-3)
    step = 10.0 ** math.floor(math.log10(span / 3))
    step = next(step * k for k in (1, 2, 5, 10) if span / (step * k) <= 4)
    start, end = math.floor(low / step), math.ceil(high / step)
    end = max(end, start + 1)
    return [round(k * step, 10) for k in range(start, end + 1)]
