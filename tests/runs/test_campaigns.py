"""Accidents by the hundred to what is stored: one line or a named warning, no traceback, no wrong number unsaid."""

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from commands import within
from damage import damaged
from report.samples import cell, finish

from sam_repro.errors import UserError
from sam_repro.report import render_md
from sam_repro.runs import ledger
from sam_repro.runs.faults import usable
from sam_repro.runs.verify import check
from sam_repro.tables import spec
from sam_repro.tables.plan import plan
from sam_repro.tables.results import join

pytestmark = pytest.mark.slow


def used(results: Path) -> tuple[dict[str, Any], list[str]]:
    """The lines that tables are made of, and what was said of the others."""
    found, problems = ledger.read(results)
    entries, faults = usable(found)
    return {entry["run_id"]: entry for entry in entries}, problems + faults


@pytest.mark.parametrize("seed", range(3))
def test_damaged_ledgers(tmp_path: Path, seed: int) -> None:
    table = spec.load("asam/6")
    planned = plan([table])["asam/6"]
    finish(tmp_path / "good", cell(planned, "0", "sgd"), {0: 94.0, 1: 93.5})
    finish(tmp_path / "good", cell(planned, "0", "sam"), {0: 95.0})
    content = (tmp_path / "good" / ledger.FILE).read_bytes()
    good, _ = used(tmp_path / "good")
    assert len(good) == 3
    for case in range(250):
        with within(20, f"seed {seed}, case {case}"):
            chance = random.Random(1000 * seed + case)
            results, mine = tmp_path / f"{case}", tmp_path / f"mine{case}"
            for folder in (results, mine):
                folder.mkdir()
            (results / ledger.FILE).write_bytes(damaged(content, chance))
            (mine / ledger.FILE).write_bytes(content)
            try:
                entries, said = used(results)
            except UserError as error:
                entries, said = {}, [str(error)]
            lost = entries != good
            # A cut between two lines leaves a shorter ledger that is whole; nothing can tell.
            whole = content.startswith((results / ledger.FILE).read_bytes())
            assert not lost or said or whole, f"seed {seed}, case {case}: a changed result, and nobody says so"
            assert all("\n" not in text for text in said), case
            if case % 5 == 0:
                render_md.render(join(table, planned, entries, "paper", results))
                assert all(finding.text.isprintable() for finding in check(list(entries.values()), results)), case
            with suppress(UserError):  # of a line that a later version wrote, as it says
                ledger.merge(mine, results / ledger.FILE)
            after, _ = used(mine)
            assert {run: after[run] for run in good} == good, f"seed {seed}, case {case}: an import changed one's own"
