"""F-SAM figure A2: training curves of some runs, by what they recorded at the end of each epoch.

    sam-repro study curves                    # ResNet-18 by SAM and F-SAM at rho and 2 rho: the paper's cells
    sam-repro study curves 'runs=[ID,ID]' 'metrics=[train_loss]'

Means over runs of one label with 95 % intervals. Convergence is compared after the first tenth of the epochs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from sam_repro.errors import UserError
from sam_repro.report.figures.panel import Axis
from sam_repro.report.studies import Judged
from sam_repro.study.frame import RECORDS, Job, Measured
from sam_repro.study.recorded import as_numbers, averaged, counts, panel, series, sign
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
    means = {metric: averaged(curves, job.runs) for metric, curves in found.items()}
    caption = f"{counts(job.runs)}; mean and 95 % interval over runs. "
    caption += f"Compared after {s.early:.0%} of the epochs and at the end."
    numbers = {metric: as_numbers(by_label) for metric, by_label in means.items()}
    panels = [panel(_words(metric), _axis(metric), by_label) for metric, by_label in means.items()]
    return Measured(numbers, panels, _claims(job, found), caption)


def _words(metric: str) -> str:
    return metric.replace("_", " ")


def _axis(metric: str) -> Axis:
    of_loss = metric.endswith("loss")
    unit = "nats" if of_loss else "%" if metric.endswith(("accuracy", "top5")) else ""
    return Axis(_words(metric), unit, log=of_loss)


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
        claims[claim] = sign(difference, better, f"{_words(metric)} of {columns[0]} less {columns[1]}")
    return claims
