"""F-SAM figure A2: training curves of some runs, by what they recorded at the end of each epoch.

    sam-repro study curves                    # ResNet-18 by SAM and F-SAM at rho and 2 rho: the paper's cells
    sam-repro study curves 'runs=[ID,ID]' 'metrics=[train_loss]'

Means over runs of one label with 95 % intervals. Convergence is compared after the first tenth of the epochs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from sam_repro.errors import UserError
from sam_repro.report.figures.panel import Axis, Panel, Series
from sam_repro.report.studies import Judged
from sam_repro.study.frame import RECORDS, Job, Measured
from sam_repro.study.recorded import series
from sam_repro.tables.statistics import Sample, sample
from sam_repro.tables.verdicts import minus

RUNS = RECORDS
# claim -> the metric, whether it is asked early, and the columns of which the first is said to be better
ASKED = {
    "faster": ("train_loss", True, ("fsam", "sam")),
    "faster_2rho": ("train_loss", True, ("fsam_2rho", "sam_2rho")),
    "keeps": ("test_accuracy", False, ("fsam_2rho", "sam_2rho")),
}


@dataclass
class Settings:
    metrics: list[str] = field(default_factory=lambda: ["train_loss", "test_accuracy"])
    early: float = 0.1  # of the epochs, after which convergence is compared


def check(s: Settings) -> None:
    if not s.metrics:
        raise UserError("metrics: name at least one, as train_loss")
    if not 0 < s.early <= 1:
        raise UserError(f"early must be above 0 and at most 1, is {s.early:g}")


def measure(job: Job[Settings]) -> Measured:
    s = job.settings
    job.parts.expect(len(s.metrics) * len(job.runs))
    found: dict[str, list[list[float]]] = {
        metric: [job.parts.get(f"{one.id} {metric}", partial(series, one, metric)) for one in job.runs]
        for metric in s.metrics
    }
    labels = list(dict.fromkeys(one.label for one in job.runs))
    numbers = {
        metric: {label: [sample(values) for values in _by_epoch(job, curves, label)] for label in labels}
        for metric, curves in found.items()
    }
    panels = [_panel(metric, by_label) for metric, by_label in numbers.items()]
    counts = ", ".join(f"n = {sum(one.label == label for one in job.runs)} {label}" for label in labels)
    caption = f"{counts}; mean and 95 % interval over runs. Compared after {s.early:.0%} of the epochs and at the end."
    stored = {
        metric: {label: [[one.mean, one.low, one.high] for one in curve if one] for label, curve in by_label.items()}
        for metric, by_label in numbers.items()
    }
    return Measured(stored, panels, _claims(job, found), caption)


def _by_epoch(job: Job[Settings], curves: list[list[float]], label: str) -> list[list[float]]:
    """Of each epoch that all runs of the label have, their values."""
    mine = [curve for curve, one in zip(curves, job.runs, strict=True) if one.label == label]
    return [list(values) for values in zip(*mine, strict=False)]


def _panel(metric: str, by_label: dict[str, list[Sample | None]]) -> Panel:
    lines = []
    for label, curve in by_label.items():
        known = [one for one in curve if one]
        ends = [one.low is not None for one in known]
        low = [one.low for one in known] if any(ends) else None
        high = [one.high for one in known] if any(ends) else None
        at = [float(place) for place in range(1, len(known) + 1)]
        lines.append(Series(label, at, [one.mean for one in known], low, high))
    name, unit = metric.replace("_", " "), "%" if metric.endswith(("accuracy", "top5")) else ""
    return Panel("curves", name, Axis("epoch"), Axis(name, unit, log=metric.endswith("loss")), lines)


def _claims(job: Job[Settings], found: dict[str, list[list[float]]]) -> dict[str, Judged]:
    claims = {}
    for claim, (metric, early, columns) in ASKED.items():
        sides = [
            {
                place: curve[max(0, round(job.settings.early * len(curve)) - 1) if early else -1]
                for place, (one, curve) in enumerate(zip(job.runs, found.get(metric, []), strict=False))
                if one.column == column
            }
            for column in columns
        ]
        difference = minus(*sides)
        if difference is None:
            continue
        better = -1 if metric.endswith("loss") else 1
        apart = None
        if difference.low is not None and difference.high is not None and difference.low * difference.high > 0:
            apart = difference.value * better > 0
        ends = "" if difference.low is None else f" [{difference.low:.3g}, {difference.high:.3g}]"
        claims[claim] = Judged(
            apart, f"{metric.replace('_', ' ')} of {columns[0]} less {columns[1]}: {difference.value:.3g}{ends}"
        )
    return claims
