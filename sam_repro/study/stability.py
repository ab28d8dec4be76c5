"""R-SAM figures 1 and 2: how long the ascent direction holds, and what loss it reaches, with and without noise first.

    cosine   <g(u), g(u + rho g(u) / |g(u)|)> over their lengths,   u = w + d0,   g the gradient of the mean loss
    loss     L(u + rho g(u) / |g(u)|)

    sam-repro study stability                 # ResNet-18 on CIFAR-100: the cells of R-SAM's table 2
    sam-repro study stability run=ID draws=20

d0 is isotropic, N(0, gamma^2), or kernel-wise, of deviation gamma times the length of the kernel. Batch norm takes each
batch's own statistics, as the figures' caption says, and leaves the running ones alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from sam_repro.errors import UserError
from sam_repro.report.figures.panel import Axis, Panel, Series
from sam_repro.report.studies import Judged
from sam_repro.study.frame import WEIGHTS, Job, Measured, Subject
from sam_repro.tables.statistics import sample
from sam_repro.tables.verdicts import minus

if TYPE_CHECKING:
    from sam_repro.engine.ranks import Ranks

RUNS = WEIGHTS
NOISES = ("isotropic", "kernel-wise")
QUANTITIES = ("cosine", "loss")
HUGE = 1e30  # nats, for what has left the numbers
CLOSE = 0.2  # the radius up to which the losses are said to be close


@dataclass
class Settings:
    images: int = 512
    batch: int = 128
    variances: list[float] = field(default_factory=lambda: [0.0075, 0.01, 0.0125])  # gamma^2; 0 is always there
    radii: list[float] = field(default_factory=lambda: [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0])
    draws: int = 10
    seed: int = 0


def check(s: Settings) -> None:
    for name in ("images", "batch", "draws"):
        if getattr(s, name) < 1:
            raise UserError(f"{name} must be at least 1, is {getattr(s, name)}")
    for name in ("variances", "radii"):
        if not getattr(s, name) or min(getattr(s, name)) <= 0:
            raise UserError(f"{name} must be above 0 and at least one, are {getattr(s, name)}")


def lines(s: Settings) -> Iterator[tuple[str, float, int]]:
    """Noise, gamma^2 and draws of each line."""
    for noise in NOISES:
        yield noise, 0.0, 1
        for variance in s.variances:
            yield noise, variance, s.draws


def measure(job: Job[Settings]) -> Measured:
    s = job.settings
    job.parts.expect(sum(draws for _, _, draws in lines(s)) * len(job.runs))
    found = dict[tuple[str, float], list[dict[str, Any]]]()
    for subject in job.runs:
        opened = list[Any]()
        for noise, variance, draws in lines(s):
            for draw in range(draws):
                name = f"{subject.id} {noise} {variance:g} draw {draw}"
                measure = partial(_along, subject, opened, noise, variance, draw, s, job.ranks)
                one = job.parts.get(name, measure)
                found.setdefault((noise, variance), []).append({"id": subject.id, "draw": draw, **one})
    numbers = {f"{noise}, γ² = {variance:g}": values for (noise, variance), values in found.items()}
    panels = [_panel(noise, quantity, found, s) for quantity in QUANTITIES for noise in NOISES]
    caption = (
        f"n = {len(job.runs)} runs, {s.draws} draws of the noise each; gradients and losses of {s.images} training "
        f"{job.runs[0].unit} without augmentation in batches of {s.batch}, batch norm by each batch's statistics, no "
        f"label smoothing, no weight decay, fp32. Bands: 95 % interval over runs (over draws of one run "
        f"alone). Seed {s.seed}."
    )
    runs = [{"id": one.id, "label": one.label, "images": s.images, "batchnorm": "batch statistics"} for one in job.runs]
    return Measured(numbers, panels, _claims(found, s), caption, runs)


def _along(
    subject: Subject, opened: list[Any], noise: str, variance: float, draw: int, s: Settings, ranks: Ranks | None
) -> dict[str, Any]:
    """Cosine and loss at each radius; the run is opened when its first part is missing."""
    from sam_repro.study.ball import Landscape, Norm, total_norm
    from sam_repro.study.stored import batch_statistics, open_subject

    if not opened:
        run = open_subject(subject, s.images, s.batch, ranks)
        batch_statistics(run.model)
        opened.append(Landscape(run.model, run.batches, run.loss, Norm(2.0, "none"), run.ranks))
    land = opened[0]
    start = _noise(land.model, noise, math.sqrt(variance), 1000 * s.seed + draw)
    _, g = land.slope(start)
    length, cosines, losses = total_norm(g), [], []
    for rho in s.radii:
        ahead = [d + part * (rho / length if length else 0.0) for d, part in zip(start, g, strict=True)]
        loss, there = land.slope(ahead)
        lengths = length * total_norm(there)
        product = math.fsum(float((a.double() * b.double()).sum()) for a, b in zip(g, there, strict=True))
        cosines.append(product / lengths if 0 < lengths < math.inf else 0.0)
        losses.append(min(loss, HUGE) if loss == loss else HUGE)
    return {"cosine": cosines, "loss": losses}


def _noise(model: Any, noise: str, gamma: float, seed: int) -> list[Any]:
    import torch

    from sam_repro.methods.kernels import kernels
    from sam_repro.methods.leaves import leaves

    generator, found = torch.Generator().manual_seed(seed), []
    for leaf in leaves(model):
        w = leaf.tensor.detach()
        drawn = torch.randn(w.shape, generator=generator, dtype=torch.float64).to(w)
        found.append(drawn * gamma * (kernels(leaf).norms(w) if noise == "kernel-wise" else 1.0))
    return found


def _panel(noise: str, quantity: str, found: dict[tuple[str, float], list[dict[str, Any]]], s: Settings) -> Panel:
    series = []
    for (of, variance), values in found.items():
        if of != noise:
            continue
        samples = [sample(_by_run(values, quantity, place)) for place in range(len(s.radii))]
        known = [one for one in samples if one]
        several = any(one.low is not None for one in known)
        low, high = ([one.low for one in known], [one.high for one in known]) if several else (None, None)
        label = "γ² = 0 (vanilla)" if variance == 0 else f"γ² = {variance:g}"
        series.append(Series(label, s.radii, [one.mean for one in known], low, high))
    axis = Axis("cosine of the two gradients") if quantity == "cosine" else Axis("perturbed loss", "nats")
    return Panel("curves", f"{noise} noise", Axis("ρ"), axis, series)


def _claims(found: dict[tuple[str, float], list[dict[str, Any]]], s: Settings) -> dict[str, Judged]:
    """By isotropic noise, as the text has it; what kernel-wise noise gives stands beside it."""
    claims = {}
    far = len(s.radii) - 1

    def at(noise: str, variance: float, quantity: str, place: int) -> list[float]:
        return _by_run(found[noise, variance], quantity, place)

    def compared(a: float, b: float, quantity: str, first: int | None = None) -> tuple[list[bool | None], str]:
        outcomes, texts = list[bool | None](), list[str]()
        for noise in NOISES:
            left, right = ([*at(noise, variance, quantity, far)] for variance in (a, b))
            if first is not None:
                left, right = (
                    [x - y for x, y in zip(values, at(noise, variance, quantity, first), strict=True)]
                    for values, variance in ((left, a), (right, b))
                )
            outcome, text = _apart(left, right)
            outcomes.append(outcome)
            texts.append(f"{text} ({noise})")
        return outcomes, "; ".join(texts)

    most, least = max(s.variances), min(s.variances)
    for name, pair, quantity, first in (
        ("stable", (most, 0.0), "cosine", None),
        ("more_stable", (most, least), "cosine", None),
        ("grows", (most, 0.0), "loss", 0),
    ):
        outcomes, text = compared(*pair, quantity, first)
        claims[name] = Judged(outcomes[0], f"at ρ = {s.radii[far]:g}: {text}")
    near = [place for place, rho in enumerate(s.radii) if rho <= CLOSE]
    if near:
        gaps = {
            noise: max(
                abs(_mean(at(noise, variance, "loss", place)) - _mean(at(noise, 0.0, "loss", place)))
                for place in near
                for variance in s.variances
            )
            for noise in NOISES
        }
        spread = _mean(at(NOISES[0], 0.0, "loss", far)) - _mean(at(NOISES[0], 0.0, "loss", 0))
        text = "; ".join(f"{gap:.3g} nats ({noise})" for noise, gap in gaps.items())
        claims["close"] = Judged(
            gaps[NOISES[0]] < 0.1 * abs(spread), f"largest distance {text}; the vanilla loss rises by {spread:.3g}"
        )
    return claims


def _by_run(values: Sequence[dict[str, Any]], quantity: str, place: int) -> list[float]:
    """Each run's mean over its draws, which are not independent runs; of one run alone, its draws."""
    runs = dict[str, list[float]]()
    for one in values:
        runs.setdefault(one["id"], []).append(one[quantity][place])
    return [_mean(draws) for draws in runs.values()] if len(runs) > 1 else next(iter(runs.values()))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _apart(left: Sequence[float], right: Sequence[float]) -> tuple[bool | None, str]:
    """Whether the left is above the right: by Welch's interval, or by the left's own where the right is one number."""
    text = f"{_mean(left):.3g} against {_mean(right):.3g}"
    if len(right) == 1:
        one = sample(left)
        if one is None or one.low is None or one.high is None:
            return None, text
        return (True if one.low > right[0] else False if one.high < right[0] else None), text
    found = minus(dict(enumerate(left)), dict(enumerate(right)))
    if found is None or found.low is None or found.high is None:
        return None, text
    return (True if found.low > 0 else False if found.high < 0 else None), text
