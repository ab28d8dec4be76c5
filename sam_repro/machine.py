"""What this machine has, as far as a process may use it. Imports no torch."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def cores() -> int:
    """That this process may run on: a job's share, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def has_gpus() -> bool:
    """Whether the system shows a device that CUDA or ROCm could use."""
    return any(True for name in ("nvidia[0-9]*", "kfd", "dxg") for _ in Path("/dev").glob(name))


def cpu() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, None) or platform.processor() or platform.machine() or None
