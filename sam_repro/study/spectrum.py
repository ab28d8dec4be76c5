"""F-SAM figure A3: the spectrum of the Hessian, or of the Gauss-Newton matrix, of trained runs.

    sam-repro study spectrum                       # ResNet-18 by SAM and F-SAM: the paper's cells
    sam-repro study spectrum 'runs=[ID,ID]' matrix=gauss_newton

lambda_1 and lambda_1 / lambda_5 by scipy's Lanczos (`eigsh`), the trace and the density by stochastic Lanczos with full
reorthogonalisation, a mean and a standard error over random starts (Ghorbani et al. 2019). The loss is the mean over
unaugmented training images, without label smoothing and weight decay; batch norm by its running statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sam_repro.errors import UserError, hint
from sam_repro.report.figures.panel import Axis, Panel, Series
from sam_repro.report.studies import Judged
from sam_repro.study.frame import WEIGHTS, Job, Measured, Subject
from sam_repro.study.lanczos import Probe, density, lanczos, largest
from sam_repro.study.recorded import counts, sign
from sam_repro.tables.statistics import Sample, sample
from sam_repro.tables.verdicts import minus

if TYPE_CHECKING:
    from sam_repro.engine.ranks import Ranks

RUNS = WEIGHTS
MATRICES = ("hessian", "gauss_newton")
POINTS = 200  # of a density's curve
BARS = {"lambda_1": "largest eigenvalue λ1", "ratio": "λ1 / λ5", "trace": "trace"}
FLOOR = 1e-6  # of a density's axis


@dataclass
class Settings:
    matrix: str = "hessian"
    images: int = 1024
    batch: int = 128
    top: int = 5
    probes: int = 5
    steps: int = 60
    tolerance: float = 1e-4  # of the largest eigenvalues, relative
    width: float = 0.01  # of a density's bells, by its range
    keep_graphs: bool = True  # false: less memory, about half the speed
    seed: int = 0


def check(s: Settings) -> None:
    if s.matrix not in MATRICES:
        raise UserError(f"matrix={s.matrix}: {hint(s.matrix, MATRICES)}")
    for name in ("images", "batch", "top", "probes", "steps"):
        if getattr(s, name) < 1:
            raise UserError(f"{name} must be at least 1, is {getattr(s, name)}")
    if s.top < 5:
        raise UserError(f"top must be at least 5, for lambda_5; is {s.top}")


def measure(job: Job[Settings]) -> Measured:
    s = job.settings
    job.parts.expect(len(job.runs) * (2 + s.probes))
    found = [_run(job, subject) for subject in job.runs]
    labels = list(dict.fromkeys(one["label"] for one in found))
    values = {
        label: {name: sample([one[name] for one in found if one["label"] == label]) for name in BARS}
        for label in labels
    }
    panels = [_density(found, labels, s), *_bars(labels, values)]
    numbers = {"runs": [{k: v for k, v in one.items() if k != "probes"} for one in found]}
    facts = [one["facts"] for one in found]
    return Measured(numbers, panels, _claims(job.runs, found), _caption(s, job.runs, facts[0]), facts)


def _run(job: Job[Settings], subject: Subject) -> dict[str, Any]:
    """Its parts are measured one by one; the model is opened when the first is missing."""
    s, opened = job.settings, list[Any]()

    def products() -> Any:
        if not opened:
            opened.append(_open(subject, s, job.ranks))
        return opened[0][0]

    def facts() -> dict[str, Any]:
        size = products().size
        return {**opened[0][1], "parameters": size}

    known = job.parts.get(f"{subject.id} facts", facts)
    size = known["parameters"]

    def eigenvalues() -> Any:
        return products().led(lambda product: largest(product, size, s.top, s.tolerance, s.seed))

    top = job.parts.get(f"{subject.id} largest", eigenvalues)
    probes = []
    for number in range(s.probes):

        def one(seed: int = s.seed * 1000 + number) -> list[Any]:
            probe = products().led(lambda product: lanczos(product, size, s.steps, seed))
            return [probe.nodes.tolist(), probe.weights.tolist(), probe.trace]

        nodes, weights, trace = job.parts.get(f"{subject.id} probe {number}", one)
        probes.append(Probe(np.array(nodes), np.array(weights), trace))
    traced = sample([probe.trace for probe in probes])
    assert traced
    return {
        "id": subject.id,
        "label": subject.label,
        "largest": top,
        "lambda_1": top[0],
        "ratio": top[0] / top[4],
        "trace": traced.mean,
        "trace_low": traced.low,
        "trace_high": traced.high,
        "facts": known,
        "probes": probes,
    }


def _open(subject: Subject, s: Settings, ranks: Ranks | None) -> tuple[Any, dict[str, Any]]:
    from sam_repro.study.products import Products
    from sam_repro.study.stored import open_subject

    run = open_subject(subject, s.images, s.batch, ranks)
    matrix: Any = s.matrix
    mine = run.ranks.mine(run.batches)
    return Products(run.model, mine, run.loss, run.count, matrix, run.ranks, s.keep_graphs), run.facts


def _density(found: Sequence[dict[str, Any]], labels: Sequence[str], s: Settings) -> Panel:
    """Of the first run of each label, on one axis."""
    first = {label: next(one for one in found if one["label"] == label) for label in labels}
    ends = [node for one in first.values() for probe in one["probes"] for node in (probe.nodes[0], probe.nodes[-1])]
    low, high = min(ends), max([*ends, *(one["lambda_1"] for one in first.values())])
    width = s.width * (high - low)
    at = np.linspace(low - 3 * width, high + 3 * width, POINTS)
    series = []
    for label, one in first.items():
        mean, error = density(one["probes"], at, width)
        bottom = np.maximum(mean - error, FLOOR)
        series.append(
            Series(
                label,
                at.tolist(),
                np.maximum(mean, FLOOR).tolist(),
                bottom.tolist(),
                np.maximum(mean + error, FLOOR).tolist(),
            )
        )
        series.append(Series(label, one["largest"], [0.0] * len(one["largest"]), mark="stems"))
    name = "Hessian" if s.matrix == "hessian" else "Gauss-Newton matrix"
    return Panel("spectrum", f"spectrum of the {name}", Axis("eigenvalue"), Axis("density", log=True), series)


def _bars(labels: Sequence[str], values: dict[str, dict[str, Sample | None]]) -> list[Panel]:
    panels = []
    for name, title in BARS.items():
        series = []
        for label in labels:
            if one := values[label][name]:
                low, high = (one.mean if end is None else end for end in (one.low, one.high))
                series.append(Series(label, [0.0], [one.mean], [low], [high]))
        panels.append(Panel("bars", title, Axis("", ticks=("",)), Axis(title), series))
    return panels


def _claims(runs: Sequence[Subject], found: Sequence[dict[str, Any]]) -> dict[str, Judged]:
    """Where the runs are a table's cells of SAM and F-SAM; of one seed each nothing is decided."""
    judged = {}
    for claim, name in (("smaller_lambda", "lambda_1"), ("smaller_ratio", "ratio")):
        fsam, sam = (
            {place: one[name] for place, (run, one) in enumerate(zip(runs, found, strict=True)) if run.column == column}
            for column in ("fsam", "sam")
        )
        if difference := minus(fsam, sam):
            judged[claim] = sign(difference, -1, f"{BARS[name]} of F-SAM less SAM's")
    return judged


def _caption(s: Settings, runs: Sequence[Subject], facts: dict[str, Any]) -> str:
    images = f"{facts['images']} training {facts.get('unit', 'images')}"
    return (
        f"{counts(runs)}; {images} without augmentation, batch norm by running statistics, no label "
        f"smoothing, no weight decay, {facts['precision']}. Density of the first run of each: {s.probes} starts of "
        f"{s.steps} steps, band: standard error; stems: the {s.top} largest. Bars: mean, 95 % interval over runs. "
        f"Seed {s.seed}."
    )
