"""The trained runs that a study looks at: those that are named, or the cells of a table that its file names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sam_repro.errors import UserError
from sam_repro.runs.run import Run, find_run
from sam_repro.study.frame import Subject
from sam_repro.tables import spec
from sam_repro.tables.cost import cost, found_device
from sam_repro.tables.plan import Planned, plan
from sam_repro.tables.studies import Part, Study


def of_words(words: Sequence[str], results: Path) -> list[Subject]:
    """By id, the first characters of it, or folder."""
    found = []
    for word in words:
        run = Run(Path(word)) if Path(word).is_dir() else find_run(results, word)
        if not run.weights.exists():
            raise UserError(f"run={run.id} has no weights: start it again to let it go on")
        config = run.stored()
        found.append(Subject(run.id, f"{config.method.name} seed {config.seed}", run.results))
    return found


def of_cells(study: Study, part: Part, results: Path) -> list[Subject]:
    """Of every cell that the study's file names, all runs. Where one is missing: which, how to train them, and what it
    costs."""
    if part.runs is None:
        raise UserError(f"study {study.name} looks at runs: name them, run=ID or runs=[ID,ID]")
    table = spec.load(part.runs.table).at(part.runs.budget)
    by_place = {f"{p.cell.row}/{p.cell.column}": p for p in plan([table], part.runs.budget)[table.ref]}
    labels = {line.id: line.label for line in (*table.rows, *table.columns)}
    subjects, missing = list[Subject](), list[tuple[Planned, str]]()
    for place in part.runs.cells:
        if place not in by_place:
            raise UserError(f"study {study.name}: table {table.ref} has no cell {place!r}")
        planned = by_place[place]
        if not planned.runs:
            raise UserError(f"study {study.name}: {table.ref} {place}: {planned.why}; its runs: `{part.runs.command}`")
        several = len({name.split("/")[0] for name in part.runs.cells}) > 1
        label = labels[planned.cell.column]
        label = f"{labels[planned.cell.row]}, {label}" if several else label
        for run in planned.runs:
            subjects.append(Subject(run.id, label, results))
            if not Run.at(results, run.id).weights.exists():
                missing.append((planned, run.id))
    if missing:
        device = found_device()
        hours = [cost(cell.config).hours(device) for cell, _ in missing if cell.config]
        spent = f"{sum(hour for hour in hours if hour is not None):.1f}"
        names = ", ".join(run for _, run in missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise UserError(
            f"{len(missing)} of {len(subjects)} runs have no weights in {results} ({names}): train them with "
            f"`{part.runs.command}`, about {spent} hours on this {device}; or name others, runs=[ID,ID]"
        )
    return subjects
