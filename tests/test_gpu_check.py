"""`make gpu-check`: one line where there is no GPU; and its checks themselves, on a processor."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import ROOT

SCRIPT = ROOT / "scripts" / "gpu_check.py"


def script() -> Any:
    spec = importlib.util.spec_from_file_location("gpu_check", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gpu_check"] = module
    spec.loader.exec_module(module)
    return module


def test_without_a_gpu_it_says_so_in_one_line() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: torch sees no GPU here")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_its_checks_pass_on_a_processor_and_one_that_fails_says_how(tmp_path: Path) -> None:
    """Nine short processes. Compiling and memory are a GPU's; the precisions are one check with three names."""
    check = script()
    bench = check.Bench(tmp_path, "cpu", ("budget.train_images=256", "model.width=4", "runtime.threads=1"))
    known = check.checks(2)
    wanted = {name: known[name] for name in known if not name.startswith(("bf16", "fp16", "compile"))}
    found = {name: (passed, says) for name, passed, says, _ in check.rows(bench, wanted)}
    assert list(found) == [
        "fp32",
        "bitwise: twice the same bits",
        "resume: the same bits",
        "2 GPUs: the numbers of one",
    ]
    assert all(passed for passed, _ in found.values()), found

    wrong = {
        "bits": lambda b: b.same_bits("fp32", "first"),
        "mistake": lambda b: b.train("mistaken", *check.SMALL, "method.rho=x"),
    }
    (_, same, weights, _), (_, ended, says, _) = check.rows(bench, wrong)
    assert (same, ended) == (False, False)
    assert weights.startswith("weights ")
    assert says.startswith("exit code 2: error: ")
