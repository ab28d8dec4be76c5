"""The command line as tests use it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
# A run that ends in seconds: everything small, nothing tracked, one thread, fp32.
TINY = [
    "model.width=4", "budget.train_images=64", "budget.test_images=64", "budget.max_epochs=2", "loop.batch_size=16",
    "loop.eval_batch=64", "track=none", "track.every=1", "runtime.threads=1", "runtime.precision=fp32",
]  # fmt: skip

Cli = Callable[..., subprocess.CompletedProcess[str]]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "sam_repro", *arguments]
