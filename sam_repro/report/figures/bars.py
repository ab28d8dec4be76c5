"""A bar a name with its interval, the series of a figure side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sam_repro.report.figures.curves import numbers
from sam_repro.report.figures.panel import Panel
from sam_repro.report.figures.style import INK, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 0.8  # of all bars of a name
HATCHES = ("", "//", "..", "xx", "\\\\", "--")


def draw(axis: Axes, panel: Panel, looks: Mapping[str, Look]) -> None:
    each = WIDTH / max(1, len(panel.series))
    for number, series in enumerate(panel.series):
        place = [x + each * (number + 0.5) - WIDTH / 2 for x in numbers(series.x)]
        y = numbers(series.y)
        axis.bar(
            place,
            y,
            each * 0.9,
            color=looks[series.label].colour,
            label=series.label,
            edgecolor="white",
            hatch=HATCHES[number % len(HATCHES)],
            lw=0,
        )
        if series.low is not None and series.high is not None:
            low, high = numbers(series.low), numbers(series.high)
            below = [a - b for a, b in zip(y, low, strict=True)]
            above = [b - a for a, b in zip(y, high, strict=True)]
            axis.errorbar(place, y, yerr=[below, above], fmt="none", ecolor=INK, capsize=3, lw=1)
    axis.grid(visible=False, axis="x")
