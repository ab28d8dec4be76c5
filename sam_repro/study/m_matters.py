"""m matters: 1-SAM and n-SAM on a diagonal linear network, where the difference is orders of magnitude.

    f(x) = <x, u^2 - v^2>,  L = mean over n samples of (f(x_i) - y_i)^2,  y = <x, b>, b sparse, u_0 = v_0 = alpha

n-SAM perturbs by the gradient of the whole batch, 1-SAM each sample's loss by that sample's own (`method.m=1`):

    n-SAM   w <- w - lr grad L(w + rho grad L(w) / s)             s = ||grad L(w)||, or 1 for the unnormalised step
    1-SAM   w <- w - lr mean_i grad l_i(w + rho grad l_i(w) / s_i)

Test loss is the mean squared error on fresh Gaussian inputs, ||u^2 - v^2 - b||^2. All problems, one for each seed and
radius, step at once on arrays in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sam_repro.report.figures.panel import Axis, Panel, Series
from sam_repro.report.studies import Judged
from sam_repro.study.frame import NONE, Job, Measured

Array = NDArray[np.float64]
RUNS = NONE
METHODS = ("gradient descent", "n-SAM", "1-SAM")
LARGE = 10.0  # times, from which a difference is an order of magnitude


@dataclass
class Settings:
    samples: int = 20
    features: int = 30
    nonzeros: int = 3
    alpha: float = 0.1
    lr: float = 0.02
    steps: int = 30000
    seeds: int = 5
    radii: list[float] = field(default_factory=lambda: [0.02, 0.05, 0.1])  # of the normalised step
    scales: list[float] = field(default_factory=lambda: [0.05, 0.1, 0.2])  # of the unnormalised one
    points: int = 40  # of a curve


@dataclass(frozen=True)
class Problem:
    """Some problems side by side: x [problems, samples, features], y [problems, samples], b [problems, features]."""

    x: Array
    y: Array
    b: Array


def problem(s: Settings, seeds: int) -> Problem:
    drawn = [np.random.default_rng(seed).standard_normal((s.samples, s.features)) for seed in range(seeds)]
    x, b = np.stack(drawn), np.zeros((seeds, s.features))
    b[:, : s.nonzeros] = 1.0
    return Problem(x, np.einsum("pnf,pf->pn", x, b), b)


def gradient(p: Problem, u: Array, v: Array) -> tuple[Array, Array]:
    """Of the mean loss."""
    residual = np.einsum("pnf,pf->pn", p.x, u * u - v * v) - p.y
    g = 4 * np.einsum("pn,pnf->pf", residual, p.x) / p.y.shape[1]
    return g * u, -g * v


def stretch(gu: Array, gv: Array, rho: Array, normalised: bool) -> tuple[Array, Array]:
    """The perturbation: rho times the gradient, over its length or not."""
    if normalised:
        length = np.sqrt((gu**2).sum(-1, keepdims=True) + (gv**2).sum(-1, keepdims=True))
        rho = rho / np.where(length > 0, length, 1)
    return rho * gu, rho * gv


def final_gradient(method: str, p: Problem, u: Array, v: Array, rho: Array, normalised: bool) -> tuple[Array, Array]:
    """rho: [problems, 1]."""
    if method == "gradient descent":
        return gradient(p, u, v)
    if method == "n-SAM":
        du, dv = stretch(*gradient(p, u, v), rho, normalised)
        return gradient(p, u + du, v + dv)
    residual = np.einsum("pnf,pf->pn", p.x, u * u - v * v) - p.y
    each = 4 * residual[..., None] * p.x  # a sample's gradient by f's weights
    du, dv = stretch(each * u[:, None], -each * v[:, None], rho[..., None], normalised)
    u, v = u[:, None] + du, v[:, None] + dv
    each = 4 * ((p.x * (u * u - v * v)).sum(-1) - p.y)[..., None] * p.x
    return (each * u).mean(1), (-each * v).mean(1)


def train(method: str, s: Settings, rho: float, normalised: bool) -> list[list[float]]:
    """Test losses at some steps, a list for each seed."""
    p = problem(s, s.seeds)
    u = v = np.full(p.b.shape, s.alpha)
    radius = np.full((s.seeds, 1), rho)
    shown, found = set(steps_shown(s)), list[list[float]]()
    for step in range(1, s.steps + 1):
        gu, gv = final_gradient(method, p, u, v, radius, normalised)
        u, v = u - s.lr * gu, v - s.lr * gv
        if step in shown:
            found.append(test_loss(p, u, v))
    return [list(one) for one in zip(*found, strict=True)]


def test_loss(p: Problem, u: Array, v: Array) -> list[float]:
    found = ((u * u - v * v - p.b) ** 2).sum(-1)
    return [float(value) if np.isfinite(value) else 1e300 for value in found]  # who diverges is worst


def steps_shown(s: Settings) -> list[int]:
    return sorted({round(step) for step in np.geomspace(1, s.steps, s.points)})


def measure(job: Job[Settings]) -> Measured:
    s = job.settings
    kinds = {"normalised": s.radii, "unnormalised": s.scales}
    job.parts.expect(1 + 2 * (len(s.radii) + len(s.scales)))
    plain = job.parts.get(METHODS[0], partial(train, METHODS[0], s, 0.0, False))
    numbers, panels, best = dict[str, Any](), list[Panel](), dict[tuple[str, str], float]()
    for kind, radii in kinds.items():
        curves = {METHODS[0]: plain}
        for method in METHODS[1:]:
            tried = {
                rho: job.parts.get(
                    f"{method}, {kind}, ρ = {rho:g}", partial(train, method, s, rho, kind == "normalised")
                )
                for rho in radii
            }
            ends = {rho: _typical([curve[-1] for curve in curves_of]) for rho, curves_of in tried.items()}
            chosen = min(ends, key=lambda rho: ends[rho])
            curves[method] = tried[chosen]
            best[kind, method] = ends[chosen]
            numbers[f"{method}, {kind}"] = {
                "by_radius": {f"{r:g}": e for r, e in ends.items()},
                "best": chosen,
                "last": [curve[-1] for curve in tried[chosen]],
            }
        panels.append(_panel(kind, curves, s))
    descent = _typical([curve[-1] for curve in plain])
    numbers[METHODS[0]] = {"last": [curve[-1] for curve in plain]}
    claims = {}
    for kind in kinds:
        one, whole = best[kind, "1-SAM"], best[kind, "n-SAM"]
        claims[kind] = Judged(
            one * LARGE < whole and whole * LARGE > descent,
            f"test loss {one:.2g} for 1-SAM, {whole:.2g} for n-SAM, {descent:.2g} for gradient descent",
        )
    caption = (
        f"{s.samples} samples, {s.features} features, {s.nonzeros} of the true weights not 0; {s.steps} steps of "
        f"{s.lr:g} from α = {s.alpha:g}. n = {s.seeds} problems: geometric mean and range; of the radii "
        f"{', '.join(f'{r:g}' for r in s.radii)} (normalised) and {', '.join(f'{r:g}' for r in s.scales)} the best."
    )
    return Measured(numbers, panels, claims, caption)


def _typical(values: list[float]) -> float:
    return float(np.exp(np.log(np.maximum(values, 1e-300)).mean()))


def _panel(kind: str, curves: dict[str, list[list[float]]], s: Settings) -> Panel:
    steps = [float(step) for step in steps_shown(s)]
    series = []
    for method, found in curves.items():
        at = [list(values) for values in zip(*found, strict=True)]
        low, high = [min(values) for values in at], [max(values) for values in at]
        series.append(Series(method, steps, [_typical(values) for values in at], low, high))
    what = "ε = ρ g / ‖g‖" if kind == "normalised" else "ε = ρ g"
    return Panel("curves", f"{kind}, {what}", Axis("step", log=True), Axis("test loss", log=True), series)
