"""ASAM figure 3: SAM and ASAM on L(w) = |w1 ReLU(w2) - 0.04|, from the paper's two starts and from many more.

    sam-repro study toy                          # the figure: numbers, picture, and what the paper says of it
    sam-repro study toy 'methods=[sam,asam,fsam]' method.rho=0.05   # a picture of one's own, of any method
    sam-repro study toy method=asam 'w0=[0.2,0.05]' lr=0.1 steps=100 --json   # a trajectory as JSON

The paper's starts run through the methods' own code, `toy.run`. For the many, all starts step at once, by the same two
equations on arrays: eps = rho T^2 g / l2(T g), w <- w - lr g(w + eps), T = 1 for SAM and abs(w) + eta for ASAM.

Who "converges" reaches a loss below a bar at some step: descent bounces across the valley's kink, it never rests there.
From w with both weights positive and eta = 0 the perturbed point is w (1 - rho / sqrt 2), whose gradient is that much
smaller: the nearer rho is to sqrt 2, the more steps it takes, and from there on ReLU is flat. Where w2 <= 0 the loss is
flat at w itself, and no gradient method moves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sam_repro.report.figures.panel import Axis, Field, Panel, Series
from sam_repro.report.studies import Judged
from sam_repro.study import toy
from sam_repro.study.frame import NONE, Job, Measured

Array = NDArray[np.float64]
RUNS = NONE
ROOT = math.sqrt(2)
STARTS = ((0.2, 0.05), (0.3, 0.033))  # the paper's
CONVERGED, NEAR = 1e-3, 0.02  # a loss below which the valley is reached; a distance that counts as "near"
METHODS = ("sam", "asam")
main = toy.main


def explores(words: Sequence[str]) -> bool:
    """Whether it is a picture of one's own that is asked for."""
    keys = [word.partition("=")[0] for word in words]
    return any(key in ("method", "methods", "w0") or key.startswith("method.") for key in keys)


@dataclass
class Settings:
    rho: float = 0.05  # of both methods from the paper's starts
    eta: float = 0.01
    lr: float = 0.01
    steps: int = 1000
    grid: int = 12  # the many starts: so many values of each weight
    span: float = 0.4  # the largest
    rhos: list[float] = field(default_factory=lambda: [0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 1.2, 1.4, 1.45])
    many_lr: float = 0.05  # of the many starts, which go farther
    many_steps: int = 8000


def measure(job: Job[Settings]) -> Measured:
    s = job.settings
    job.parts.expect(len(STARTS) * 2 + 3 * len(s.rhos))
    paths = {
        f"{name} from {start}": job.parts.get(f"{name} from {start}", partial(_path, name, start, s))
        for start in STARTS
        for name in METHODS
    }
    starts = many(s)
    shares = dict[str, list[float]]()
    for label, eta in (("SAM", None), ("ASAM, η = 0", 0.0), (f"ASAM, η = {s.eta:g}", s.eta)):
        flags = [job.parts.get(f"{label} at ρ = {rho:g}", partial(converged, starts, eta, rho, s)) for rho in s.rhos]
        shares[label] = [float(np.mean(one)) for one in flags]
    ends = {name: path[-1] for name, path in paths.items()}
    numbers = {"ends": ends, "rhos": s.rhos, "share_converged": shares, "starts": len(starts)}
    panels = [_trajectories(start, paths, s) for start in STARTS]
    panels.append(_shares(shares, s))
    return Measured(numbers, panels, _claims(paths, shares, len(starts), s), _caption(s, len(starts)))


def _path(name: str, start: tuple[float, float], s: Settings) -> list[list[float]]:
    fields = {"rho": s.rho, **({"eta": s.eta} if name == "asam" else {})}
    return toy.run(name, fields, start, s.lr, s.steps).trajectory


def many(s: Settings) -> Array:
    """Starts with both weights positive, off the valley: who starts there has nowhere to go."""
    values = s.span * (np.arange(s.grid) + 0.5) / s.grid
    found = np.stack(np.meshgrid(values, values), -1).reshape(-1, 2)
    return np.asarray(found[loss(found) >= CONVERGED])


def loss(w: Array) -> Array:
    return np.abs(w[:, 0] * np.maximum(w[:, 1], 0) - toy.TARGET)


def gradient(w: Array) -> Array:
    sign = np.sign(w[:, 0] * np.maximum(w[:, 1], 0) - toy.TARGET)
    return np.asarray(sign[:, None] * np.stack([np.maximum(w[:, 1], 0), np.where(w[:, 1] > 0, w[:, 0], 0)], 1))


def step(w: Array, eta: float | None, rho: float, lr: float) -> Array:
    """One step of SAM, which has no eta, or of ASAM, from every row."""
    t = np.ones_like(w) if eta is None else np.abs(w) + eta
    g = gradient(w)
    length = np.sqrt(((t * g) ** 2).sum(1, keepdims=True))
    eps = rho * t**2 * g / np.where(length > 0, length, 1)
    return np.asarray(w - lr * gradient(w + eps))


def converged(starts: Array, eta: float | None, rho: float, s: Settings) -> list[int]:
    """Of every start, whether the loss falls below the bar. Who is there is let go."""
    flags, going, w = np.zeros(len(starts), bool), np.arange(len(starts)), starts
    for _ in range(s.many_steps):
        after = step(w, eta, rho, s.many_lr)
        there = loss(after) < CONVERGED
        flags[going[there]] = True
        still = ~there & (after != w).any(1)  # who stands once, stands for ever
        going, w = going[still], after[still]
        if not len(going):
            break
    return list(flags.astype(int).tolist())


