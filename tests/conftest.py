"""What all tests share: one thread a process, and the command line as a user types it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from commands import Cli, command

os.environ["OMP_NUM_THREADS"] = "1"
os.environ.pop("RANK", None)


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
