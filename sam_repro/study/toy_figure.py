"""ASAM figure 3, redrawn: the toy's trajectories over the contours of its loss, one panel a start."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sam_repro.study.toy import TARGET, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#000000")  # Okabe and Ito: told apart by everybody
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), "-.")
MINIMISERS = "#D62728"
STUCK = 1e-9  # who moved less than that did not move


def draw(panels: Sequence[Sequence[Run]], lr: float, folder: Path) -> list[Path]:
    """Write SVG and PNG, the same bytes whenever the runs are the same; return their paths."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    style: dict[Any, Any] = {"font.size": 9, "axes.titlesize": 10, "svg.hashsalt": "toy", "savefig.dpi": 200}
    with plt.rc_context(style):
        size = (0.6 + 3.7 * len(panels), 4.5)
        figure, axes = plt.subplots(1, len(panels), figsize=size, sharey=True, squeeze=False, layout="constrained")
        limits = _limits([run for runs in panels for run in runs])
        for axis, runs in zip(axes[0], panels, strict=True):
            _landscape(axis, *limits)
            colours = [COLOURS[i % len(COLOURS)] for i in range(len(runs))]
            for i, run in enumerate(runs):
                _path(axis, run, colours[i], DASHES[i % len(DASHES)])
            _stuck(axis, runs, colours)
            w1, w2 = runs[0].w0
            axis.plot(w1, w2, "o", ms=9, mfc="white", mec="black", mew=1.3, zorder=6, label="start")
            axis.plot([], [], "D", ms=5, mfc="0.7", mec="black", mew=0.8, label="end")
            axis.set_title(rf"$\mathbf{{w}}_0 = ({w1:g},\ {w2:g})$")
            axis.set_xlabel("$w_1$")
        axes[0][0].set_ylabel("$w_2$")
        handles, labels = axes[0][0].get_legend_handles_labels()
        columns = len(labels) if len(labels) <= 5 and len(panels) > 1 else 2 * len(panels)
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
        steps = len(panels[0][0].perturbation)
        loss, descent = r"$L(\mathbf{w}) = |w_1\,\mathrm{ReLU}(w_2) - 0.04|$", f"{steps} steps of gradient descent"
        figure.suptitle(f"{loss},{' ' if len(panels) > 1 else chr(10)}{descent}, lr = {lr:g}", fontsize=10)
        folder.mkdir(parents=True, exist_ok=True)
        stem = "toy_" + "_".join(run.method for run in panels[0])
        paths = [folder / f"{stem}.svg", folder / f"{stem}.png"]
        figure.savefig(paths[0], metadata={"Date": None})
        figure.savefig(paths[1], metadata={"Software": None})
        plt.close(figure)
    return paths


def name(run: Run) -> str:
    return run.method.replace("_", "-").upper()


def title(run: Run) -> str:
    return rf"{name(run)}, $\rho$ = {run.spec.point.radius.rho:g}" if run.spec.ascends else name(run)


def _limits(runs: Sequence[Run]) -> tuple[tuple[float, float], tuple[float, float]]:
    """The window that shows every trajectory, both axes from the same scale so that a ball looks round."""
    points = [point for run in runs for point in run.trajectory] + [[0.11, -0.05], [0.42, 0.26]]
    margin = 0.01
    columns = list(zip(*points, strict=True))
    low, high = ([f(column) for column in columns] for f in (min, max))
    return (low[0] - margin, high[0] + margin), (low[1] - margin, high[1] + margin)


def _landscape(axis: Axes, across: tuple[float, float], up: tuple[float, float]) -> None:
    import numpy as np

    w1, w2 = np.meshgrid(np.linspace(*across, 500), np.linspace(*up, 500))
    values = np.abs(w1 * np.maximum(w2, 0) - TARGET)
    levels = np.arange(0, max(0.06, values.max()) + 0.004, 0.004)
    axis.contourf(w1, w2, values, levels=levels, cmap="Greys", alpha=0.45, zorder=0)
    axis.contour(w1, w2, values, levels=levels, colors="white", linewidths=0.5, zorder=1)
    # Where w2 <= 0 the loss is flat and its gradient zero: whoever is perturbed into there stands still.
    axis.axhline(0, color="0.35", lw=0.8, ls=(0, (4, 3)), zorder=2)
    axis.text(across[0] + 0.006, -0.006, "flat: ReLU$(w_2) = 0$", va="top", fontsize=8, color="0.25", clip_on=True)
    positive = np.linspace(max(across[0], TARGET / up[1]), across[1], 300)
    axis.plot(positive, TARGET / positive, color=MINIMISERS, lw=1.6, zorder=3, label=r"minimisers, $w_1 w_2 = 0.04$")
    axis.set(xlim=across, ylim=up, aspect="equal")


def _path(axis: Axes, run: Run, colour: str, dash: object) -> None:
    w1, w2 = zip(*run.trajectory, strict=True)
    axis.plot(w1, w2, color=colour, ls=dash, lw=1.2, zorder=4, label=title(run))
    axis.plot(w1[-1], w2[-1], "D", ms=5, mfc=colour, mec="black", mew=0.8, zorder=7)


def _stuck(axis: Axes, runs: Sequence[Run], colours: Sequence[str]) -> None:
    """Say of those who never left the start that they did not, with the perturbation that holds them there."""
    names = []
    for run, colour in zip(runs, colours, strict=True):
        if max(abs(a - b) for point in run.trajectory for a, b in zip(point, run.w0, strict=True)) > STUCK:
            continue
        names.append(name(run))
        e1, e2 = run.perturbation[-1]
        axis.annotate(
            "",
            (run.w0[0] + e1, run.w0[1] + e2),
            run.w0,
            zorder=5,
            arrowprops={"arrowstyle": "->", "color": colour, "lw": 1.4},
        )
    if names:
        who = f"{', '.join(names)} stay{'s' if len(names) == 1 else ''} here: the gradient at the perturbed point is 0"
        axis.annotate(
            textwrap.fill(who, 26),
            runs[0].w0,
            (-9, 4),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=colours[0] if len(names) == 1 and names[0] == name(runs[0]) else "black",
        )
