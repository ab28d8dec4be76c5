"""A function of two numbers as contour lines, with paths and regions on top. No fill: lines are read on any ground."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sam_repro.report.figures.curves import numbers
from sam_repro.report.figures.panel import Panel
from sam_repro.report.figures.style import FAINT, INK, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 8  # lines, each with its value; many of them show a slope, and values would only cover it


def draw(axis: Axes, panel: Panel, looks: Mapping[str, Look]) -> None:
    axis.grid(visible=False)
    if panel.field:
        levels = sorted(numbers(panel.field.levels))
        z = [numbers(row) for row in panel.field.z]
        lines = axis.contour(
            numbers(panel.field.x), numbers(panel.field.y), z, levels=levels, colors=FAINT, linewidths=0.5
        )
        if len(levels) <= FEW:
            axis.clabel(lines, fmt="%g", fontsize=6, colors=INK)
    for series in panel.series:
        look = looks[series.label]
        x, y = numbers(series.x), numbers(series.y)
        if series.mark == "region":
            axis.fill(x, y, color=look.colour, alpha=0.15, lw=0)
            axis.plot([*x, x[0]], [*y, y[0]], color=look.colour, ls=look.dash, lw=1.2, label=series.label)
        elif series.mark == "points":
            axis.plot(x, y, ls="", marker=look.mark, color=look.colour, mec=INK, mew=0.6, label=series.label)
        else:
            axis.plot(x, y, color=look.colour, ls=look.dash, lw=1.2, label=series.label)
        if series.ends:
            axis.plot(x[0], y[0], "o", ms=5, mfc="white", mec=look.colour, mew=1.1, zorder=6)
            axis.plot(x[-1], y[-1], "D", ms=4, color=look.colour, mec=INK, mew=0.6, zorder=7)
