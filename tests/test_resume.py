"""An interrupted run whose folder was altered meanwhile: one line, nothing written, and force starts it anew."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import torch
from commands import TINY, Cli
from nursery import Nursery

LONG = [*TINY, "schedule.epochs=3000", "budget.max_epochs=3000", "runtime.checkpoint_steps=3"]


def digit(run: Path) -> None:
    """Another loss in metrics.jsonl, as well formed as before."""
    log = run / "metrics.jsonl"
    text = log.read_text()
    found = re.search(r'"loss": \d\.(\d)', text)
    assert found is not None
    place = found.start(1)
    log.write_text(f"{text[:place]}{(int(text[place]) + 1) % 10}{text[place + 1 :]}")


def signed(change: Callable[[dict[str, object]], object]) -> Callable[[Path], None]:
    """Another state under a manifest that vouches for it."""

    def alter(run: Path) -> None:
        for folder in (run / "checkpoints").iterdir():
            share = torch.load(folder / "rank0.pt", weights_only=True)
            change(share)
            torch.save(share, folder / "rank0.pt")
            manifest = json.loads((folder / "manifest.json").read_text())
            manifest["files"]["rank0.pt"] = hashlib.sha256((folder / "rank0.pt").read_bytes()).hexdigest()
            (folder / "manifest.json").write_text(json.dumps(manifest))

    return alter


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a digit of a loss": (digit, "the file was altered"),
    "progress as a list": (signed(lambda share: share.update(progress=[1])), "is no checkpoint of this run"),
    "the optimizer of another": (
        signed(lambda share: share.update(optimizer={"state": {0: {"step": 3}}})),
        "is no checkpoint of this run",
    ),
}


def test_an_altered_interrupted_run_is_refused_in_one_line_and_force_starts_it_anew(
    tmp_path: Path, cli: Cli, nursery: Nursery
) -> None:
    process = nursery.start(tmp_path, *LONG)
    while not list(tmp_path.glob("results/runs/*/checkpoints/*/manifest.json")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.terminate()
    assert process.wait(timeout=60) == 75
    (run,) = (tmp_path / "results" / "runs").iterdir()
    whole = tmp_path / "whole"
    shutil.copytree(run, whole)
    for change, (alter, message) in CHANGES.items():
        shutil.rmtree(run)
        shutil.copytree(whole, run)
        alter(run)
        before = {f: f.stat().st_mtime_ns for f in run.rglob("*") if not f.name.startswith("lease.")}
        done = cli(*LONG)
        assert done.returncode == 2, (change, done.stderr)
        assert message in done.stderr, change
        assert "retrain with force=true" in done.stderr
        assert done.stderr.count("\n") == 1, change
        assert {f: f.stat().st_mtime_ns for f in run.rglob("*") if not f.name.startswith("lease.")} == before, change
    process = nursery.start(tmp_path, *LONG, "force=true")
    while "started_anew" not in ((run / "events.jsonl").read_text() if (run / "events.jsonl").exists() else ""):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.terminate()
    assert process.wait(timeout=60) == 75


def test_a_run_that_skipped_every_step_has_collapsed(tmp_path: Path, cli: Cli) -> None:
    """Its losses are real, none is 0.0, and nothing was learnt: the loss scale had no time to come down."""
    steps = ["budget.max_epochs=1", "budget.max_steps=2", "runtime.precision=fp16", "augment.label_smoothing=0"]
    done = cli(*TINY, *steps, "dataset.std=[1e-6,1e-6,1e-6]")
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "results" / "runs").iterdir()
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [r["name"] for r in records if r["kind"] == "event"] == ["skipped", "skipped", "collapsed"]
    assert all(r["loss"] is None or r["loss"] > 0 for r in records if r["kind"] == "step")
    assert json.loads((run / "summary.json").read_text())["status"] == "collapsed"
