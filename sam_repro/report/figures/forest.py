"""A line a name: its value and interval along x, the series of a figure under each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sam_repro.report.figures.curves import numbers
from sam_repro.report.figures.panel import Panel
from sam_repro.report.figures.style import FAINT, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPREAD = 0.6  # of a line's height, over which its series stand


def draw(axis: Axes, panel: Panel, looks: Mapping[str, Look]) -> None:
    each = SPREAD / max(1, len(panel.series))
    for number, series in enumerate(panel.series):
        look = looks[series.label]
        place = [y + each * (number + 0.5) - SPREAD / 2 for y in numbers(series.y)]
        x = numbers(series.x)
        if series.low is not None and series.high is not None:
            axis.hlines(place, numbers(series.low), numbers(series.high), color=look.colour, lw=1.2)
        axis.plot(x, place, ls="", marker=look.mark, color=look.colour, label=series.label)
    axis.axvline(0, color=FAINT, lw=0.8)
    axis.invert_yaxis()
