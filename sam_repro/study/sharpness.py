"""ASAM table 1 and figure 2: how sharpness and adaptive sharpness rank with the generalization gap of trained runs.

    sam-repro study sharpness 'runs=[ID,ID,ID,...]' steps=0        # by the papers' one-step maximiser
    sam-repro study sharpness 'runs=[ID,ID,ID,...]' m=8 geometry=filterwise

Each run's four numbers, plain and adaptive with p = 2 and p = infinity, are worst cases by APGD over unaugmented
training images, batch norm by its running statistics, without smoothing and decay; averages over the ball stand beside
them. The gap is the run's test error less its training error at the last epoch, in points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sam_repro.config.schema import Config
from sam_repro.errors import UserError, hint
from sam_repro.report.figures.panel import Axis, Panel, Series
from sam_repro.report.studies import Judged
from sam_repro.study import correlation
from sam_repro.study.correlation import Item
from sam_repro.study.frame import WEIGHTS, Job, Measured, Subject

if TYPE_CHECKING:
    from sam_repro.engine.ranks import Ranks

RUNS = WEIGHTS
GEOMETRIES = ("elementwise", "filterwise")
# What a family varies, as table 1 has it.
AXES: dict[str, Callable[[Config], float]] = {
    "mini-batch size": lambda config: config.loop.batch_size,
    "learning rate": lambda config: config.base_optimizer.lr,
    "weight decay": lambda config: config.base_optimizer.weight_decay,
    "dropout rate": lambda config: config.model.dropout or 0.0,
}
WHOLE, MEAN = "τ (rank correlation)", "Ψ (average)"


@dataclass
class Settings:
    images: int = 1024
    batch: int = 128
    m: int | None = None  # samples that share a perturbation; null: all of them
    geometry: str = "elementwise"  # of adaptive sharpness
    eta: float = 0.01
    biases: bool = False  # normalised too
    rho_2: float = 0.25
    rho_2_adaptive: float = 0.5
    rho_inf: float = 0.002
    rho_inf_adaptive: float = 0.05
    steps: int = 20  # of APGD; 0: the papers' one step
    restarts: int = 1
    draws: int = 10  # of the average case
    seed: int = 0

    def measures(self) -> dict[str, tuple[float, str, float]]:
        """Name -> (p, geometry, rho)."""
        return {
            "sharpness, p = 2": (2.0, "none", self.rho_2),
            "adaptive sharpness, p = 2": (2.0, self.geometry, self.rho_2_adaptive),
            "sharpness, p = ∞": (math.inf, "none", self.rho_inf),
            "adaptive sharpness, p = ∞": (math.inf, self.geometry, self.rho_inf_adaptive),
        }


def check(s: Settings) -> None:
    if s.geometry not in GEOMETRIES:
        raise UserError(f"geometry={s.geometry}: {hint(s.geometry, GEOMETRIES)}")
    least = {"images": 1, "batch": 1, "steps": 0, "restarts": 0, "draws": 2} | ({} if s.m is None else {"m": 1})
    for name, most in least.items():
        if getattr(s, name) < most:
            raise UserError(f"{name} must be at least {most}, is {getattr(s, name)}")
    for name in ("rho_2", "rho_2_adaptive", "rho_inf", "rho_inf_adaptive"):
        if not 0 < getattr(s, name) < math.inf:
            raise UserError(f"{name} must be above 0, is {getattr(s, name):g}")


def measure(job: Job[Settings]) -> Measured:
    s = job.settings
    if len(job.runs) < 3:
        raise UserError(f"runs: a rank correlation wants at least 3 runs, these are {len(job.runs)}")
    job.parts.expect(len(job.runs) * len(s.measures()))
    found = {name: [_of(job, subject, name) for subject in job.runs] for name in s.measures()}
    tables = {
        kind: {name: _ranked(values, kind, s.seed) for name, values in found.items()} for kind in ("worst", "average")
    }
    facts = [one["facts"] for one in next(iter(found.values()))]
    numbers = {"runs": {name: [_bare(one) for one in values] for name, values in found.items()}, "ranks": tables}
    points = {name: ([one["worst"] for one in of], [one["gap"] for one in of]) for name, of in found.items()}
    panels = correlation.panels(points, "a run", _forest(tables["worst"]))
    return Measured(
        numbers, panels, _claims(tables["worst"]), _caption(s, len(job.runs), facts[0].get("unit", "images")), facts
    )


def _of(job: Job[Settings], subject: Subject, name: str) -> dict[str, Any]:
    return job.parts.get(f"{subject.id} {name}", partial(_measure, subject, name, job.settings, job.ranks))


def _measure(subject: Subject, name: str, s: Settings, ranks: Ranks | None) -> dict[str, Any]:
    from sam_repro.study.ball import Landscape, Norm, average, m_sharpness
    from sam_repro.study.stored import gap_of, open_subject

    p, geometry, rho = s.measures()[name]
    run = open_subject(subject, s.images, s.batch, ranks)
    norm = Norm(p, geometry, s.eta, s.biases)  # type: ignore[arg-type]
    worst = m_sharpness(run.model, run.batches, run.loss, norm, rho, s.m, s.steps, s.restarts, s.seed, run.ranks)
    draws = average(Landscape(run.model, run.batches, run.loss, norm, run.ranks), rho, s.draws, s.seed)
    facts = {**run.facts, "m": s.m, "maximiser": "one step" if s.steps == 0 else f"APGD, {s.steps} steps"}
    return {
        "id": subject.id,
        "worst": worst,
        "average": math.fsum(draws) / len(draws),
        "gap": gap_of(subject),
        "axes": {name: axis(run.config) for name, axis in AXES.items()},
        "facts": facts,
    }


def _bare(one: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in one.items() if key != "facts"}


def _ranked(values: Sequence[Mapping[str, Any]], kind: str, seed: int) -> dict[str, list[float | None]]:
    """Row of the paper's table -> [coefficient, ends of its interval]."""
    items = [Item(one["id"], one[kind], one["gap"], one["axes"]) for one in values]
    rows: dict[str, Callable[[Sequence[Item]], float | None]]
    rows = {
        WHOLE: correlation.kendall,
        **{axis: partial(correlation.granulated, axis=axis) for axis in AXES},
        MEAN: correlation.psi,
    }
    found = dict[str, list[float | None]]()
    for row, statistic in rows.items():
        value = statistic(items)
        ends = correlation.interval(items, statistic, seed) if value is not None else None
        found[row] = [value, *(ends or (None, None))]
    return found


