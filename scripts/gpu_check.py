"""The first hour on a GPU: does everything that this project promises of one hold on yours?

`make gpu-check`, or `python scripts/gpu_check.py`: short runs on small data that the project brings along, in a
temporary folder. One table, pass or fail, to paste into a report. Exit code 0 if all hold, 1 if one does not, and 2 on
a machine without a GPU.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works in a checkout that is not installed

from sam_repro import signals
from sam_repro.config.compose import compose
from sam_repro.errors import INTERRUPTED, UserError, command
from sam_repro.tables.cost import cost
from sam_repro.words import HELP

ROOT = Path(__file__).resolve().parents[1]
WORDS = ["dataset=embedded", "method=asam", "augment=basic", "track=none", "schedule.epochs=2", "loop.batch_size=128"]
SMALL = [*WORDS, "model=resnet8", "budget.train_images=1024", "budget.test_images=512", "track.every=1"]
LARGE = [*WORDS, "model=resnet18", "budget.train_images=1024", "budget.test_images=512", "budget.max_epochs=1"]
# Of two ways to the same numbers in fp32: rounding, after 16 steps.
CLOSE = 1e-2
# The most memory that torch held at once, in GB, at the end of what a process says.
PEAK = (
    "import atexit, torch, sys\n"
    "atexit.register(lambda: print('PEAK', torch.cuda.max_memory_allocated() / 2**30))\n"
    "from sam_repro.cli import main; sys.exit(main())"
)


class Failed(Exception):
    """A promise that does not hold, and how."""


@dataclass(frozen=True)
class Bench:
    """Where runs of the check go, and on what they train."""

    folder: Path
    device: str
    more: tuple[str, ...] = ()  # overrides of all runs

    def start(self, name: str, *words: str, program: tuple[str, ...] = ("-m", "sam_repro")) -> subprocess.Popen[str]:
        place = [*self.more, f"results_dir={self.folder / name}", f"runtime.device={self.device}"]
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        return subprocess.Popen(
            [sys.executable, *program, *words, *place], cwd=self.folder, env=os.environ | {"PYTHONPATH": path},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def train(self, name: str, *words: str, program: tuple[str, ...] = ("-m", "sam_repro")) -> str:
        """What the run said; it must end well."""
        process = self.start(name, *words, program=program)
        said, _ = process.communicate(timeout=1800)
        if process.returncode:
            last = next((line for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
            raise Failed(f"exit code {process.returncode}: {last.strip()[:160]}")
        return said

    def run(self, name: str) -> Path:
        return next((self.folder / name / "runs").iterdir())

    def loss(self, name: str) -> float:
        lines = (self.run(name) / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        loss = [json.loads(line)["test_loss"] for line in lines if "test_loss" in line][-1]
        if not math.isfinite(loss):
            raise Failed(f"the test loss is {loss}")
        return float(loss)

    def digest(self, name: str) -> str:
        return hashlib.sha256((self.run(name) / "weights.safetensors").read_bytes()).hexdigest()[:12]

    def same_numbers(self, one: str, other: str) -> str:
        """Up to rounding."""
        a, b = self.loss(one), self.loss(other)
        if abs(a - b) > CLOSE * abs(a):
            raise Failed(f"test losses {a:.5f} and {b:.5f}")
        return f"test losses {a:.5f} and {b:.5f}"

    def same_bits(self, one: str, other: str) -> str:
        a, b = self.digest(one), self.digest(other)
        if a != b:
            raise Failed(f"weights {a} and {b}")
        return f"weights {a}"


Check = Callable[[Bench], str]
FP32, BITWISE = "runtime.precision=fp32", "runtime.determinism=bitwise"


def precision(name: str) -> Check:
    def check(bench: Bench) -> str:
        bench.train(name, *SMALL, f"runtime.precision={name}")
        return f"test loss {bench.loss(name):.5f}"

    return check


def all_gpus(gpus: int) -> Check:
    def check(bench: Bench) -> str:
        """m-sharpness gives the same numbers on any number of ranks."""
        shards = f"method.m={128 // gpus if 128 % gpus == 0 else 1}"
        bench.train("one", *SMALL, FP32, shards)
        bench.train("all", *SMALL, FP32, shards, f"runtime.ranks={gpus}")
        return bench.same_numbers("one", "all")

    return check


def bitwise(bench: Bench) -> str:
    for name in ("first", "second"):
        bench.train(name, *SMALL, BITWISE)
    return bench.same_bits("first", "second")


def resume(bench: Bench) -> str:
    """After `bitwise`, whose run it stops and continues."""
    process = bench.start("stopped", *SMALL, BITWISE, "runtime.checkpoint_steps=1")
    folder = bench.folder / "stopped" / "runs"
    ends = time.monotonic() + 600
    while not any(folder.glob("*/checkpoints/*/manifest.json")) and process.poll() is None:
        if time.monotonic() > ends:
            process.kill()
            raise Failed("no checkpoint within ten minutes")
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=600)
    if process.returncode not in (0, INTERRUPTED):
        raise Failed(f"stopped, it ended with exit code {process.returncode}")
    said = bench.train("stopped", *SMALL, BITWISE, "runtime.checkpoint_steps=1")
    if process.returncode == INTERRUPTED and "resumed" not in said:
        raise Failed("it started anew")
    return bench.same_bits("first", "stopped")


def compiled(bench: Bench) -> str:
    bench.train("eager", *SMALL, FP32)
    bench.train("compiled", *SMALL, FP32, "runtime.compile=true")
    return bench.same_numbers("eager", "compiled")


def memory(bench: Bench) -> str:
    """Within what `report plan` names, and not far below."""
    said = bench.train("memory", *LARGE, program=("-c", PEAK))
    found = re.search(r"PEAK ([\d.]+)", said)
    named = cost(compose(LARGE)).memory_gb
    if found is None or named is None:
        raise Failed("nothing to compare")
    measured = float(found[1])
    if not 0.4 * named < measured < 1.2 * named:
        raise Failed(f"{measured:.2f} GB measured, {named:.2f} GB planned")
    return f"{measured:.2f} GB measured, {named:.2f} GB planned"


def checks(gpus: int) -> dict[str, Check]:
    found = {name: precision(name) for name in ("bf16", "fp16", "fp32")} | {
        "bitwise: twice the same bits": bitwise,
        "resume: the same bits": resume,
        "compile: the same numbers": compiled,
    }
    if gpus > 1:
        found[f"{gpus} GPUs: the numbers of one"] = all_gpus(gpus)
    return found


def rows(bench: Bench, wanted: dict[str, Check]) -> Iterator[tuple[str, bool, str, float]]:
    for name, check in wanted.items():
        began = time.monotonic()
        try:
            passed, says = True, check(bench)
        except (Failed, subprocess.TimeoutExpired, OSError, KeyError, IndexError, StopIteration, ValueError) as error:
            passed, says = False, str(error) or type(error).__name__
        yield name, passed, says, time.monotonic() - began


@command
def main(words: list[str]) -> int:
    if set(words) & set(HELP):
        print(__doc__)
        return 0
    if words:
        raise UserError(f"no options are known, was given {' '.join(words)}")
    import torch

    if not torch.cuda.is_available():
        raise UserError("torch sees no GPU here, so there is nothing to check: `nvidia-smi` says whether a driver does")
    gpus = torch.cuda.device_count()
    names = ", ".join(sorted({torch.cuda.get_device_name(i) for i in range(gpus)}))
    print(f"{gpus} x {names}; torch {torch.__version__}, CUDA {torch.version.cuda}, Python {platform.python_version()}")
    wanted = checks(gpus) | {"memory: as planned": memory}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, passed, says, seconds in rows(Bench(Path(folder), "cuda"), wanted):
            failed += not passed
            print(f"{'pass' if passed else 'FAIL'}  {name:<30} {seconds:>6.0f} s  {says}", flush=True)
    print(f"{len(wanted) - failed} of {len(wanted)} hold")
    return 1 if failed else 0


if __name__ == "__main__":
    signals.begin()
    sys.exit(main())
