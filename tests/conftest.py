"""What all tests share: one thread a process, and the command line as a user types it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ["OMP_NUM_THREADS"] = "1"
os.environ.pop("RANK", None)

ROOT = Path(__file__).parents[1]
# A run that ends in seconds: everything small, nothing tracked, one thread, fp32.
TINY = [
    "model.width=4", "budget.train_images=64", "budget.test_images=64", "budget.max_epochs=2", "loop.batch_size=16",
    "loop.eval_batch=64", "track=none", "track.every=1", "runtime.threads=1", "runtime.precision=fp32",
]  # fmt: skip

Cli = Callable[..., subprocess.CompletedProcess[str]]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "sam_repro", *arguments]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Run `python -m sam_repro ARGUMENTS` in an empty folder."""

    def run(
        *arguments: str, env: dict[str, str] | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*arguments),
            cwd=tmp_path,
            env=os.environ | (env or {}),
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run
