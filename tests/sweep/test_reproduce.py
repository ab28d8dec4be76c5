"""A committed row trained again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import ROOT

from sam_repro.errors import UserError
from sam_repro.runs import archive
from sam_repro.sweep.reproduce import reproduce

TINY = [
    "dataset=embedded", "model=resnet8", "model.width=4", "track=none", "track.every=1", "budget.train_images=64",
    "budget.test_images=64", "budget.seeds=3", "runtime.threads=1", "runtime.precision=fp32",
]  # fmt: skip


@pytest.mark.slow
def test_the_same_bits_or_the_same_draw_or_neither(tmp_path: Path) -> None:
    sweep = [sys.executable, str(ROOT / "scripts" / "sweep.py"), "asam/2", "budget=smoke", "cells=resnet20/*", *TINY]
    subprocess.run(sweep, cwd=tmp_path, check=True, capture_output=True, timeout=240)
    committed = tmp_path / "results"
    row = ("asam/2", "resnet20", "smoke", TINY)
    found = reproduce(*row, committed, tmp_path / "again")
    assert [one.task.cell for one in found] == [f"asam/2 resnet20 {column}" for column in ("sgd", "sam", "asam")]
    assert all(one.same_bits and one.holds for one in found)

    # Without its curve nobody can tell bits, and the number has to lie among the committed ones.
    first = found[0].task.id
    archive.path(committed, first).unlink()
    again = reproduce(*row, committed, tmp_path / "again")
    assert not again[0].same_bits
    assert again[0].interval is not None
    assert again[0].holds

    lines = (committed / "ledger.jsonl").read_text().splitlines()
    moved = [json.loads(line) for line in lines]
    for entry in moved:
        if entry["run_id"] == first:
            entry["metrics"]["test_accuracy"]["last"] = 99.0
            entry.pop("check", None)
    for run in {one.task.id for one in found}:
        archive.path(committed, run).unlink(missing_ok=True)
    (committed / "ledger.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in moved))
    assert reproduce(*row, committed, tmp_path / "again")[0].committed == 99.0


def test_a_row_without_runs_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no first seed in"):
        reproduce("asam/2", "resnet20", "smoke", TINY, tmp_path, tmp_path / "again")