def _claims(table: Mapping[str, Mapping[str, Sequence[float | None]]]) -> dict[str, Judged]:
    """That adaptive sharpness ranks better; decided where the intervals are apart."""
    found = {}
    for key, row in (("tau", WHOLE), ("psi", MEAN)):
        for p, word in (("2", "p = 2"), ("inf", "p = ∞")):
            usual, adaptive = (table[f"{kind}, {word}"][row] for kind in ("sharpness", "adaptive sharpness"))
            (a, low, high), (b, lower, higher) = adaptive, usual
            if a is None or b is None:
                found[f"{key}_{p}"] = Judged(None, "these runs do not vary in it")
                continue
            apart = None
            if low is not None and high is not None and lower is not None and higher is not None:
                apart = True if low > higher else False if high < lower else None
            ends = (
                "" if low is None or lower is None else f" [{low:.3f}, {high:.3f}] against [{lower:.3f}, {higher:.3f}]"
            )
            found[f"{key}_{p}"] = Judged(apart, f"{a:.3f} for adaptive sharpness, {b:.3f} for sharpness{ends}")
    return found


def _forest(table: Mapping[str, Mapping[str, Sequence[float | None]]]) -> Panel:
    rows = list(next(iter(table.values())))
    series = []
    for name, found in table.items():
        value, low, high = ([found[row][place] for row in rows] for place in range(3))
        series.append(Series(name, value, [float(place) for place in range(len(rows))], low, high))
    return Panel("forest", "rank with the gap", Axis("coefficient"), Axis("", ticks=tuple(rows)), series)


def _caption(s: Settings, runs: int, unit: str) -> str:
    maximiser = "one step" if s.steps == 0 else f"APGD, {s.steps} steps, {s.restarts} restarts"
    radii = ", ".join(f"{rho:g} ({name})" for name, (_, _, rho) in s.measures().items())
    return (
        f"n = {runs} runs; {s.images} training {unit} without augmentation, batch norm by running statistics, no label "
        f"smoothing, no weight decay; m = {s.m or 'all'}; {maximiser}; T {s.geometry}, η = {s.eta:g}; ρ = {radii}. "
        f"Gap: test less training error at the last epoch. Intervals: 95 %, bootstrap over runs. Seed {s.seed}."
    )
