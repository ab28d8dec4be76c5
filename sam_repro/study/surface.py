"""Loss surfaces around trained weights and between them, along filter-normalised directions (Li et al. 2018).

    d_j <- d_j |w_j| / |d_j|   for each kernel j;   0 on biases and normalisation's parameters
    one line      L(w + a d)              a curve a run, the mean over directions
    one plane     L(w + a d + b d')       contours, of the first run of each label
    between two   L((1 - t) w + t w')     the first run of each label against that of the first label

    sam-repro study surface 'runs=[ID,ID]' planes=true

Batch norm by its running statistics; between two runs by each batch's own, since nobody measured running ones there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sam_repro.errors import UserError
from sam_repro.report.figures.panel import Axis, Field, Panel, Series
from sam_repro.report.studies import Judged
from sam_repro.study.frame import WEIGHTS, Job, Measured, Subject
from sam_repro.tables.statistics import sample
from sam_repro.tables.verdicts import minus

if TYPE_CHECKING:
    from sam_repro.engine.ranks import Ranks

RUNS = WEIGHTS
BEYOND = 0.25  # how far the line between two runs goes on behind each
LEVELS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # nats, of the contours


@dataclass
class Settings:
    images: int = 512
    batch: int = 128
    span: float = 1.0  # of a and b, in lengths of the kernels
    points: int = 21  # of a line
    directions: int = 5
    plane: int = 15  # points a side of a plane; 0: no planes
    between: bool = True
    seed: int = 0


def check(s: Settings) -> None:
    for name, least in {"images": 1, "batch": 1, "points": 3, "directions": 1, "plane": 0}.items():
        if getattr(s, name) < least:
            raise UserError(f"{name} must be at least {least}, is {getattr(s, name)}")
    if not s.span > 0:
        raise UserError(f"span must be above 0, is {s.span:g}")


def measure(job: Job[Settings]) -> Measured:
    s = job.settings
    firsts = {one.label: one for one in reversed(job.runs)}
    labels = list(dict.fromkeys(one.label for one in job.runs))
    pairs = [(firsts[labels[0]], firsts[label]) for label in labels[1:]] if s.between else []
    job.parts.expect(len(job.runs) * s.directions + len(labels) * bool(s.plane) + len(pairs))
    found: dict[str, list[list[float]]] = {label: [] for label in labels}
    for one in job.runs:
        for number in range(s.directions):
            found[one.label].append(
                job.parts.get(f"{one.id} line {number}", partial(_line, one, s, 1000 * s.seed + number, job.ranks))
            )
    panels = [_lines(found, s)]
    numbers: dict[str, Any] = {"lines": found}
    if pairs:
        ways = {
            other.label: job.parts.get(f"{a.id} {other.id}", partial(_between, a, other, s, job.ranks))
            for a, other in pairs
        }
        numbers["between"] = ways
        t = np.linspace(-BEYOND, 1 + BEYOND, s.points).tolist()
        series = [Series(label, t, values) for label, values in ways.items()]
        panels.append(Panel("curves", f"from {labels[0]} (0) to another (1)", Axis("t"), Axis("loss", "nats"), series))
    if s.plane:
        grid = np.linspace(-s.span, s.span, s.plane).tolist()
        for label in labels:
            one = firsts[label]
            z = job.parts.get(f"{one.id} plane", partial(_plane, one, s, job.ranks))
            numbers.setdefault("planes", {})[label] = z
            middle = Series("trained weights", [0.0], [0.0], mark="points")
            field = Field(grid, grid, z, LEVELS, "loss")
            panels.append(Panel("contour", label, Axis("a"), Axis("b"), [middle], field, equal=True))
    counts = ", ".join(f"n = {sum(one.label == label for one in job.runs)} {label}" for label in labels)
    caption = (
        f"{counts}; {s.directions} filter-normalised directions each, mean and 95 % interval over runs (over "
        f"directions of one run alone); {s.images} training {job.runs[0].unit} without augmentation, batch norm by "
        f"running statistics (between two runs by each batch's), no label smoothing, no weight decay, fp32. "
        f"Contours: first run of each, at {', '.join(f'{level:g}' for level in LEVELS)} nats. Seed {s.seed}."
    )
    runs = [{"id": one.id, "label": one.label, "images": s.images} for one in job.runs]
    return Measured(numbers, panels, _claims({k: _by_run(v, s) for k, v in found.items()}), caption, runs)


def _direction(model: Any, seed: int) -> list[Any]:
    import torch

    from sam_repro.methods.kernels import kernels
    from sam_repro.methods.leaves import leaves

    generator, found = torch.Generator().manual_seed(seed), []
    for leaf in leaves(model):
        w = leaf.tensor.detach()
        drawn = torch.randn(w.shape, generator=generator, dtype=torch.float64).to(w)
        if w.dim() < 2:
            found.append(torch.zeros_like(w))
            continue
        own = kernels(leaf)
        found.append(drawn * own.norms(w) / own.norms(drawn))
    return found


def _landscape(one: Subject, s: Settings, ranks: Ranks | None) -> tuple[Any, Any]:
    from sam_repro.study.ball import Landscape, Norm
    from sam_repro.study.stored import open_subject

    run = open_subject(one, s.images, s.batch, ranks)
    return run, Landscape(run.model, run.batches, run.loss, Norm(2.0, "none"), run.ranks)


def _line(one: Subject, s: Settings, seed: int, ranks: Ranks | None) -> list[float]:
    run, land = _landscape(one, s, ranks)
    d = _direction(run.model, seed)
    return [_finite(land.value([a * part for part in d])) for a in np.linspace(-s.span, s.span, s.points).tolist()]


def _plane(one: Subject, s: Settings, ranks: Ranks | None) -> list[list[float]]:
    run, land = _landscape(one, s, ranks)
    d, other = _direction(run.model, 1000 * s.seed), _direction(run.model, 1000 * s.seed + 1)
    grid = np.linspace(-s.span, s.span, s.plane).tolist()
    return [[_finite(land.value([a * x + b * y for x, y in zip(d, other, strict=True)])) for a in grid] for b in grid]


def _between(one: Subject, other: Subject, s: Settings, ranks: Ranks | None) -> list[float]:
    from sam_repro.study.stored import batch_statistics, open_subject

    run, land = _landscape(one, s, ranks)
    there = open_subject(other, s.images, s.batch, ranks).model
    far = [p.detach() for p in there.parameters() if p.requires_grad]
    if [p.shape for p in far] != [p.shape for p in land.start]:
        raise UserError(f"runs {one.id} and {other.id} are of different nets: set between=false")
    batch_statistics(run.model)
    way = [b - a for a, b in zip(land.start, far, strict=True)]
    return [
        _finite(land.value([t * part for part in way])) for t in np.linspace(-BEYOND, 1 + BEYOND, s.points).tolist()
    ]


def _finite(value: float) -> float:
    return value if np.isfinite(value) else 1e30  # JSON knows no infinity


def _lines(found: dict[str, list[list[float]]], s: Settings) -> Panel:
    a, series = np.linspace(-s.span, s.span, s.points).tolist(), []
    for label, curves in found.items():
        known = [one for values in zip(*_by_run(curves, s), strict=True) if (one := sample(list(values)))]
        several = any(one.low is not None for one in known)
        low, high = ([one.low for one in known], [one.high for one in known]) if several else (None, None)
        series.append(Series(label, a, [one.mean for one in known], low, high))
    return Panel("curves", "along random directions", Axis("a"), Axis("loss", "nats"), series)


def _by_run(curves: Sequence[Sequence[float]], s: Settings) -> list[list[float]]:
    """Each run's mean over its directions, which are not independent runs; of one run alone, its directions."""
    runs = [curves[first : first + s.directions] for first in range(0, len(curves), s.directions)]
    return [np.mean(one, axis=0).tolist() for one in (runs if len(runs) > 1 else [[curve] for curve in curves])]


def _rise(curves: Sequence[Sequence[float]]) -> list[float]:
    """How much higher the ends of half the span lie than the middle."""
    middle, quarter = len(curves[0]) // 2, len(curves[0]) // 4
    return [(curve[middle - quarter] + curve[middle + quarter]) / 2 - curve[middle] for curve in curves]


def _claims(found: dict[str, list[list[float]]]) -> dict[str, Judged]:
    """Where there are runs of SAM and of SGD."""
    sam, sgd = (next((found[label] for label in found if label.endswith(name)), None) for name in ("SAM", "SGD"))
    if sam is None or sgd is None or sam is sgd:
        return {}
    left, right = _rise(sam), _rise(sgd)
    difference = minus(dict(enumerate(left)), dict(enumerate(right)))
    assert difference
    apart = None
    if difference.low is not None and difference.high is not None:
        apart = True if difference.high < 0 else False if difference.low > 0 else None
    text = f"rise of the loss of SAM less SGD {difference.said(3)} nats, at half the span"
    return {"flatter": Judged(apart, text)}
