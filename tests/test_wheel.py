"""An installed wheel is complete: configs, embedded data, console script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from commands import ROOT, TINY

pytestmark = pytest.mark.slow


def test_a_run_from_an_installed_wheel(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "sam_repro/configs/config.yaml" in names
    assert "sam_repro/models/cost.json" in names
    site, work = tmp_path / "site", tmp_path / "work"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(wheel)], check=True)
    work.mkdir()
    env = os.environ | {"PYTHONPATH": str(site)}
    where = "import sam_repro; print(sam_repro.__file__)"
    found = subprocess.run([sys.executable, "-c", where], cwd=work, env=env, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(site)), "the checkout was tested, not the wheel"
    script = [str(site / "bin" / "sam-repro"), *TINY]
    done = subprocess.run(script, cwd=work, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (run,) = (work / "results" / "runs").iterdir()
    assert json.loads((run / "summary.json").read_text())["status"] == "done"
