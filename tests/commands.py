"""The command line as tests use it, and what they do with its processes and on a full disk."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

ROOT = Path(__file__).parents[1]
# A run that ends in seconds: everything small, nothing tracked, one thread, fp32.
TINY = [
    "model.width=4", "budget.train_images=64", "budget.test_images=64", "budget.max_epochs=2", "loop.batch_size=16",
    "loop.eval_batch=64", "track=none", "track.every=1", "runtime.threads=1", "runtime.precision=fp32",
]  # fmt: skip

Cli = Callable[..., subprocess.CompletedProcess[str]]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "sam_repro", *arguments]


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 60) -> None:
    """Until it holds, while the process lives."""
    ends = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < ends, "it took too long"
        time.sleep(0.005)


class Hang(BaseException):
    """No `except Exception` on the way takes it for a mishap that it knows."""


@contextmanager
def within(seconds: float, what: object) -> Iterator[None]:
    """Red instead of waiting for ever, as for the writer of a pipe. `what` is named."""

    def late(number: int, frame: FrameType | None) -> None:
        raise Hang(f"more than {seconds} s: {what}")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def disk_of(folder: Path, size: str) -> Iterator[None]:
    """A real file system of that size at the folder, which fills. Needs the right to mount one."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def hydras(*arguments: str, rounds: int = 3) -> float:
    """CPU time as a multiple of what importing Hydra takes, about 0.1 s on an idle core: the best of several."""
    measured = [(cpu_seconds(*arguments), cpu_seconds("-c", "import hydra, omegaconf")) for _ in range(rounds + 1)]
    ours, imports = zip(*measured[1:], strict=True)  # the first may have to compile modules
    return float(min(ours) / min(imports))


def cpu_seconds(*arguments: str) -> float:
    """Of a fresh Python with these arguments: what it takes on an idle machine, however busy this one is."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "Traceback" not in done.stderr, done.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
