"""Where runs go: some on each GPU, or side by side on the CPU, with the machine's threads divided among them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from sam_repro.errors import UserError
from sam_repro.machine import cores, gpus


@dataclass(frozen=True)
class Slot:
    """A place for one run at a time."""

    name: str
    threads: int  # a rank
    env: dict[str, str] = field(default_factory=dict)
    cores: int | None = None  # for the run's threads and decoding workers, over its ranks; None: all of its job's
    gpu: bool = False  # granted, so that training without it would be a mistake


def slots(gpus: str | None, per_gpu: int, cpu_slots: int, ranks: int) -> list[Slot]:
    """`per_gpu` runs on each GPU (or on each group of `ranks` GPUs); without GPUs `cpu_slots` runs."""
    if gpus is None:
        threads = max(1, cores() // (cpu_slots * ranks))
        return [Slot(f"slot {number}", threads, cores=threads * ranks) for number in range(cpu_slots)]
    devices = _devices(gpus)
    if len(devices) % ranks:
        raise UserError(f"gpus={gpus} names {len(devices)} GPUs, which runtime.ranks={ranks} does not divide")
    groups = [devices[start : start + ranks] for start in range(0, len(devices), ranks)]
    threads = max(1, cores() // (len(groups) * per_gpu * ranks))
    # Round after round, so that few runs spread over all GPUs.
    return [
        Slot(f"gpu {','.join(group)}", threads, {"CUDA_VISIBLE_DEVICES": ",".join(group)}, threads * ranks, gpu=True)
        for _ in range(per_gpu)
        for group in groups
    ]


def _devices(given: str) -> list[str]:
    """0-3,6 as the names of devices, counted among those that this process may see."""
    numbers = list[int]()
    for part in given.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if not match or int(match[2] or match[1]) < int(match[1]):
            raise UserError(f"gpus={given}: write numbers and ranges, as in gpus=0-3,6")
        numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    if len(set(numbers)) < len(numbers):
        raise UserError(f"gpus={given} names a GPU twice; for several runs on one write per_gpu=2")
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    if not visible and max(numbers) >= (gpus() or 1 << 20):
        raise UserError(f"gpus={given}: this machine has {gpus()} GPUs, counted from 0")
    if not visible:
        return [str(number) for number in numbers]
    if max(numbers) >= len(visible):
        raise UserError(f"gpus={given}: CUDA_VISIBLE_DEVICES shows {len(visible)} GPUs, counted from 0")
    return [visible[number] for number in numbers]
