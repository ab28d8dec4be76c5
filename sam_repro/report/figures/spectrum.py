"""A density over eigenvalues with its band, and single eigenvalues as stems on the axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sam_repro.report.figures.curves import numbers
from sam_repro.report.figures.panel import Panel
from sam_repro.report.figures.style import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEM = 0.12  # of the panel's height


def draw(axis: Axes, panel: Panel, looks: Mapping[str, Look]) -> None:
    for series in panel.series:
        look = looks[series.label]
        x = numbers(series.x)
        if series.mark == "stems":
            axis.vlines(x, 0, STEM, transform=axis.get_xaxis_transform(), color=look.colour, lw=1, zorder=4)
            axis.plot(
                x,
                [STEM] * len(x),
                ls="",
                marker=look.mark,
                color=look.colour,
                zorder=4,
                transform=axis.get_xaxis_transform(),
                label=series.label,
            )
            continue
        if series.low is not None and series.high is not None:
            axis.fill_between(x, numbers(series.low), numbers(series.high), color=look.colour, alpha=0.2, lw=0)
        axis.plot(x, numbers(series.y), color=look.colour, ls=look.dash, label=series.label)
