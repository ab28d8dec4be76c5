"""The table and the picture of a few runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import ROOT
from report.samples import epochs, write_run

from sam_repro.config.compose import compose
from sam_repro.errors import UserError
from sam_repro.report import demo


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    found = []
    for number, overrides in enumerate(
        (["method=plain"], ["method=sam", "method.rho=0.2"], ["method=asam", "method.rho=2"])
    ):
        found.append(tmp_path / f"run{number}")
        write_run(found[-1], compose(overrides), epochs(60.0 + 5 * number, number))
    return found


def test_table_and_pictures(folders: list[Path], tmp_path: Path) -> None:
    table, paths = demo.write(folders, tmp_path / "out")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()]
    assert [row[0] for row in rows[2:]] == ["SGD", "SAM (ρ = 0.2)", "ASAM (ρ = 2)"]
    assert [row[2] for row in rows[2:]] == ["60.00", "65.00", "70.00"]
    assert all(float(row[1]) < float(row[2]) for row in rows[2:]), "the last epoch is not the best"
    assert [path.name for path in paths] == ["demo.md", "curves.png", "curves.svg"]
    assert paths[1].read_bytes().startswith(b"\x89PNG")
    svg = paths[2].read_text()
    assert set(re.findall(r">([^<>]*ρ = [^<>]*)<", svg)) == {"SAM (ρ = 0.2)", "ASAM (ρ = 2)"}
    assert paths[0].read_text().startswith(table)


def test_a_mistake_of_the_script_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "demo.py"), "budgett=smoke"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: budgett")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("override", ["method=fsam", "++method=fsam", "~method"])
def test_an_override_of_the_compared_methods_is_refused(tmp_path: Path, override: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "demo.py"), "budget=smoke", override],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {override}: the demo compares plain, sam_demo, asam_demo")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_same_runs_same_bytes(folders: list[Path], tmp_path: Path) -> None:
    first = [path.read_bytes() for path in demo.write(folders, tmp_path / "a")[1]]
    second = [path.read_bytes() for path in demo.write(folders, tmp_path / "b")[1]]
    assert first == second


def test_seeds_tell_runs_of_one_method_apart(tmp_path: Path) -> None:
    for seed in (0, 1):
        write_run(tmp_path / str(seed), compose(["method=sam", f"seed={seed}"]), epochs(70.0, seed))
    table, _ = demo.write([tmp_path / "0", tmp_path / "1"], tmp_path / "out")
    assert ", seed 0" in table
    assert ", seed 1" in table


def test_what_differs_tells_runs_of_one_method_apart(tmp_path: Path) -> None:
    for lr in ("0.1", "0.2"):
        overrides = ["method=sam", f"base_optimizer.lr={lr}", f"dataset.root=/data/{lr}"]
        write_run(tmp_path / lr, compose(overrides), epochs(70.0, 0))
    table, _ = demo.write([tmp_path / "0.1", tmp_path / "0.2"], tmp_path / "out")
    assert [row.split("|")[1].strip() for row in table.splitlines()[2:4]] == [
        "SAM (ρ = 0.05), lr 0.1",
        "SAM (ρ = 0.05), lr 0.2",
    ]


def test_a_collapsed_run_is_shown_as_such(folders: list[Path], tmp_path: Path) -> None:
    collapsed = tmp_path / "collapsed"
    write_run(collapsed, compose(["method=fsam"]), [{"kind": "event", "name": "collapsed", "step": 7}], "collapsed")
    table, _ = demo.write([*folders, collapsed], tmp_path / "out")
    assert "(collapsed)" in table


def test_a_folder_without_a_run_is_a_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no finished run"):
        demo.write([tmp_path], tmp_path / "out")
