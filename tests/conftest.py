"""What all tests share: one thread a process, the command line as a user types it, a real full disk."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Cli, command, disk_of
from nursery import Nursery

os.environ["OMP_NUM_THREADS"] = "1"
os.environ.pop("RANK", None)


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests leave nothing in the user's own cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with Nursery() as process:
        yield process


@pytest.fixture
def cli(tmp_path: Path, nursery: Nursery) -> Cli:
    """Run `python -m sam_repro ARGUMENTS` in an empty folder: a fresh Python where it has its own `env`."""

    def run(
        *arguments: str, env: dict[str, str] | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        if env is None:
            return nursery.call(tmp_path, *arguments, timeout=timeout)
        return subprocess.run(
            command(*arguments),
            cwd=tmp_path,
            env=os.environ | env,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with disk_of(tmp_path / "small_disk", "64k"):
        yield tmp_path / "small_disk"
