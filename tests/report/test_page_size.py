"""The page with every table measured, at the paper's budget and in miniature: it stays small enough to be opened."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from report.samples import ENV, epochs

from sam_repro.files.lines import encode
from sam_repro.record.summary import summarise
from sam_repro.report import page, write
from sam_repro.runs import archive
from sam_repro.runs.entry import Entry, entry_of
from sam_repro.runs.run import Run
from sam_repro.tables import spec
from sam_repro.tables.plan import PAPER, Planned, plan
from sam_repro.tables.table import MINI, Table
from sam_repro.tasks.classification.declared import of_images

EPOCHS = 120


def ended(cells: Sequence[Planned], results: Path, draw: random.Random) -> Iterator[Entry]:
    """A line of every planned run, and its curve."""
    for planned in cells:
        top = planned.cell.claim.mean or draw.uniform(40, 95)
        for run in planned.runs if planned.config else []:
            config = replace(planned.config, seed=run.seed)
            records = epochs(top + draw.gauss(0, 0.3), run.seed, EPOCHS)
            summary = summarise(
                records, "done", metrics=of_images(config.dataset.classes), passes=1000.0, wall_seconds=60.0
            )
            archive.path(results, run.id).write_bytes(gzip.compress("".join(map(encode, records)).encode(), 1, mtime=0))
            yield entry_of(Run.of(config, run.overrides), config, records, summary, ENV)


def whole(results: Path) -> tuple[str, int]:
    """The page of a ledger with every run that the tables plan, and how many these are."""
    tables: list[Table] = spec.load_all()
    planned = {budget: plan([t for one in tables for t in one.with_trials(budget)], budget) for budget in (PAPER, MINI)}
    (results / archive.FOLDER).mkdir()
    draw = random.Random(1)
    lines = {
        entry["run_id"]: entry
        for cells in planned.values()
        for of_table in cells.values()
        for entry in ended(of_table, results, draw)
    }
    found = write.joined(tables, planned, lines, results)
    return page.render(found, lines, results), len(lines)


@pytest.mark.slow  # 1,268 runs of 120 epochs: 15 s
def test_the_page_with_every_table_measured_is_below_a_megabyte(tmp_path: Path) -> None:
    text, runs = whole(tmp_path)
    assert runs > 1_000
    assert text.count('class="curves"') > 30, "drawn, with curves"
    assert len(text.encode()) < 1_000_000
