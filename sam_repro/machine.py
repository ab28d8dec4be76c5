"""What this machine has, as far as a process may use it. Imports no torch."""

from __future__ import annotations

import math
import os
import platform
import re
from contextlib import suppress
from pathlib import Path

SHARE = "SAM_REPRO_CORES"  # told to a run by who starts several on this machine


def cores() -> int:
    """That this process may keep busy: of its affinity, its container's quota, its job's share the least."""
    mask = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # Slurm need not bind a job to the cores that it grants.
    shares = [int(text) for name in (SHARE, "SLURM_CPUS_PER_TASK") if (text := os.environ.get(name, "")).isdecimal()]
    return max(1, min([mask, quota(), *shares]))


def quota(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int:
    """Cores' worth of time that this process' control groups allow: of its own and of those above the least."""
    found = [1 << 20]
    with suppress(OSError):
        for line in proc.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            mount = root if not controllers else root / "cpu"
            if controllers and "cpu" not in controllers.split(","):
                continue
            inside = mount / path.lstrip("/")
            # Inside a container the path may be the machine's, and the mount be of this group alone.
            for folder in (inside, *inside.parents):
                if folder.is_relative_to(mount):
                    found += _limit(folder)
    return min(found)


def _limit(group: Path) -> list[int]:
    """Of the second version of control groups, or of the first."""
    with suppress(OSError, ValueError):
        if (file := group / "cpu.max").exists():
            time, period = file.read_text().split()
        else:
            time, period = ((group / f"cpu.cfs_{what}_us").read_text() for what in ("quota", "period"))
        return [math.ceil(int(time) / int(period))] if time != "max" and int(time) > 0 else []
    return []


def several_tasks() -> bool:
    """Whether srun started this process as one of several tasks that know nothing of each other."""
    return "RANK" not in os.environ and os.environ.get("SLURM_STEP_NUM_TASKS", "1") != "1"


def granted_gpus() -> bool:
    """Whether Slurm has given GPUs to this job."""
    given = (os.environ.get(name, "") for name in ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE"))
    return any(text not in ("", "0") for text in given)


def has_gpus() -> bool:
    """Whether the system shows a device that CUDA or ROCm could use."""
    return any(True for name in ("nvidia[0-9]*", "kfd", "dxg") for _ in Path("/dev").glob(name))


def gpus() -> int:
    """How many the system shows, 0 where it does not tell them apart."""
    return sum(1 for _ in Path("/dev").glob("nvidia[0-9]*"))


def gpu_name() -> str | None:
    """Of the first NVIDIA GPU, as its driver says it."""
    for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        with suppress(OSError):
            found = dict(line.partition(":")[::2] for line in file.read_text(encoding="utf-8").splitlines())
            return found.get("Model", "").strip() or None
    return None


def bf16_in_software(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this processor is known to have no arithmetic in bf16, which then takes twice fp32's time or more."""
    with suppress(OSError):
        found = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo.read_text(encoding="utf-8"), re.M)
        return found is not None and not {"avx512_bf16", "amx_bf16", "bf16"} & set(found[1].split())
    return False


def cpu() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, None) or platform.processor() or platform.machine() or None
