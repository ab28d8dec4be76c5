"""What the benchmarks share: contestants that take turns, ratios within a round, bars, and the line on the hardware.

Other work on the machine slows whatever runs beside it. So contestants take turns, in another order every round, and
what is compared is the median over rounds of the ratio *within* a round. The first rounds are thrown away: they pay
for fresh memory, which is several times slower on a virtual machine.

Threads meet at the end of every kernel. Where other work takes one of their cores they wait for the scheduler each
time, and that is all a benchmark then measures, ten times too slow and with meaningless ratios. On a busy machine use
OMP_NUM_THREADS=1 and the CPU time of the process, `--clock cpu`.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from sam_repro.machine import cores, cpu

Seconds = list[float]
Turn = Callable[[], float]  # how many seconds it took
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass(frozen=True)
class Bar:
    """What a measurement has to reach, from performance.md; at least that much, or at most."""

    what: str
    measured: float
    bar: float
    at_least: bool

    @property
    def met(self) -> bool:
        return self.measured >= self.bar if self.at_least else self.measured <= self.bar

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"met": self.met}

    def __str__(self) -> str:
        side = "at least" if self.at_least else "at most"
        return f"{'met' if self.met else 'MISSED':<7}{self.what}: {self.measured:g}, {side} {self.bar:g}"


def stopwatch(job: Callable[[], object], clock: str = "wall", wait: Callable[[], object] | None = None) -> Turn:
    """wait: until an accelerator has done what was asked of it, which a processor has when the job returns."""
    now = CLOCKS[clock]

    def seconds() -> float:
        if wait is not None:
            wait()
        begin = now()
        job()
        if wait is not None:
            wait()
        return now() - begin

    return seconds


def take_turns(contestants: Mapping[str, Callable[[], float]], rounds: int, warmup: int = 2) -> dict[str, Seconds]:
    """The seconds that each contestant says its turn took, by round."""
    taken: dict[str, Seconds] = {name: [] for name in contestants}
    names = list(contestants)
    for turn in range(-warmup, rounds):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            seconds = contestants[name]()
            if turn >= 0:
                taken[name].append(seconds)
    return taken


def ratio(a: Seconds, b: Seconds) -> float:
    """How many times longer a took than b: the median of the rounds' ratios."""
    return statistics.median(x / y for x, y in zip(a, b, strict=True))


def milliseconds(taken: Mapping[str, Seconds]) -> dict[str, float]:
    return {name: round(1e3 * statistics.median(seconds), 2) for name, seconds in taken.items()}


def hardware() -> dict[str, Any]:
    """Without importing torch for it: the versions come from the installed packages."""
    threads = sys.modules["torch"].get_num_threads() if "torch" in sys.modules else os.environ.get("OMP_NUM_THREADS")
    return {
        "cpu": cpu(),
        "cores": cores(),
        "threads": threads,
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,  # of everybody, at this moment
        "torch": version("torch"),
        "python": platform.python_version(),
    }