def _claims(paths: dict[str, Any], shares: dict[str, list[float]], count: int, s: Settings) -> dict[str, Judged]:
    near, far = STARTS
    sam, asam = (np.array(paths[f"{name} from {near}"]) for name in METHODS)
    stuck = np.array(paths[f"sam from {far}"])
    other = np.array(paths[f"asam from {far}"])
    to_middle = float(np.abs(sam[-1] - 0.2).max())
    arrival = float(np.sqrt((_kept(near) + np.sqrt(_kept(near) ** 2 + 4 * toy.TARGET**2)) / 2))
    away = float(abs(asam[-1][0] - arrival))
    lowest = float(loss(stuck).min())
    below = [rho for rho, share in zip(s.rhos, shares["ASAM, η = 0"], strict=True) if rho < ROOT and share == 1]
    missed = [rho for rho in s.rhos if rho < ROOT and rho not in below]
    beyond = {f"{rho:g}": share for rho, share in zip(s.rhos, shares["ASAM, η = 0"], strict=True) if rho >= ROOT}
    with_eta = [rho for rho, share in zip(s.rhos, shares[f"ASAM, η = {s.eta:g}"], strict=True) if share == 1]
    sam_too = [rho for rho, share in zip(s.rhos, shares["SAM"], strict=True) if share == 1]
    everywhere = ", ".join(f"{rho:g}" for rho in below)
    return {
        "sam_to_the_middle": Judged(to_middle < NEAR, f"it ends {to_middle:.3f} from (0.2, 0.2)"),
        "asam_nearby": Judged(away < NEAR, f"it ends {away:.3f} in w1 from where plain gradient flow meets the valley"),
        "sam_fails": Judged(lowest > CONVERGED, f"its lowest loss is {lowest:.4f} in {s.steps} steps"),
        "asam_does_not": Judged(bool(loss(other).min() < CONVERGED), f"its lowest loss is {loss(other).min():.5f}"),
        "any_start": Judged(
            False,
            f"with both weights positive and η = 0 all {count} starts converge at ρ = {everywhere}"
            + (f", not all at {', '.join(f'{rho:g}' for rho in missed)} in {s.many_steps} steps" if missed else "")
            + "".join(f", {share:.0%} at {rho}" for rho, share in beyond.items())
            + f"; with η = {s.eta:g} all do at ρ up to {max(with_eta, default=0):g}. Not from w2 ≤ 0, where L is flat",
        ),
        "rho_of_sam": Judged(
            len(sam_too) < len(below),
            f"all starts converge with SAM at {len(sam_too)} of the {len(s.rhos)} radii, "
            f"with ASAM at {len(below)} of the {sum(rho < ROOT for rho in s.rhos)} below √2",
        ),
    }


def _kept(w: tuple[float, float]) -> float:
    """What gradient flow on a product of two weights keeps."""
    return w[0] ** 2 - w[1] ** 2


def _trajectories(start: tuple[float, float], paths: dict[str, Any], s: Settings) -> Panel:
    across, up = np.linspace(0.1, 0.42, 65), np.linspace(-0.05, 0.26, 63)
    z = np.abs(across[None] * np.maximum(up[:, None], 0) - toy.TARGET)
    valley = np.linspace(toy.TARGET / 0.26, 0.42, 60)
    series = [Series("minimisers, w1 w2 = 0.04", valley.tolist(), (toy.TARGET / valley).tolist())]
    for name in METHODS:
        x, y = np.array(paths[f"{name} from {start}"]).T
        thin = np.unique(np.concatenate([np.arange(0, len(x), 4), [len(x) - 1]]))
        series.append(Series(_label(name, s), x[thin].tolist(), y[thin].tolist(), ends=True))
    levels = np.arange(0.004, 0.07, 0.006).tolist()
    return Panel(
        "contour",
        f"from ({start[0]:g}, {start[1]:g})",
        Axis("$w_1$", limits=(0.1, 0.42)),
        Axis("$w_2$", limits=(-0.05, 0.26)),
        series,
        Field(across.tolist(), up.tolist(), z.tolist(), levels, "L"),
        equal=True,
    )


def _label(name: str, s: Settings) -> str:
    return "SAM" if name == "sam" else f"ASAM, η = {s.eta:g}"


def _shares(shares: dict[str, list[float]], s: Settings) -> Panel:
    series = [Series(label, s.rhos, [100 * share for share in values]) for label, values in shares.items()]
    series.append(Series("ρ = √2", [ROOT, ROOT], [0, 100]))
    return Panel("curves", "starts that reach the valley", Axis("radius ρ", log=True), Axis("starts", "%"), series)


def _caption(s: Settings, count: int) -> str:
    return (
        f"L(w) = |w1 ReLU(w2) − 0.04|, gradient descent. Left and middle: {s.steps} steps of {s.lr:g}, ρ = {s.rho:g}, "
        f"η = {s.eta:g}; circle: start, diamond: end. Right: n = {count} starts with weights from 0 to {s.span:g}, "
        f"{s.many_steps} steps of {s.many_lr:g}; reached is a loss below {CONVERGED:g}. Deterministic."
    )
