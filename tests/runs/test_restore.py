"""A ledger that lost the line of a finished run gets it back from the run's folder."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from report.samples import ENV, epochs, write_run

from sam_repro.config.compose import compose
from sam_repro.config.schema import Config
from sam_repro.errors import UserError
from sam_repro.launch import launch
from sam_repro.runs import ledger
from sam_repro.runs.entry import entry_of
from sam_repro.runs.restore import restore
from sam_repro.runs.run import Run
from sam_repro.sweep.work import Task, missing


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Of a run that is finished, and not in the ledger."""
    config = replace(compose(["method=sam", "seed=3"]), results_dir=str(tmp_path))
    folder = Run.of(config).path
    write_run(folder, config, epochs(60.0, 3))
    (folder / "env.json").write_text(json.dumps(ENV))
    return config


def test_a_home_folder_is_found() -> None:
    assert Run.of(replace(compose(["seed=3"]), results_dir="~/x")).results == Path.home() / "x"


def test_the_line_is_the_one_that_was_lost(config: Config, tmp_path: Path) -> None:
    folder = Run.of(config).path
    summary = json.loads((folder / "summary.json").read_text())
    assert restore(Run(folder, ("method=sam", "seed=3")))
    (line,), problems = ledger.read(tmp_path)
    assert not problems
    written = {key: value for key, value in line.items() if key not in ("version", "finished")}
    assert written == entry_of(Run.of(config, ["method=sam", "seed=3"]), config, epochs(60.0, 3), summary, ENV)
    assert not restore(Run(folder))
    assert len(ledger.read(tmp_path)[0]) == 1


def test_what_was_evaluated_comes_back_too(config: Config, tmp_path: Path) -> None:
    Run.of(config).evaluations.write_text(json.dumps({"imagenet_accuracy": 71.5}))
    assert restore(Run.of(config))
    assert ledger.read(tmp_path)[0][0]["metrics"]["imagenet_accuracy"]["last"] == 71.5


def test_the_same_command_again_writes_it(config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert launch(config)[0] == 0
    assert "written again" in capsys.readouterr().out
    assert launch(config)[0] == 0
    assert "written again" not in capsys.readouterr().out
    assert len((tmp_path / ledger.FILE).read_text().splitlines()) == 1


def test_a_sweep_writes_it_too(config: Config, tmp_path: Path) -> None:
    task = Task(Run.of(config).id, "asam/2 resnet20 sam", 3, ("method=sam", "seed=3"), tmp_path)
    assert missing([task], tmp_path) == []
    assert [line["run_id"] for line in ledger.read(tmp_path)[0]] == [task.id]


@pytest.mark.parametrize("lost", ["config.yaml", "env.json", "metrics.jsonl", "summary.json"])
def test_a_folder_that_does_not_say_enough_gives_no_line(config: Config, tmp_path: Path, lost: str) -> None:
    (Run.of(config).path / lost).write_text("{")
    assert not restore(Run.of(config))
    assert ledger.read(tmp_path)[0] == []


@pytest.mark.parametrize("lost", ["config.yaml", "env.json", "metrics.jsonl"])
def test_starting_such_a_run_says_what_to_do(config: Config, tmp_path: Path, lost: str) -> None:
    """A sweep has it on its list, so that its start says so there too."""
    run = Run.of(config)
    (run.path / lost).write_text("{")
    task = Task(run.id, "asam/2 resnet20 sam", 3, ("method=sam", "seed=3"), tmp_path)
    assert missing([task], tmp_path) == [task]
    with pytest.raises(UserError, match="does not say enough to write it again: force=true trains it again"):
        launch(config)


def test_another_runs_configuration_gives_no_line(config: Config, tmp_path: Path) -> None:
    write_run(Run.of(config).path, replace(config, seed=4), epochs(60.0, 4))
    assert not restore(Run.of(config))
