"""`sam-repro runs`: listed, compared, exported, removed."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from report.samples import made

from sam_repro.runs import ledger
from sam_repro.runs.__main__ import main
from sam_repro.runs.lease import Watch


def run(*words: str, results: Path, code: int = 0) -> None:
    assert main([*words, f"results_dir={results}"]) == code


def test_a_list_tells_its_runs_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = [made(tmp_path, *o).id for o in (["method=sam"], ["method=sam", "base_optimizer.lr=0.01"], ["method=asam"])]
    run("list", "method=sam", results=tmp_path)
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["run", "status"]
    assert [line.split()[0] for line in lines] == ids[:2]
    assert "sam, lr=0.1 " in lines[0]
    assert "sam, lr=0.01 " in lines[1]
    assert all("done" in line and "60.00" not in head for line in lines)
    run("list", "method=sam", "--format", "md", results=tmp_path)
    assert capsys.readouterr().out.count("\n|") == 3
    run("list", "--format", "tex", results=tmp_path)
    assert "test accuracy, best" in capsys.readouterr().out


def test_exports_hold_every_fact_in_the_same_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path, "method=sam")
    made(tmp_path, "method=asam", "seed=1")
    (tmp_path / "runs" / "empty").mkdir()
    run("export", results=tmp_path)
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    run("export", "--format", "json", "--out", str(tmp_path / "runs.json"), results=tmp_path)
    told = json.loads((tmp_path / "runs.json").read_text())
    assert [row["run"] for row in rows] == [row["run"] for row in told]
    assert list(rows[0]) == list(told[0]) == list(told[2])
    assert (rows[0]["test_accuracy_best"], told[0]["test_accuracy_best"]) == ("60.0", 60.0)
    assert (told[2]["status"], told[2]["test_accuracy_best"]) == ("missing", None)
    run("export", "method=lpf_sgd", results=tmp_path)
    assert capsys.readouterr().out.strip() == "label,run"


def test_what_differs_is_a_line_a_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = made(tmp_path, "method=sam"), made(tmp_path, "method=sam", "base_optimizer.lr=0.01", top=70.0)
    run("diff", one.id[:8], other.id, results=tmp_path)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == [one.id, other.id]
    assert lines[1] == ["base_optimizer.lr", "0.1", "0.01"]
    assert ["test_accuracy", "best", "60", "70"] in lines
    run("show", one.id, results=tmp_path)
    assert "method.rho" in capsys.readouterr().out


def test_removing_asks_and_leaves_the_ledger_and_whoever_trains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = made(tmp_path, "method=sam"), made(tmp_path, "method=asam")
    before = (tmp_path / ledger.FILE).read_bytes()
    run("remove", one.id, results=tmp_path, code=2)
    assert "say --yes" in capsys.readouterr().err
    assert one.path.is_dir()
    run("remove", one.id, "--yes", results=tmp_path)
    assert not one.path.exists()
    assert other.path.is_dir()
    assert (tmp_path / ledger.FILE).read_bytes() == before
    other.done.unlink()  # as with force=true: the ledger has its result, and it is being trained again
    assert Watch().acquire(other) is not None
    run("remove", other.id, "--yes", results=tmp_path, code=2)
    assert "is being trained" in capsys.readouterr().err
    assert other.path.is_dir()


def test_a_link_is_removed_and_not_what_it_points_to(tmp_path: Path) -> None:
    one = made(tmp_path, "method=sam")
    elsewhere = tmp_path / "elsewhere"
    one.path.rename(elsewhere)
    one.path.symlink_to(elsewhere)
    run("remove", one.id, "--yes", results=tmp_path)
    assert not one.path.is_symlink()
    assert (elsewhere / "weights").parent.is_dir()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["lst"], "Did you mean 'list'"),
        (["remove"], "name the runs to remove"),
        (["show", "abc"], "abc names no run"),
        (["list", "methd=sam"], "Did you mean 'method'"),
        (["list", "--format", "html"], "there are csv, json, md, tex"),
        (["show", "status=failed"], "no run in"),
        (["list", "--yes"], "--yes is no flag of runs list"),
        (["list", "status=finishd"], "status=finishd"),
        (["list", "seed=x"], "seed=x is no whole number"),
        (["show", ""], "an empty word names no run"),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    run(*words, results=tmp_path, code=2)
    err = capsys.readouterr().err
    assert expected in err
    assert err.count("\n") == 1
