"""ASAM's first version, figure 2: sharpness of checkpoints of runs with several weight decays against the gap.

    sam-repro study decays                          # nine decays, the weights of every 10th epoch
    sam-repro study decays 'runs=[ID,ID,...]' m=8   # runs that were trained with loop.keep_every

m-sharpness by one step, m = 8 (appendix B). The paper picks each radius from a grid so that the correlation is largest,
over the very models that it is then reported of. Here a radius is picked on every other run and judged on the rest; the
paper's way stands beside it. Intervals are of a bootstrap over runs: a run's checkpoints are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from sam_repro.errors import UserError
from sam_repro.report.figures.panel import Axis, Panel, Series
from sam_repro.report.studies import Judged
from sam_repro.runs.run import Run
from sam_repro.study import correlation
from sam_repro.study.correlation import Item
from sam_repro.study.frame import WEIGHTS, Job, Measured, Subject

if TYPE_CHECKING:
    from sam_repro.engine.ranks import Ranks

RUNS = WEIGHTS
MEASURES: dict[str, tuple[float, Literal["none", "elementwise"]]] = {
    "sharpness, p = 2": (2.0, "none"),
    "adaptive sharpness, p = 2": (2.0, "elementwise"),
    "sharpness, p = ∞": (math.inf, "none"),
    "adaptive sharpness, p = ∞": (math.inf, "elementwise"),
}
FAIR, PAPER = "radius of one half, judged on the other", "the paper's way: radius of the same models"


@dataclass
class Settings:
    images: int = 1024
    batch: int = 128
    m: int = 8
    eta: float = 0.01
    radii: list[float] = field(
        default_factory=lambda: [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2]
    )  # the grid of appendix B
    seed: int = 0  # of the bootstrap


def check(s: Settings) -> None:
    for name in ("images", "batch", "m"):
        if getattr(s, name) < 1:
            raise UserError(f"{name} must be at least 1, is {getattr(s, name)}")
    if not s.radii or min(s.radii) <= 0:
        raise UserError(f"radii must be above 0 and at least one, are {s.radii}")


def kept_epochs(subject: Subject) -> list[int]:
    """Of which weights were kept; a name is weights.epoch0010.safetensors."""
    files = Run.at(subject.results, subject.id).kept_weights()
    return [int(name[5:]) for file in files if (name := file.name.split(".")[1]).startswith("epoch")]


def measure(job: Job[Settings]) -> Measured:
    s = job.settings
    if len(job.runs) < 4:
        raise UserError(f"runs: two runs to pick a radius by and two to judge it by, these are {len(job.runs)}")
    models = [(one, epoch) for one in job.runs for epoch in kept_epochs(one)]
    if without := [one.id for one in job.runs if not kept_epochs(one)]:
        raise UserError(f"run={without[0]} kept no weights of its epochs: train it with loop.keep_every=10 force=true")
    job.parts.expect(len(models))
    measured = [
        job.parts.get(f"{one.id} epoch {epoch}", partial(_measure, one, epoch, s, job.ranks)) for one, epoch in models
    ]
    found = {name: [{**one, "values": one["values"][name]} for one in measured] for name in MEASURES}
    halves = [[run.id for run in job.runs[start::2]] for start in (0, 1)]
    ranked = {name: _ranked(values, halves, s) for name, values in found.items()}
    numbers = {"models": measured, "ranks": ranked}
    at = {name: s.radii.index(ranked[name][FAIR]["rho"]) for name in MEASURES}
    points = {
        name: ([one["values"][at[name]] for one in values], [one["gap"] for one in values])
        for name, values in found.items()
    }
    panels = correlation.panels(points, "a model", _forest(ranked))
    caption = (
        f"n = {len(job.runs)} runs, {len(models)} models; {s.images} training {job.runs[0].unit} without augmentation, "
        f"batch norm by running statistics, no label smoothing, no weight decay; m = {s.m}, one step, T elementwise, "
        f"η = {s.eta:g}; {len(s.radii)} radii from {min(s.radii):g} to {max(s.radii):g}. Points: at the radius "
        f"that was picked on every other run. Intervals: 95 %, bootstrap over runs. Seed {s.seed}."
    )
    return Measured(numbers, panels, _claims(ranked), caption)


def _measure(subject: Subject, epoch: int, s: Settings, ranks: Ranks | None) -> dict[str, Any]:
    """A model's sharpness of each kind, at each radius."""
    from sam_repro.study.ball import Norm, one_steps
    from sam_repro.study.stored import gap_of, open_subject

    run = open_subject(subject, s.images, s.batch, ranks, epoch=epoch)
    norms = {name: Norm(p, geometry, s.eta) for name, (p, geometry) in MEASURES.items()}
    values = {
        name: one_steps(run.model, run.batches, run.loss, norm, s.radii, s.m, run.ranks) for name, norm in norms.items()
    }
    decay = run.config.base_optimizer.weight_decay
    return {"id": subject.id, "epoch": epoch, "decay": decay, "values": values, "gap": gap_of(subject, epoch)}


