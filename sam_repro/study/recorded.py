"""What runs recorded epoch by epoch, in their folders or in the curves that are kept of finished ones; their means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sam_repro.errors import UserError
from sam_repro.record import metrics
from sam_repro.report.figures.panel import Axis, Panel, Series
from sam_repro.report.studies import Judged
from sam_repro.runs import archive
from sam_repro.runs.run import Run
from sam_repro.study.frame import Subject
from sam_repro.tables.statistics import Sample, sample
from sam_repro.tables.verdicts import Difference

Means = Mapping[str, Sequence[Sample]]  # of each label's runs, at each epoch that all of them have


def epochs(subject: Subject) -> list[dict[str, Any]]:
    run = Run.at(subject.results, subject.id)
    records = metrics.read(run.path) if run.metrics.exists() else archive.read(subject.results, subject.id) or []
    found = [dict(record) for record in records if record["kind"] == "epoch"]
    if not found:
        raise UserError(f"run={subject.id} recorded no epoch: start it again to let it go on")
    return found


def series(subject: Subject, metric: str) -> list[float]:
    """A metric's value at the end of each epoch."""
    records = epochs(subject)
    if lacking := [record["epoch"] for record in records if metric not in record]:
        known = ", ".join(name for name, value in records[0].items() if isinstance(value, float))
        raise UserError(f"metric={metric}: run {subject.id} has none at epoch {lacking[0]}; it recorded {known}")
    return [float(record[metric]) for record in records]


def averaged(curves: Sequence[Sequence[float]], runs: Sequence[Subject]) -> Means:
    """Means over the runs of a label; `curves` are the runs' values, in turn."""
    found = dict[str, list[Sample]]()
    for label in dict.fromkeys(one.label for one in runs):
        mine = [curve for curve, one in zip(curves, runs, strict=True) if one.label == label]
        found[label] = [known for values in zip(*mine, strict=False) if (known := sample(values))]
    return found


def panel(title: str, y: Axis, means: Means, epochs: Sequence[float] | None = None) -> Panel:
    """A line for each label, with the intervals where there are several runs. epochs: not 1, 2, 3, ..."""
    lines = []
    for label, curve in means.items():
        several = any(one.low is not None for one in curve)
        low, high = ([one.low for one in curve], [one.high for one in curve]) if several else (None, None)
        at = [float(epoch) for epoch in epochs or range(1, len(curve) + 1)]
        lines.append(Series(label, at, [one.mean for one in curve], low, high))
    return Panel("curves", title, Axis("epoch"), y, lines)


def as_numbers(means: Means) -> dict[str, list[list[float | None]]]:
    """For numbers.json."""
    return {label: [[one.mean, one.low, one.high] for one in curve] for label, curve in means.items()}


def counts(runs: Sequence[Subject]) -> str:
    """How many runs a line or bar is the mean of: "n = 3 runs each", or "n = 3 SAM, n = 2 F-SAM" where they differ."""
    labels = [one.label for one in runs]
    found = {label: labels.count(label) for label in labels}
    if len(set(found.values())) == 1:
        return f"n = {len(labels) // len(found)} run{'s' * (len(labels) > len(found))} each"
    return ", ".join(f"n = {count} {label}" for label, count in found.items())


def sign(found: Difference, better: int, what: str) -> Judged:
    """Whether it has the sign that is claimed; not decided where its interval has both."""
    apart = found.low is not None and found.high is not None and found.low * found.high > 0
    ends = "" if found.low is None else f" [{found.low:.3g}, {found.high:.3g}]"
    return Judged(found.value * better > 0 if apart else None, f"{what}: {found.value:.3g}{ends}")
