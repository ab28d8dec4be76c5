"""The trained runs that a study looks at: those that are named, or the cells of a table that its file names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sam_repro.errors import UserError
from sam_repro.runs import archive, compare
from sam_repro.runs.run import Run, find_run
from sam_repro.study.frame import RECORDS, Subject
from sam_repro.tables import spec
from sam_repro.tables.cost import cost, found_device
from sam_repro.tables.plan import Planned, plan
from sam_repro.tables.studies import Part, Study


def of_words(words: Sequence[str], results: Path, wants: str) -> list[Subject]:
    """By id, its first characters, or folder. Runs that differ in their seed alone have one label and one mean."""
    if not all(words) or not words:
        raise UserError("runs: name them, as in run=<id> or 'runs=[<id>,<id>]'; `sam-repro runs list` has them")
    runs = [Run(Path(word)) if Path(word).is_dir() else find_run(results, word) for word in words]
    for run in runs:
        if not _there(run, wants):
            raise UserError(f"run={run.id} has no {wants}: start it again to let it go on")
    labels = compare.labels([compare.of_folder(run) for run in runs], seeds=False)
    return [Subject(run.id, label, run.results) for run, label in zip(runs, labels, strict=True)]


def of_cells(study: Study, part: Part, results: Path, wants: str) -> list[Subject]:
    """Of every cell that the study's file names, all runs. Where one is missing: which, how to train them, and what it
    costs."""
    if part.runs is None:
        raise UserError(f"study {study.name} looks at runs: name them, run=ID or runs=[ID,ID]")
    table = spec.load(part.runs.table).at(part.runs.budget)
    by_place = {f"{p.cell.row}/{p.cell.column}": p for p in plan([table], part.runs.budget)[table.ref]}
    labels = {line.id: line.label for line in (*table.rows, *table.columns)}
    places = part.runs.cells or tuple(by_place)
    several = len({name.split("/")[0] for name in places}) > 1
    subjects, missing = list[Subject](), list[tuple[Planned, str]]()
    for place in places:
        if place not in by_place:
            raise UserError(f"study {study.name}: table {table.ref} has no cell {place!r}")
        planned = by_place[place]
        if not planned.runs:
            raise UserError(f"study {study.name}: {table.ref} {place}: {planned.why}; its runs: `{part.runs.command}`")
        row, column = planned.cell.row, planned.cell.column
        label = f"{labels[row]}, {labels[column]}" if several else labels[column]
        for run in planned.runs:
            subjects.append(Subject(run.id, label, results, row, column))
            if not _there(Run.at(results, run.id), wants):
                missing.append((planned, run.id))
    if missing:
        device = found_device()
        hours = [cost(cell.config).hours(device) for cell, _ in missing if cell.config]
        spent = f"{sum(hour for hour in hours if hour is not None):.1f}"
        names = ", ".join(run for _, run in missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise UserError(
            f"{len(missing)} of {len(subjects)} runs have no {wants} in {results} ({names}): train them with "
            f"`{part.runs.command}`, about {spent} hours on this {device}; or name others, runs=[ID,ID]"
        )
    return subjects


def _there(run: Run, wants: str) -> bool:
    """A curve that was kept says what a run recorded, wherever it was trained."""
    if wants == RECORDS:
        return run.done.exists() or archive.path(run.results, run.id).exists()
    return run.weights.exists()
