"""An installed wheel is complete: configs, embedded data, console script, every command; a package beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from commands import ROOT, TINY
from test_own_code import ELSEWHERE, EVERYTHING

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the wheel is installed, and a package of the user's beside it."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "sam_repro/configs/config.yaml" in names
    assert "sam_repro/models/cost.json" in names
    subprocess.run([*pip, "install", "--no-deps", "--target", str(folder / "site"), str(wheel)], check=True)
    shutil.copytree(ELSEWHERE / "mypkg", folder / "site" / "mypkg")
    return folder / "site"


def call(site: Path, work: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The console script, outside the checkout."""
    env = os.environ | {"PYTHONPATH": str(site)}
    script = [str(site / "bin" / "sam-repro"), *words]
    return subprocess.run(script, cwd=work, env=env, capture_output=True, text=True, timeout=300)


def test_a_run_from_an_installed_wheel(site: Path, tmp_path: Path) -> None:
    where = [sys.executable, "-c", "import sam_repro; print(sam_repro.__file__)"]
    env = os.environ | {"PYTHONPATH": str(site)}
    found = subprocess.run(where, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(site)), "the checkout was tested, not the wheel"
    done = call(site, tmp_path, *TINY)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "results" / "runs").iterdir()
    assert json.loads((run / "summary.json").read_text())["status"] == "done"
    listed = call(site, tmp_path, "runs", "list")
    assert run.name in listed.stdout, listed.stderr


def test_a_package_beside_the_wheel_is_found(site: Path, tmp_path: Path) -> None:
    done = call(site, tmp_path, *EVERYTHING, "budget.max_epochs=1")
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "results" / "runs").iterdir()
    assert "direction: mypkg.methods:WithLast@" in (run / "config.yaml").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--help", "usage: sam-repro"),
        ("train --help", "usage: sam-repro"),
        ("train --cfg job", "method:"),
        ("evaluate --help", "sam-repro evaluate run="),
        ("sweep --help", "sam-repro sweep"),
        ("sweep table=asam/2 budget=mini dry", "error: "),
        ("report list", "asam/2"),
        ("report status asam/2 budget=mini", "missing"),
        ("report plan asam/2 budget=mini", "passes"),
        ("report discrepancies asam/2", "asam"),
        ("study --help", "sam-repro study"),
        ("bench --help", "sam-repro bench"),
        ("fetch --help", "sam-repro fetch"),
        ("runs list", "status"),
    ],
)
def test_every_command_works_or_says_why_not(site: Path, tmp_path: Path, words: str, told: str) -> None:
    done = call(site, tmp_path, *words.split())
    assert told in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or (done.returncode == 2 and done.stderr.count("\n") == 1), done.stderr
