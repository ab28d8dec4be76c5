"""Lines over a number, each with the band of its interval; single points where a series says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sam_repro.report.figures.panel import Numbers, Panel
from sam_repro.report.figures.style import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(axis: Axes, panel: Panel, looks: Mapping[str, Look]) -> None:
    for series in panel.series:
        look = looks[series.label]
        x, y = numbers(series.x), numbers(series.y)
        if series.low is not None and series.high is not None:
            axis.fill_between(x, numbers(series.low), numbers(series.high), color=look.colour, alpha=0.2, lw=0)
        line, few = series.mark == "line", len(x) <= 12
        axis.plot(
            x,
            y,
            color=look.colour,
            ls=look.dash if line else "",
            label=series.label,
            marker=look.mark if few or not line else "",
        )


def numbers(values: Numbers) -> list[float]:
    """What is not there leaves a gap."""
    return [float("nan") if value is None else value for value in values]