def _items(values: Sequence[dict[str, Any]], runs: Sequence[str], place: int) -> list[Item]:
    return [Item(one["id"], one["values"][place], one["gap"], {}) for one in values if one["id"] in runs]


def _best(values: Sequence[dict[str, Any]], runs: Sequence[str], count: int) -> int:
    """The radius by whose measure these runs' models rank best."""
    found = [correlation.kendall(_items(values, runs, place)) for place in range(count)]
    return max(range(count), key=lambda place: -2.0 if found[place] is None else float(found[place] or 0.0))


def _ranked(values: Sequence[dict[str, Any]], halves: Sequence[Sequence[str]], s: Settings) -> dict[str, Any]:
    """Way -> the radius, tau and its interval."""
    picked, judged = halves
    found = {}
    for way, chosen_on, judged_on in ((FAIR, picked, judged), (PAPER, [*picked, *judged], [*picked, *judged])):
        place = _best(values, chosen_on, len(s.radii))
        items = _items(values, judged_on, place)
        ends = correlation.interval(items, correlation.kendall, s.seed) or (None, None)
        found[way] = {"rho": s.radii[place], "tau": correlation.kendall(items), "low": ends[0], "high": ends[1]}
    return found


def _claims(ranked: dict[str, dict[str, Any]]) -> dict[str, Judged]:
    claims = {}
    for p, word in (("2", "p = 2"), ("inf", "p = ∞")):
        for way, name in ((FAIR, f"half_{p}"), (PAPER, f"paper_{p}")):
            usual, adaptive = (ranked[f"{kind}, {word}"][way] for kind in ("sharpness", "adaptive sharpness"))
            if usual["tau"] is None or adaptive["tau"] is None:
                claims[name] = Judged(None, "these runs do not vary in it")
                continue
            apart = None
            if usual["low"] is not None and adaptive["low"] is not None:
                apart = True if adaptive["low"] > usual["high"] else False if adaptive["high"] < usual["low"] else None
            claims[name] = Judged(apart, f"{_said(adaptive)} for adaptive sharpness, {_said(usual)} for sharpness")
    return claims


def _said(one: dict[str, Any]) -> str:
    ends = "" if one["low"] is None else f" [{one['low']:.3f}, {one['high']:.3f}]"
    return f"τ = {one['tau']:.3f}{ends} at ρ = {one['rho']:g}"


def _forest(ranked: dict[str, dict[str, Any]]) -> Panel:
    series = []
    for way in (FAIR, PAPER):
        tau, low, high = ([ranked[name][way][key] for name in MEASURES] for key in ("tau", "low", "high"))
        series.append(Series(way, tau, [float(place) for place in range(len(MEASURES))], low, high))
    return Panel("forest", "rank with the gap", Axis("τ"), Axis("", ticks=tuple(MEASURES)), series)
