"""Tiny trained runs that all studies are tried on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from commands import TINY, command


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with four runs, two rates by two weight decays, that kept the weights of both epochs."""
    results = tmp_path_factory.mktemp("trained")
    varied = ["base_optimizer.lr=0.01,0.1", "base_optimizer.weight_decay=0.0,0.01"]
    words = ["-m", "method=plain", *TINY, *varied, "loop.keep_every=1", "loop.probe_steps=2", f"results_dir={results}"]
    done = subprocess.run(command(*words), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list((results / "runs").iterdir())) == 4
    return results
