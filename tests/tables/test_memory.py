"""The memory that `plan` names, beside what a run really takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sam_repro.config.compose import compose
from sam_repro.tables.cost import cost

SMALL = [
    "dataset.name=synthetic", "dataset.stream=false", "dataset.train_images=128", "dataset.test_images=10",
    "budget.max_epochs=1", "budget.max_steps=1", "loop.eval_batch=10", "track=none", "runtime.threads=1",
]  # fmt: skip
RECIPES = ("rsam_cifar10_resnet18", "asam_cifar100_wrn_28_2")
# VmHWM starts anew at exec; getrusage's ru_maxrss inherits the peak of whatever started the process: pytest, here.
PEAK = (
    "import atexit, re, pathlib\n"
    "status = pathlib.Path('/proc/self/status')\n"
    "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+) kB', status.read_text()).group(1))\n"
    "atexit.register(lambda: print('PEAK', peak() / 2**20))\n"
    "import sys; from sam_repro.__main__ import main; sys.exit(main())"
)


def peak_gb(folder: Path, *arguments: str) -> float:
    done = subprocess.run([sys.executable, "-c", PEAK, *arguments, *SMALL], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return float(done.stdout.rsplit("PEAK", 1)[1])


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> float:
    return peak_gb(tmp_path_factory.mktemp("idle"), "model.width=4", "loop.batch_size=8", "method=sam")


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_plan_names_the_memory_of_a_step(tmp_path: Path, idle: float, recipe: str) -> None:
    """Of a whole process on a CPU, less one that trains next to nothing: torch itself takes most of a gigabyte."""
    named = cost(compose([f"+experiment={recipe}"])).memory_gb
    assert named is not None
    measured = peak_gb(tmp_path, f"+experiment={recipe}") - idle
    print(f"{recipe}: named {named:.2f} GB, measured {measured:.2f} GB")
    assert 0.6 * named < measured < 1.4 * named
