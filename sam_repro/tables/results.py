"""The one table that every format prints: claims joined with the ledger, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sam_repro.config.schema import Config
from sam_repro.runs.entry import Entry
from sam_repro.tables.judged import Verdict, verdict
from sam_repro.tables.plan import PAPER, Planned
from sam_repro.tables.statistics import Sample, sample
from sam_repro.tables.status import RunState, state_of
from sam_repro.tables.table import STATISTICS, Cell, Table
from sam_repro.tables.verdicts import Difference, minus
from sam_repro.tasks.described import described
from sam_repro.tasks.metric import Metric

# Times chance: a finished run of the full budget that stays below it has "completely failed", as ASAM counts.
CHANCE = 1.5


@dataclass(frozen=True)
class Result:
    """What the ledger says on one cell."""

    cell: Cell
    planned: int
    finished: int  # done or collapsed
    succeeded: int  # done and above chance; all values below are theirs
    best: Sample | None
    last: Sample | None
    picked: Sample | None  # at the epoch that is best on the validation split, where runs have one beside the test set
    values: Mapping[int, float]  # by seed, of the table's statistic
    difference: Difference | None  # to the baseline
    verdict: Verdict
    runs: tuple[RunState, ...]
    seconds: float
    passes: float
    passes_each: float  # of a run that succeeded, on average; NaN where none knows
    why: str | None  # why no run gives this cell
    config: Config | None  # of its first run

    @property
    def collapsed(self) -> int:
        return self.finished - self.succeeded


@dataclass(frozen=True)
class Joined:
    """A table with its results at one budget."""

    table: Table
    budget: str
    results: tuple[Result, ...]
    hardware: tuple[str, ...]
    versions: tuple[str, ...]
    trials: Joined | None = None  # by which the table's free values were chosen
    metrics: Mapping[str, Metric] = field(default_factory=dict, hash=False)  # by name, as the runs describe them

    def result(self, row: str, column: str) -> Result:
        return next(r for r in self.results if (r.cell.row, r.cell.column) == (row, column))

    def measured(self, result: Result) -> Sample | None:
        return getattr(result, self.table.statistic)  # type: ignore[no-any-return]

    def difference(self, one: Result, other: Result) -> Difference | None:
        """One minus the other, of two cells that both have values."""
        return minus(one.values, other.values, paired=self.table.paired)

    def higher_is_better(self, metric: str) -> bool:
        return self.metrics[metric].higher_is_better if metric in self.metrics else True

    @property
    def any_run(self) -> bool:
        return any(result.finished for result in self.results)


def join(table: Table, planned: list[Planned], entries: Mapping[str, Entry], budget: str, results_dir: Path) -> Joined:
    by_cell = {(p.cell.row, p.cell.column): p for p in planned}
    results = tuple(_result(table, p, by_cell, entries, budget, results_dir) for p in planned)
    used = [entries[run.id] for p in planned for run in p.runs if run.id in entries]
    return Joined(
        table,
        budget,
        results,
        tuple(sorted({hardware(entry) for entry in used})),
        tuple(sorted({versions(entry) for entry in used})),
        metrics={metric.name: metric for entry in used for metric in described(entry)},
    )


def _result(
    table: Table,
    planned: Planned,
    by_cell: Mapping[tuple[str, str], Planned],
    entries: Mapping[str, Entry],
    budget: str,
    results_dir: Path,
) -> Result:
    cell = planned.cell
    mine = [entries[run.id] for run in planned.runs if run.id in entries]
    ended = [e for e in mine if e["status"] == "collapsed" or (e["status"] == "done" and _has(e, cell, table))]
    found = {kind: _values(planned, entries, kind) for kind in STATISTICS}
    chosen = found[table.statistic]
    other = by_cell.get(cell.baseline) if cell.baseline else None
    baseline = _values(other, entries, table.statistic, cell.metric) if other else {}
    return Result(
        cell=cell,
        planned=len(planned.runs),
        finished=len(ended),
        succeeded=len(chosen),
        **{kind: sample(list(values.values())) for kind, values in found.items()},
        values=chosen,
        difference=minus(chosen, baseline, paired=table.paired),
        verdict=verdict(
            cell.claim,
            list(chosen.values()),
            finished=len(ended),
            planned=len(planned.runs),
            budget=budget,
            margin=table.margin,
        ),
        runs=tuple(state_of(run, entries.get(run.id), results_dir, metric=cell.metric) for run in planned.runs),
        seconds=math.fsum(entry["seconds"] for entry in mine),
        passes=total_passes(mine),
        passes_each=_each([e["passes"] for seed, e in _by_seed(planned, entries) if seed in chosen]),
        why=planned.why,
        config=planned.config,
    )


def _values(
    planned: Planned, entries: Mapping[str, Entry], statistic: str, metric: str | None = None
) -> dict[int, float]:
    """seed -> value of the runs that succeeded."""
    values = dict[int, float]()
    for run in planned.runs:
        entry = entries.get(run.id)
        if entry is None or failed_completely(entry, planned):
            continue
        found = entry["metrics"].get(metric or planned.cell.metric)
        value: Any = found and found.get(statistic)
        if value is not None:
            values[run.seed] = float(value)
    return values


def failed_completely(entry: Entry, planned: Planned) -> bool:
    """A run that collapsed, or that a whole paper budget left at chance. Short budgets leave good runs there too."""
    if entry["status"] != "done":
        return True
    primary = described(entry)[0]
    values = entry["metrics"].get(primary.name)
    if planned.config is None or entry["budget"] != PAPER or values is None or values["best"] is None:
        return False
    return primary.at_chance(values["best"], CHANCE)


def total_passes(entries: Iterable[Entry]) -> float:
    """A run may not know what it spent: then it is left out."""
    return math.fsum(entry["passes"] for entry in entries if math.isfinite(entry["passes"]))


def _has(entry: Entry, cell: Cell, table: Table) -> bool:
    """Whether a run gives what the cell wants; one without a validation split has no picked epoch, and did not fail."""
    return table.statistic in (entry["metrics"].get(cell.metric) or ())


def _each(passes: Iterable[float]) -> float:
    known = [spent for spent in passes if math.isfinite(spent)]
    return math.fsum(known) / len(known) if known else math.nan


def _by_seed(planned: Planned, entries: Mapping[str, Entry]) -> Iterator[tuple[int, Entry]]:
    return ((run.seed, entries[run.id]) for run in planned.runs if run.id in entries)


def hardware(entry: Entry) -> str:
    """ "2 x NVIDIA A100", or the processor and its cores."""
    gpus = entry["hardware"].get("gpus") or []
    kinds = sorted(set(gpus))
    if kinds:
        return " + ".join(f"{gpus.count(kind)} x {kind}" for kind in kinds)
    return f"{entry['hardware'].get('cpu') or 'unknown processor'}, {entry['hardware'].get('cores', '?')} cores"


def versions(entry: Entry) -> str:
    git = entry.get("git") or {}
    code = str(git.get("sha") or "no git")[:10] + (" (changed)" if git.get("dirty") else "")
    return f"torch {entry.get('packages', {}).get('torch') or '?'}, code {code}, recipe {entry['recipe_version']}"
