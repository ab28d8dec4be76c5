"""How a measure ranks with the generalization gap over a family of trained runs: Kendall's tau, whole and by axis.

tau is Kendall's tau-b over all runs. A granulated coefficient (Jiang et al. 2019) is the mean tau of the groups whose
runs differ in one axis alone; Psi is the mean of them. Intervals come from a bootstrap over *runs*: several numbers of
one run, such as its checkpoints', are drawn together, for they are not independent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sam_repro.report.figures.panel import Axis, Panel, Series

DRAWS = 1000
COVERAGE = 0.95


@dataclass(frozen=True)
class Item:
    """A number of a run: its measure, its gap, and where the run stands on each axis."""

    run: str
    measure: float
    gap: float
    axes: Mapping[str, float]


def kendall(items: Sequence[Item]) -> float | None:
    """tau-b: concordant less discordant pairs, over the root of the pairs that differ in each; None where none do."""
    measures, gaps = (np.array(values) for values in zip(*((one.measure, one.gap) for one in items), strict=True))
    a, b = (np.sign(values[:, None] - values) for values in (measures, gaps))
    pairs = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / pairs if pairs else None


def granulated(items: Sequence[Item], axis: str) -> float | None:
    groups = defaultdict[tuple[float, ...], list[Item]](list)
    for one in items:
        groups[tuple(value for name, value in sorted(one.axes.items()) if name != axis)].append(one)
    varied = [group for group in groups.values() if len({one.axes[axis] for one in group}) > 1]
    found = [value for group in varied if (value := kendall(group)) is not None]
    return float(np.mean(found)) if found else None


def psi(items: Sequence[Item]) -> float | None:
    axes = {axis for one in items for axis in one.axes}
    found = [value for axis in sorted(axes) if (value := granulated(items, axis)) is not None]
    return float(np.mean(found)) if found else None


def interval(
    items: Sequence[Item], statistic: Callable[[Sequence[Item]], float | None], seed: int
) -> tuple[float, float] | None:
    """Percentiles over families that are drawn from this one, run by run, with replacement."""
    by_run = defaultdict[str, list[Item]](list)
    for one in items:
        by_run[one.run].append(one)
    runs, rng, found = list(by_run), np.random.default_rng(seed), list[float]()
    for _ in range(DRAWS):
        drawn = [one for place in rng.integers(0, len(runs), len(runs)) for one in by_run[runs[place]]]
        if (value := statistic(drawn)) is not None:
            found.append(value)
    if len(found) < DRAWS / 2:
        return None
    low, high = np.quantile(found, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return float(low), float(high)


def panels(measured: Mapping[str, tuple[Sequence[float], Sequence[float]]], point: str, forest: Panel) -> list[Panel]:
    """A scatter of each measure with the gap, and the forest below the first, where its long names have room.

    A measure runs over magnitudes, so its axis is logarithmic where it can be. `point`: what a point is.
    """
    gap = Axis("generalization gap", "points")
    scatters = [
        Panel("scatter", name, Axis("sharpness", "nats", log=min(x) > 0), gap, [Series(point, x, y)])
        for name, (x, y) in measured.items()
    ]
    return [*scatters[:3], forest, *scatters[3:]]
