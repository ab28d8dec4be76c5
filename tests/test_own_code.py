"""A model from the user's own package, outside the project, trained and read again by the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import TINY, command

NETS = """
from torch import nn

def tiny(classes, image_size):
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * image_size**2, classes))

def odd(classes, image_size):
    return classes

number = 3
"""
OWN = ["model=own", "dataset=synthetic", "model.name=mypkg.nets:tiny", *(w for w in TINY if "width" not in w)]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere" / "mypkg"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "nets.py").write_text(NETS, encoding="utf-8")
    (folder / "broken.py").write_text("import nothing_of_this_name\n", encoding="utf-8")
    (tmp_path / "here").mkdir()
    return folder


def run(package: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return start(package, command(*words))


def read(package: Path, name: str) -> subprocess.CompletedProcess[str]:
    script = f"import sam_repro; print(type(sam_repro.open_run({name!r}).model('last')).__name__)"
    return start(package, [sys.executable, "-c", script])


def start(package: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(package.parent), str(Path(__file__).parents[1])])
    return subprocess.run(
        words, cwd=package.parents[1] / "here", env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def ids(package: Path) -> set[str]:
    return {folder.name for folder in (package.parents[1] / "here/results/runs").iterdir()}


def test_a_model_of_ones_own_is_trained_on_two_ranks_and_read_again(package: Path) -> None:
    done = run(package, *OWN, "runtime.ranks=2")
    assert done.returncode == 0, done.stderr
    (name,) = ids(package)
    opened = read(package, name)
    assert opened.stdout == "Sequential\n", opened.stderr

    nets = package / "nets.py"
    nets.write_text(NETS + "# edited\n", encoding="utf-8")
    told = read(package, name)
    assert told.returncode != 0
    assert f"model.name=mypkg.nets:tiny: {nets} was edited since the run was made: put it back" in told.stderr
    assert run(package, *OWN, "runtime.ranks=2").returncode == 0
    assert len(ids(package)) == 2

    nets.write_text(NETS, encoding="utf-8")
    assert run(package, *OWN, "runtime.ranks=2").returncode == 0
    assert len(ids(package)) == 2, "put back, it is the first run again"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mypkg.net:tiny", "there is no module mypkg.net on Python's path: put its folder on PYTHONPATH"),
        ("nopkg.nets:tiny", "there is no module nopkg.nets (No module named 'nopkg'): put its folder on PYTHONPATH"),
        ("mypkg.broken:tiny", "mypkg.broken can't be imported (ModuleNotFoundError: No module named 'nothing_of_this"),
        ("mypkg.nets:tinny", "nets.py has no tinny. Did you mean 'tiny'?"),
        ("mypkg.nets:number", "is not callable, but a int: name a function or a class"),
        ("mypkg.nets:odd", "returns a int: it must return an nn.Module"),
        ("tiny", "must be package.module:attribute for own, is 'tiny'"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(package: Path, name: str, message: str) -> None:
    told = run(package, *OWN, f"model.name={name}")
    assert told.returncode == 2, told.stderr
    assert message in told.stderr
    assert told.stderr.startswith("error: model.name")
    assert told.stderr.count("\n") == 1
    if name != "mypkg.nets:odd":
        assert not list((package.parents[1] / "here").iterdir())
