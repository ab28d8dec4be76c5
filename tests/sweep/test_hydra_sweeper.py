"""Sweepers of Hydra's get what a run came to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from commands import TINY, Cli

from sam_repro.record.folder import RunFolder
from sam_repro.runs.outcome import objective
from sam_repro.tasks.classification.declared import of_images
from sam_repro.tasks.described import recorded

SUMMARY = {
    "status": "done", "last": {"test_accuracy": 61.5}, "best": {"test_accuracy": 64.0, "epoch": 3},
    "collapsed_step": 7, "described": recorded(of_images(10)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("summary", "value"), [(SUMMARY, 61.5), (SUMMARY | {"status": "collapsed", "last": None}, 10.0), ({}, None)]
)
def test_the_objective_is_the_primary_metric_at_the_last_epoch(
    summary: dict, value: float | None, tmp_path: Path
) -> None:
    run = RunFolder(tmp_path)
    run.summary.write_text(json.dumps(summary))
    assert objective(run) is None, "it has not ended"
    run.done.touch()
    assert objective(run) == value


@pytest.mark.slow
def test_optuna_searches_over_rho(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="make install has hydra-optuna-sweeper")
    words = [
        "-m", *TINY, "hydra/sweeper=optuna", "hydra/sweeper/sampler=random", "hydra.sweeper.sampler.seed=3",
        "hydra.sweeper.direction=maximize", "hydra.sweeper.n_trials=4", "hydra.sweeper.n_jobs=1",
        "method.rho=tag(log, interval(0.01, 10))",
    ]  # fmt: skip
    done = cli(*words)
    assert done.returncode == 0, done.stderr
    found = {}
    for folder in (tmp_path / "results" / "runs").iterdir():
        run = RunFolder(folder)
        rho = yaml.safe_load(run.config.read_text())["method"]["rho"]
        found[rho] = json.loads(run.summary.read_text())["last"]["test_accuracy"]
    assert len(found) == 4
    assert len(set(found.values())) > 1
    results = yaml.safe_load((tmp_path / "results" / "multirun" / "optimization_results.yaml").read_text())
    assert results["best_value"] == max(found.values())
    assert found[results["best_params"]["method.rho"]] == max(found.values())

    again = cli(*words)
    assert again.stdout.count("already done") == 4, again.stdout + again.stderr
    wrong = cli("-m", *TINY, *words[-7:-1], "method.rho=choice(-1)")
    assert wrong.returncode == 2
    assert wrong.stderr.count("error: method.rho must be") == 4
    assert "Traceback" not in wrong.stderr
