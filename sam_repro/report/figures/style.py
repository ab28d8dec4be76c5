"""One style for all figures: on paper, on a dark screen, and for eyes that tell fewer colours apart.

Colours are Okabe and Ito's, those of middle lightness first, since they stand on white as well as on black; each series
has a dash and a mark of its own too. What is written or ruled is drawn in INK, which `svg.py` makes the reader's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sam_repro.report.figures.panel import Panel

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1.2)), "-.", (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)))
MARKS = ("o", "s", "^", "D", "v", "P")
INK = "#333333"
FAINT = "#8c8c8c"  # grid and contour lines, on white and on black

RC: dict[Any, Any] = {
    "font.size": 9, "axes.titlesize": 10, "axes.labelsize": 9, "legend.fontsize": 8, "font.family": "sans-serif",
    "svg.fonttype": "none", "pdf.fonttype": 42, "savefig.dpi": 200, "axes.edgecolor": INK, "axes.labelcolor": INK,
    "text.color": INK, "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False,
    "grid.color": FAINT, "grid.alpha": 0.3, "grid.linewidth": 0.5, "lines.linewidth": 1.4, "lines.markersize": 4,
    "axes.grid": True, "axes.axisbelow": True, "axes.formatter.use_mathtext": True,
}  # fmt: skip


@dataclass(frozen=True)
class Look:
    colour: str
    dash: Any
    mark: str


def looks(panels: Iterable[Panel]) -> dict[str, Look]:
    """Of every label, in the order in which they first appear."""
    labels = dict.fromkeys(series.label for panel in panels for series in panel.series)
    return {
        label: Look(COLOURS[i % len(COLOURS)], DASHES[i % len(DASHES)], MARKS[i % len(MARKS)])
        for i, label in enumerate(labels)
    }
