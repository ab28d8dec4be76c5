"""What this machine has, as far as a process may use it. Imports no torch."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path


def cores() -> int:
    """That this process may run on: a job's share, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def has_gpus() -> bool:
    """Whether the system shows a device that CUDA or ROCm could use."""
    return any(True for name in ("nvidia[0-9]*", "kfd", "dxg") for _ in Path("/dev").glob(name))


def gpu_name() -> str | None:
    """Of the first NVIDIA GPU, as its driver says it."""
    for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        with suppress(OSError):
            found = dict(line.partition(":")[::2] for line in file.read_text(encoding="utf-8").splitlines())
            return found.get("Model", "").strip() or None
    return None


def cpu() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, None) or platform.processor() or platform.machine() or None
