"""Points, and their intervals where they have one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sam_repro.report.figures.curves import numbers
from sam_repro.report.figures.panel import Panel
from sam_repro.report.figures.style import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(axis: Axes, panel: Panel, looks: Mapping[str, Look]) -> None:
    for series in panel.series:
        look = looks[series.label]
        x, y = numbers(series.x), numbers(series.y)
        axis.scatter(x, y, s=22, color=look.colour, marker=look.mark, label=series.label, alpha=0.85, lw=0)
        if series.low is not None and series.high is not None:
            axis.vlines(x, numbers(series.low), numbers(series.high), color=look.colour, lw=0.9)
