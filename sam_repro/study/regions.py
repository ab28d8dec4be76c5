"""ASAM figure 1: three regions of maximisation around w = (1, 1) and w' = A w = (3, 1/3), A = diag(3, 1/3).

    (a) ||eps||_2 <= rho   (b) ||T^-1 eps||_inf <= rho   (c) ||T^-1 eps||_2 <= rho,   T = diag(abs(w))

A changes neither w1 w2 nor a loss of it alone, the toy's L(w) = |w1 ReLU(w2) - 0.04|. The loss grows outwards here, so
its maximum over a region lies on the boundary, which is walked in small steps and then refined about the best of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sam_repro.report.figures.panel import Axis, Field, Panel, Series
from sam_repro.report.studies import Judged
from sam_repro.study.frame import NONE, Job, Measured
from sam_repro.study.toy import TARGET

Array = NDArray[np.float64]
RUNS = NONE
CENTRES = {"w = (1, 1)": (1.0, 1.0), "w' = (3, 1/3)": (3.0, 1 / 3)}
SAME = 1e-6  # of two maxima, relative
POINTS = 4096  # of a boundary's first walk


@dataclass
class Settings:
    rho: float = 0.2


def circle(angle: Array) -> Array:
    return np.stack([np.cos(angle), np.sin(angle)], -1)


def square(angle: Array) -> Array:
    found = circle(angle)
    return np.asarray(found / np.abs(found).max(-1, keepdims=True))


# Region -> (its boundary in units of rho, whether it is stretched by abs(w)).
REGIONS: dict[str, tuple[Callable[[Array], Array], bool]] = {
    "(a) sphere": (circle, False),
    "(b) cuboid, adaptive": (square, True),
    "(c) ellipsoid, adaptive": (circle, True),
}


def loss(w: Array) -> Array:
    return np.asarray(np.abs(w[..., 0] * np.maximum(w[..., 1], 0) - TARGET))


def boundary(region: str, centre: tuple[float, float], rho: float, angle: Array) -> Array:
    shape, adaptive = REGIONS[region]
    return np.asarray(np.array(centre) + rho * (np.abs(centre) if adaptive else 1.0) * shape(angle))


def maximum(region: str, centre: tuple[float, float], rho: float) -> list[float]:
    """The largest loss on the region's boundary and the point that has it."""
    angle = np.linspace(0, 2 * np.pi, POINTS, endpoint=False)
    width = 2 * np.pi / POINTS
    while True:
        points = boundary(region, centre, rho, angle)
        best = int(loss(points).argmax())
        if width < 1e-12:
            return [float(loss(points)[best]), *map(float, points[best])]
        angle = angle[best] + np.linspace(-width, width, 101)
        width /= 50


def measure(job: Job[Settings]) -> Measured:
    rho = job.settings.rho
    job.parts.expect(len(REGIONS) * len(CENTRES))
    found = {
        region: {
            name: job.parts.get(f"{region} around {name}", partial(maximum, region, centre, rho))
            for name, centre in CENTRES.items()
        }
        for region in REGIONS
    }
    claims = {}
    for key, region in zip(("sphere", "cuboid", "ellipsoid"), REGIONS, strict=True):
        one, other = (value[0] for value in found[region].values())
        same = abs(one - other) <= SAME * one
        claims[key] = Judged(same != (key == "sphere"), f"largest loss {one:.6f} around w, {other:.6f} around w'")
    caption = (
        f"L(w) = |w1 ReLU(w2) − 0.04|, ρ = {rho:g}, T = diag(|w|). Contours: the loss at w, and the largest loss in "
        f"the region around w. Points: where each region's loss is largest. Exact: n = 1."
    )
    panels = [_panel(region, found[region], rho) for region in REGIONS]
    return Measured({"maximum": found}, panels, claims, caption)


def _panel(region: str, maxima: dict[str, list[float]], rho: float) -> Panel:
    angle = np.linspace(0, 2 * np.pi, 121)
    highest = next(iter(maxima.values()))[0]
    across = np.linspace(0.4, 4.0, 46)
    series = [
        Series("same loss as at w", across.tolist(), (1.0 / across).tolist()),
        Series("largest loss around w", across.tolist(), ((highest + TARGET) / across).tolist()),
    ]
    for name, centre in CENTRES.items():
        x, y = boundary(region, centre, rho, angle).T
        series.append(Series(f"region around {name}", x.tolist(), y.tolist(), mark="region"))
    for name, (_, x1, x2) in maxima.items():
        series.append(Series(f"maximum around {name.split(' ')[0]}", [x1], [x2], mark="points"))
    up = np.linspace(0.0, 1.6, 25)
    z = np.abs(across[None] * up[:, None] - TARGET)
    field = Field(across.tolist(), up.tolist(), z.tolist(), [0.25, 0.5, 0.75, 1.25, 1.75, 2.25, 3.0], "L")
    x, y = Axis("$w_1$", limits=(0.4, 4.0)), Axis("$w_2$", limits=(0.0, 1.6))
    return Panel("contour", region, x, y, series, field, equal=True)
