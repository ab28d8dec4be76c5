"""Panels -> SVG, PNG and PDF. The same numbers give the same bytes with the same matplotlib: no clock, no chance."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from sam_repro.report.figures import svg
from sam_repro.report.figures.panel import Axis, Panel
from sam_repro.report.figures.style import INK, RC, Look, looks

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 3.5, 3.0  # inches of a panel
MOST = 3  # panels side by side
PLACES = 4  # of a position in the figure, whose width is 1
FEW_DECADES = 300  # times as much at the one end of an axis as at the other
LINE, KEY = 0.135, 0.19  # inches of a line of the caption, of the legend
# A date or a version would make other bytes of the same figure.
METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def draw(name: str, title: str, caption: str, panels: Sequence[Panel]) -> dict[str, bytes]:
    """Format -> the file's content."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context(RC | {"svg.hashsalt": name}):
        figure = _figure(title, caption, panels)
        found = {}
        for form, metadata in METADATA.items():
            out = io.BytesIO()
            figure.savefig(out, format=form, metadata=metadata, transparent=form == "svg")
            found[form] = out.getvalue()
        plt.close(figure)
    found["svg"] = svg.themed(found["svg"].decode(), f"{title}. {caption}").encode()
    return found


def _figure(title: str, caption: str, panels: Sequence[Panel]) -> Figure:
    from matplotlib import pyplot as plt

    columns = 2 if len(panels) == 4 else min(MOST, len(panels))
    rows = math.ceil(len(panels) / columns)
    width = max(2, columns) * WIDTH
    styles = looks(panels)
    across = max(1, min(len(styles), int(width * 13 / (max(map(len, styles), default=0) + 6))))
    lines = textwrap.wrap(caption, round(width * 17.5))
    written = LINE * len(lines) + 0.1
    below = written + (KEY * math.ceil(len(styles) / across) + 0.1) * (len(styles) > 1)
    height = rows * HEIGHT + 0.5 + below
    figure, axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False, layout="constrained")
    figure.get_layout_engine().set(rect=(0, below / height, 1, 1 - below / height))  # type: ignore[union-attr, call-arg]
    handles: dict[str, Artist] = {}
    for place, axis in enumerate(axes.flat):
        axis.set_visible(place < len(panels))
        if place < len(panels):
            _panel(axis, panels[place], styles)
            handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    if len(handles) > 1:
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="lower center",
            bbox_to_anchor=(0.5, written / height),
            ncols=across,
            frameon=False,
            borderaxespad=0,
        )
    figure.suptitle("\n".join(textwrap.wrap(title, round(width * 12))), fontsize=10)
    figure.text(0.01, 0.06 / height, "\n".join(lines), fontsize=7, va="bottom", ha="left", linespacing=1.25)
    _settle(figure, axes.flat)
    return figure


def _settle(figure: Figure, axes: Iterable[Axes]) -> None:
    """Places as they were laid out, rounded and laid out no more. The solver of the layout takes what it solves in the
    order of addresses, so that its last bit, and with it a file's bytes, would differ from one process to the next."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axis in axes:
        x, y, width, height = (round(value, PLACES) for value in axis.get_position(original=True).bounds)
        axis.set_position((x, y, width, height))
    for text in figure.texts:
        x, y = (round(value, PLACES) for value in text.get_position())
        text.set_position((x, y))


def _panel(axis: Axes, panel: Panel, styles: Mapping[str, Look]) -> None:
    import_module(f"sam_repro.report.figures.{panel.kind}").draw(axis, panel, styles)
    axis.set_title(panel.title)
    _side(axis, "x", panel.x)
    _side(axis, "y", panel.y)
    if panel.equal:
        axis.set_aspect("equal")
    if panel.notes:
        axis.text(0.03, 0.97, "\n".join(panel.notes), transform=axis.transAxes, va="top", fontsize=7, color=INK)


def _side(axis: Axes, side: str, wanted: Axis) -> None:
    change = {f"{side}label": wanted.label}
    axis.set(**change)
    if wanted.log:
        axis.set(**{f"{side}scale": "log"})
        _magnitudes(axis, side)
    if wanted.limits is not None:
        axis.set(**{f"{side}lim": tuple(wanted.limits)})
    if wanted.ticks:
        axis.set(**{f"{side}ticks": range(len(wanted.ticks)), f"{side}ticklabels": list(wanted.ticks)})


def _magnitudes(axis: Axes, side: str) -> None:
    """Ticks of a logarithmic axis: powers of ten, or where it runs over few of them 1, 2, 5, 10, 20, ... as one writes
    them. The usual ones name every minor tick of a short axis, on top of each other."""
    from matplotlib import ticker

    line = axis.xaxis if side == "x" else axis.yaxis
    line.set_minor_formatter(ticker.NullFormatter())
    low, high = sorted(axis.get_xlim() if side == "x" else axis.get_ylim())
    if low > 0 and high / low < FEW_DECADES:
        line.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        line.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
