"""F-SAM's premise: how much of the full gradient is in a batch's gradient, and in the perturbation, during training.

    sam-repro study premise                     # SAM and F-SAM at rho and 2 rho: the paper's cells, probed
    sam-repro study premise 'runs=[ID,ID]'      # runs that were trained with loop.probe_steps

From what the probe of a run recorded (`sam_repro.engine.probe`): cosines with the gradient G of the whole training set,
and of the perturbation with the batch's noise, the rest of its gradient beside G. Means over runs of one label with
95 % intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from sam_repro.errors import UserError
from sam_repro.report.figures.panel import Axis
from sam_repro.report.studies import Judged
from sam_repro.study.frame import RECORDS, Job, Measured, Subject
from sam_repro.study.recorded import as_numbers, averaged, counts, epochs, panel, sign
from sam_repro.tables.verdicts import minus

RUNS = RECORDS
ASCENT, GRADIENT, NOISE = "ascent_cosine", "gradient_cosine", "noise_cosine"
TITLES = {
    GRADIENT: "batch's gradient and full gradient",
    ASCENT: "perturbation and full gradient",
    NOISE: "perturbation and the batch's noise",
}
# claim -> the columns of which the first is said to have less of the full gradient in its perturbation
REMOVES = {"removes": ("fsam", "sam"), "removes_2rho": ("fsam_2rho", "sam_2rho")}
COSINE = Axis("cosine", limits=(-1.0, 1.0))  # intervals of few runs reach beyond what there is


@dataclass
class Settings:
    early: float = 0.1  # of the probes: the initial stage


def check(s: Settings) -> None:
    if not 0 < s.early < 1:
        raise UserError(f"early must be above 0 and below 1, is {s.early:g}")


def measure(job: Job[Settings]) -> Measured:
    job.parts.expect(len(job.runs))
    probes = [job.parts.get(one.id, partial(_probes, one)) for one in job.runs]
    at = [probe["epoch"] for probe in probes[0]]
    for one, mine in zip(job.runs, probes, strict=True):
        if [probe["epoch"] for probe in mine] != at:
            raise UserError(f"run={one.id} was probed at other epochs than {job.runs[0].id}: study runs of one kind")
    # Of a run that perturbs nothing, or not in every probed epoch, there is no such curve.
    curves = {name: [[probe[name] for probe in mine if name in probe] for mine in probes] for name in TITLES}
    means = {}
    for name, values in curves.items():
        whole = [(curve, run) for curve, run in zip(values, job.runs, strict=True) if len(curve) == len(at)]
        means[name] = averaged([curve for curve, _ in whole], [run for _, run in whole])
    panels = [panel(title, COSINE, means[name], at) for name, title in TITLES.items()]
    first = max(1, round(job.settings.early * len(at)))
    claims = _removes(job, curves[ASCENT])
    if first < len(at):
        claims |= _early(job, curves[GRADIENT], first)
    caption = (
        f"{counts(job.runs)}; mean and 95 % interval over runs, {len(at)} probed epochs. Perturbations are compared by "
        f"the mean over the training; the initial stage is the first {job.settings.early:.0%}."
    )
    numbers = {"epochs": at, **{name: as_numbers(by_label) for name, by_label in means.items()}}
    return Measured(numbers, panels, claims, caption)


def _probes(one: Subject) -> list[dict[str, float]]:
    """Of each epoch in which the run was probed."""
    names = ("epoch", *TITLES)
    found = [{name: record[name] for name in names if name in record} for record in epochs(one) if GRADIENT in record]
    if not found:
        raise UserError(f"run={one.id} was not probed: train it with loop.probe_steps=100 force=true")
    return found


def _removes(job: Job[Settings], curves: list[list[float]]) -> dict[str, Judged]:
    claims = {}
    for claim, columns in REMOVES.items():
        one, other = (
            {
                place: sum(values) / len(values)
                for place, (run, values) in enumerate(zip(job.runs, curves, strict=True))
                if run.column == column and values
            }
            for column in columns
        )
        if difference := minus(one, other):
            claims[claim] = sign(difference, -1, f"cosine of {columns[0]}'s perturbation less {columns[1]}'s")
    return claims


def _early(job: Job[Settings], curves: list[list[float]], first: int) -> dict[str, Judged]:
    """Of the runs of SAM: each is compared with itself later."""
    mine = [curve for run, curve in zip(job.runs, curves, strict=True) if run.column == "sam"]
    early = {place: sum(curve[:first]) / first for place, curve in enumerate(mine)}
    later = {place: sum(curve[first:]) / len(curve[first:]) for place, curve in enumerate(mine)}
    difference = minus(early, later, paired=True)
    return {"initial": sign(difference, 1, "cosine of sam's batches early less later")} if difference else {}
