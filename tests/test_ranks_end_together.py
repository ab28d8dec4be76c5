"""A rank is killed, hangs, crashes, has no disk left or finds a mistake: one line, one exit code, nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import TINY, command
from nursery import Nursery

PACKAGE = '''
import errno, os, signal
import torch
from sam_repro.errors import UserError


class Net(torch.nn.Module):
    """Goes wrong on one rank in its ninth forward pass of training."""

    def __init__(self, classes):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.LazyLinear(classes))
        self.passes = 0

    def forward(self, x):
        self.passes += self.training
        how = os.environ.get("HOW") if os.environ.get("RANK") == os.environ.get("WHO") else None
        if self.passes == 9 and self.training:
            if how in ("SIGKILL", "SIGSTOP"):
                os.kill(os.getpid(), getattr(signal, how))
            if how == "crash":
                raise RuntimeError("the ninth pass")
            if how == "disk":
                raise OSError(errno.ENOSPC, "No space left on device")
            if how == "mistake":
                raise UserError("this rank's picture can't be read")
            if how == "nan":
                x = x * float("nan")
        return self.body(x)


def net(classes, image_size):
    if os.environ.get("HOW") == "start" and os.environ.get("RANK") == os.environ.get("WHO"):
        raise UserError("this rank's machine has no data")
    model = Net(classes)
    model(torch.zeros(2, 3, image_size, image_size))
    model.passes = 0
    return model
'''
RUN = [*(word for word in TINY if not word.startswith("model.")), "model=own", "model.name=unlucky:net", "method=sam",
       "method.m=4", "runtime.checkpoint_steps=1"]  # fmt: skip
SAYS = {
    "SIGKILL": (1, "goes on"), "SIGSTOP": (1, "has not answered"), "crash": (1, "RuntimeError: the ninth pass"),
    "disk": (74, "the disk of"), "mistake": (2, "this rank's picture can't be read"),
    "start": (2, "this rank's machine has no data"),
}  # fmt: skip


def unlucky(folder: Path) -> Path:
    (folder / "unlucky.py").write_text(PACKAGE)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("how", "who"), [("SIGKILL", 1), ("SIGSTOP", 0), ("crash", 1), ("disk", 0), ("disk", 1),
                                          ("mistake", 1), ("start", 1)])  # fmt: skip
def test_local_ranks_end_together_and_fewer_go_on(nursery: Nursery, tmp_path: Path, how: str, who: int) -> None:
    code, says = SAYS[how]
    found, said = nursery.run(unlucky(tmp_path), *RUN, "runtime.ranks=2", HOW=how, WHO=str(who))
    assert (found, says in said) == (code, True), said
    lines = [line for line in said.splitlines() if line.startswith("error:") or "Error: " in line]
    assert len(lines) == 1, said
    if how == "start":
        assert not (tmp_path / "results").exists()
        return
    assert nursery.run(tmp_path, *RUN)[0] == 0  # on one rank
    (run,) = tmp_path.glob("results/runs/*")
    (event,) = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    assert event["name"] == "resumed"
    assert event["step"] > 0


def start(folder: Path, *words: str, **env: str) -> tuple[int, str]:
    """The same in processes that import everything themselves, as a user's do."""
    process = subprocess.run(
        words, cwd=unlucky(folder), env=os.environ | {"PYTHONPATH": str(folder), **env}, text=True, timeout=200,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return process.returncode, process.stdout


@pytest.mark.timing
def test_a_rank_that_hangs_is_given_up_within_half_a_minute(tmp_path: Path) -> None:
    code, said = start(tmp_path, *command(*RUN, "runtime.ranks=2"), HOW="SIGSTOP", WHO="1")
    assert code == 1, said
    (log,) = tmp_path.glob("results/runs/*/metrics.jsonl")
    assert time.time() - log.stat().st_mtime < 30


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "mistake"])
def test_ranks_of_torchrun_too(nursery: Nursery, tmp_path: Path, how: str) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", "-m"]
    code, said = start(tmp_path, *torchrun, *command(*RUN)[2:], HOW=how, WHO="1")
    assert code == 1  # torchrun's own
    assert said.count("\nerror: ") + said.startswith("error: ") == 1, said
    assert nursery.run(tmp_path, *RUN)[0] == 0


@pytest.mark.slow
def test_the_nan_of_one_rank_is_everybodys(nursery: Nursery, tmp_path: Path) -> None:
    code, said = nursery.run(unlucky(tmp_path), *RUN, "runtime.ranks=2", HOW="nan", WHO="1")
    assert code == 0, said
    (run,) = tmp_path.glob("results/runs/*")
    assert json.loads((run / "summary.json").read_text())["status"] == "collapsed"


@pytest.mark.slow
def test_full_gradients_on_four_ranks_are_those_of_one(nursery: Nursery, tmp_path: Path) -> None:
    words = [*TINY, "method=sam_full", "loop.micro_batch=4", "budget.max_epochs=1", "budget.max_steps=2"]
    losses = []
    for ranks in (1, 4):
        folder = tmp_path / str(ranks)
        folder.mkdir()
        assert nursery.run(folder, *words, f"runtime.ranks={ranks}")[0] == 0
        (log,) = folder.glob("results/runs/*/metrics.jsonl")
        losses.append([r["loss"] for r in map(json.loads, log.read_text().splitlines()) if r["kind"] == "step"])
    assert len(losses[0]) == 2
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
