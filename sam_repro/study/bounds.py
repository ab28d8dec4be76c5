"""The papers' bounds, measured where each of their constants is known: on quadratics, and on a net of two weights.

    sam-repro study bounds                 # 1,000 draws
    sam-repro study bounds draws=200 delta=0.01

F-SAM theorem 1 (the moving average follows the gradient), lemma 1 (what is left of the full gradient), theorem 2
(convergence); ASAM theorem 3 of the first version (generalization); R-SAM theorem 1 (smoothness). What is drawn is the
quantity that 1 - delta of the draws do not exceed, beside its bound; the equations stand in `quadratics.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from sam_repro.errors import UserError
from sam_repro.report.figures.panel import Axis, Panel, Series
from sam_repro.report.studies import Judged
from sam_repro.study import quadratics
from sam_repro.study.frame import NONE, Job, Measured
from sam_repro.study.quadratics import Quadratic
from sam_repro.tables.statistics import sample

RUNS = NONE
MEASURED, BOUND = "measured, 1 − δ of the draws", "bound"
POINTS = 25  # of a curve


@dataclass
class Settings:
    draws: int = 1000
    delta: float = 0.05
    steps: int = 2000
    decay: float = 0.9  # of the moving average
    rate: float = 0.01  # of theorem 1
    rate_0: float = 0.5  # of theorem 2, over root t
    radius_0: float = 0.1
    sigmas: list[float] = field(default_factory=lambda: [0.0, 0.25, 0.5, 0.75, 1.0])
    batches: int = 4  # whose mean is the unbiased m of the lemma
    samples: list[int] = field(default_factory=lambda: [100, 300, 1000, 3000])
    size: int = 10  # weights of the generalization bound
    rho: float = 1.0
    eta: float = 0.1
    gammas: list[float] = field(default_factory=lambda: [0.05, 0.1, 0.2, 0.3, 0.5, 0.7])
    steepness: float = 3.0
    side: int = 601  # grid points a side
    seed: int = 0


def check(s: Settings) -> None:
    for name in ("draws", "steps", "batches", "size"):
        if getattr(s, name) < 2:
            raise UserError(f"{name} must be at least 2, is {getattr(s, name)}")
    if not 0 < s.delta < 1:
        raise UserError(f"delta must be between 0 and 1, is {s.delta:g}")
    for name in ("rate", "rate_0"):
        if not 0 < getattr(s, name) <= 1:
            raise UserError(f"{name} must be above 0 and at most 1, beta's inverse; is {getattr(s, name):g}")


def measure(job: Job[Settings]) -> Measured:
    s, parts = job.settings, job.parts
    made = {
        "average": _average,
        "projection": _projection,
        "convergence": _convergence,
        "generalization": _generalization,
        "smoothness": _smoothness,
    }
    parts.expect(len(made))
    found = {name: parts.get(name, partial(one, s)) for name, one in made.items()}
    q = Quadratic()
    caption = (
        f"n = {s.draws} draws, δ = {s.delta:g}. Quadratics of {q.size} weights, eigenvalues {q.mu:g} to "
        f"β = {q.beta:g}, M = {q.variance:g}, |w0| = {q.start:g}. Theorem 1: λ = {s.decay:g}, rate {s.rate:g}. "
        f"Theorem 2: γ0 = {s.rate_0:g}, ρ0 = {s.radius_0:g}. Theorem 3: {s.size} weights, ρ = {s.rho:g}, "
        f"η = {s.eta:g}, O(1) as 0. R-SAM: f(x) = tanh({s.steepness:g} (a x + b)), four samples, {s.side}² weights. "
        f"Seed {s.seed}."
    )
    return Measured(found, _panels(found, s), _claims(found, s), caption)


def _places(s: Settings) -> list[int]:
    return sorted({round(step) for step in np.geomspace(1, s.steps, POINTS)})


def _under(values: Any, bound: Any, s: Settings) -> dict[str, Any]:
    """Of [T, draws] against [T]: what 1 - delta of the draws do not exceed, and the least share of draws under it."""
    at = [place - 1 for place in _places(s)]
    share = (values <= bound[:, None]).mean(1)
    return {
        "at": _places(s),
        "measured": np.quantile(values, 1 - s.delta, axis=1)[at].tolist(),
        "bound": bound[at].tolist(),
        "least_share": float(share.min()),
        "closest": float((np.quantile(values, 1 - s.delta, axis=1) / bound).max()),
    }


def _average(s: Settings) -> dict[str, Any]:
    q = Quadratic()
    values = quadratics.average_errors(q, s.decay, s.rate, s.steps, s.draws, s.seed)
    return _under(values, quadratics.average_bound(q, s.decay, s.rate, s.steps, s.delta, q.variance), s)


def _projection(s: Settings) -> dict[str, Any]:
    found = []
    for sigma in s.sigmas:
        one = sample(quadratics.projections(Quadratic(), sigma, s.batches, s.draws, s.seed).tolist())
        assert one
        found.append([sigma, one.mean, one.low, one.high])
    return {"left": found}


def _convergence(s: Settings) -> dict[str, Any]:
    q = Quadratic()
    values = quadratics.squared_gradients(q, s.rate_0, s.radius_0, s.steps, s.draws, s.seed)
    return _under(values, quadratics.squared_bound(q, s.rate_0, s.radius_0, s.steps), s)


def _generalization(s: Settings) -> dict[str, Any]:
    measured, bounds, shares = [], [], []
    for n in s.samples:
        gap, square = quadratics.gaps(n, s.size, s.rho, s.eta, s.draws, s.seed)
        bound = quadratics.gap_bound(square, n, s.size, s.rho, s.eta, s.delta)
        measured.append(float(np.quantile(gap, 1 - s.delta)))
        bounds.append(float(np.median(bound)))
        shares.append(float((gap <= bound).mean()))
    return {"at": s.samples, "measured": measured, "bound": bounds, "least_share": min(shares)}


def _smoothness(s: Settings) -> dict[str, Any]:
    alpha, beta, found = quadratics.smoothness(s.steepness, s.gammas, s.side)
    bounds = [min(alpha / gamma, beta) for gamma in s.gammas]
    return {"at": s.gammas, "measured": found, "bound": bounds, "alpha": alpha, "beta": beta}


def _panels(found: dict[str, Any], s: Settings) -> list[Panel]:
    def pair(name: str, title: str, x: Axis, y: Axis) -> Panel:
        one = found[name]
        at = [float(place) for place in one["at"]]
        return Panel("curves", title, x, y, [Series(MEASURED, at, one["measured"]), Series(BOUND, at, one["bound"])])

    sigma, mean, low, high = (list(column) for column in zip(*found["projection"]["left"], strict=True))
    left = [
        Series(MEASURED, sigma, mean, low, high),
        Series(BOUND, sigma, [1 - value for value in sigma]),
    ]
    step = Axis("steps T", log=True)
    return [
        pair("average", "F-SAM, theorem 1", step, Axis("|m − ∇L|", log=True)),
        Panel("curves", "F-SAM, lemma 1: 1 − σ is left", Axis("σ"), Axis("share of ∇L that is left"), left),
        pair("convergence", "F-SAM, theorem 2", step, Axis("mean of |∇L|²", log=True)),
        pair("generalization", "ASAM v1, theorem 3", Axis("samples n", log=True), Axis("L_D less worst L_S")),
        pair("smoothness", "R-SAM, theorem 1", Axis("γ"), Axis("smoothness")),
    ]


def _claims(found: dict[str, Any], s: Settings) -> dict[str, Judged]:
    claims = {}
    for name in ("average", "convergence", "generalization"):
        one = found[name]
        closest = f", of which it reaches {one['closest']:.0%} at most" if "closest" in one else ""
        claims[name] = Judged(
            one["least_share"] >= 1 - s.delta,
            f"under the bound in {one['least_share']:.1%} of {s.draws:,} draws or more{closest}",
        )
    left = found["projection"]["left"]
    claims["projection"] = Judged(
        all(low <= 1 - sigma <= high for sigma, _, low, high in left),
        "; ".join(f"{mean:+.3f} [{low:+.3f}, {high:+.3f}] at σ = {sigma:g}" for sigma, mean, low, high in left[-1:]),
    )
    one = found["smoothness"]
    ratios = [value / bound for value, bound in zip(one["measured"], one["bound"], strict=True)]
    claims["smoothness"] = Judged(
        max(ratios) <= 1,
        f"at most {max(ratios):.0%} of the bound; α = {one['alpha']:.3g}, β = {one['beta']:.3g}",
    )
    return claims
