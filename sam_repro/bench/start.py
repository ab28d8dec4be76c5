"""Wall time of the commands that a user waits for before anything trains, each in a process of its own.

    sam-repro bench start [--rounds 9] [--json]

`nothing` is the bare interpreter. Whether a command imported torch is looked at in a run of its own, which is not timed
and serves as the warm-up.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from sam_repro.bench.timing import Bar, hardware, stopwatch, take_turns

MODULE = "sam_repro"
# What to type after `python`, and the most seconds that it may take.
COMMANDS: dict[str, tuple[list[str], float | None]] = {
    "nothing": (["-c", "pass"], None),
    "--help": (["-m", MODULE, "--help"], 0.3),
    "--cfg job": (["-m", MODULE, "--cfg", "job"], 0.3),
    "a mistake": (["-m", MODULE, "model.widht=3"], 0.5),
    "plan of every table": (["-m", f"{MODULE}.report", "plan"], 1.5),
}
CODES = {"a mistake": 2}
SPY = """
import runpy, sys
sys.argv = sys.argv[1:]
try:
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
except SystemExit:
    pass
print("torch" in sys.modules, file=sys.stderr)
"""


def command(name: str) -> Callable[[], None]:
    def job() -> None:
        done = subprocess.run([sys.executable, *COMMANDS[name][0]], capture_output=True, check=False)
        if done.returncode != CODES.get(name, 0):
            raise RuntimeError(f"{name}: exit code {done.returncode}: {done.stderr.decode()[-300:]}")

    return job


def imports_torch(name: str) -> bool:
    words = COMMANDS[name][0]
    if words[0] != "-m":
        return False
    spied = subprocess.run([sys.executable, "-c", SPY, *words[1:]], capture_output=True, text=True, check=True)
    return spied.stderr.split()[-1] == "True"


def run(rounds: int = 9, names: Sequence[str] = tuple(COMMANDS)) -> dict[str, Any]:
    torch = {name: imports_torch(name) for name in names}
    taken = take_turns({name: stopwatch(command(name)) for name in names}, rounds, warmup=0)
    medians = {name: round(statistics.median(seconds), 3) for name, seconds in taken.items()}
    bars = [
        Bar(f"seconds of {name}", medians[name], bar, at_least=False)
        for name in names
        if (bar := COMMANDS[name][1]) is not None
    ]
    bars.append(Bar("commands that import torch", sum(torch.values()), 0, at_least=False))
    return {
        "hardware": hardware(),
        "rounds": rounds,
        "median_seconds": medians,
        "min_seconds": {name: round(min(seconds), 3) for name, seconds in taken.items()},
        "imports_torch": torch,
        "ratios": {name: round(medians[name] / medians["nothing"], 1) for name in names},
        "bars": [bar.as_json() for bar in bars],
    }


def table(result: dict[str, Any]) -> str:
    lines = [f"{'command':<22}{'median s':>10}{'min s':>8}  torch"]
    for name, median in result["median_seconds"].items():
        torch = "imported" if result["imports_torch"][name] else "-"
        lines.append(f"{name:<22}{median:>10.3f}{result['min_seconds'][name]:>8.3f}  {torch}")
    return "\n".join(lines)
