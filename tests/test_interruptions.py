"""Ctrl-C, and a reader who leaves, at a hundred random moments after `main` has begun: quiet, and the same goes on."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from commands import TINY, command

from sam_repro.errors import INTERRUPTED

RUN = (*TINY, "runtime.checkpoint_steps=2")
RANKS = (*RUN, "runtime.ranks=2", "method.m=8")
SWEEP = (
    "sweep", "table=asam/2", "cells=resnet20/sgd,resnet20/sam", "budget=smoke", "dataset=embedded", "model=resnet8",
    "slots=2", *(word for word in TINY if word != "budget.max_epochs=2"),
)  # fmt: skip
LOOKING = [
    ("--help",), ("--help", "method"), (*TINY, "--cfg", "job"), ("report", "list"), ("report", "status"),
    ("report", "plan", "asam/2"), ("runs", "list"), ("seed=x",), ("report", "discrepancies", "--json"),
]  # fmt: skip
INT = 1 << (signal.SIGINT - 1)


def begun(process: subprocess.Popen[bytes]) -> bool:
    """Whether `main` has: Python's own handler of Ctrl-C, there since the interpreter's start, is gone again."""
    seen = False
    while process.poll() is None:
        with suppress(OSError, StopIteration):
            status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            caught = bool(int(next(line for line in status if line.startswith("SigCgt")).split()[1], 16) & INT)
            if seen and not caught:
                return True
            seen = seen or caught
    return False


class Ended(NamedTuple):
    code: int
    said: str  # on standard error
    begun: bool  # seen in time, and so interrupted


def ended(words: tuple[str, ...], folder: Path, then: Callable[[subprocess.Popen[bytes]], None]) -> Ended:
    """How the command ends; `then` is called when `main` has begun."""
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen(
        command(*words), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, bufsize=0,
    )  # fmt: skip
    try:
        if seen := begun(process):
            then(process)
        _, said = process.communicate(timeout=90)
        return Ended(process.returncode, said.decode(), seen)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def seen_ended(words: tuple[str, ...], folder: Path, then: Callable[[subprocess.Popen[bytes]], None]) -> Ended:
    """The same; again where the machine was too busy to see that `main` had begun, so that nothing was done to it."""
    end = ended(words, folder, then)
    for _ in range(4):
        if end.begun:
            break
        end = ended(words, folder, then)
    return end


def interrupt(after: float) -> Callable[[subprocess.Popen[bytes]], None]:
    def then(process: subprocess.Popen[bytes]) -> None:
        time.sleep(after)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them

    return then


def leave(after: float) -> Callable[[subprocess.Popen[bytes]], None]:
    def then(process: subprocess.Popen[bytes]) -> None:
        time.sleep(after)
        assert process.stdout is not None
        process.stdout.close()

    return then


def lasts(words: tuple[str, ...], folder: Path) -> float:
    """Seconds from where `main` begins; it is what the moments are drawn from."""
    start = list[float]()
    end = seen_ended(words, folder, lambda process: start.append(time.monotonic()))
    assert end.code == (2 if words == ("seed=x",) else 0), end
    assert end.begun
    return time.monotonic() - start[0]


@pytest.mark.slow
def test_what_only_looks_is_interrupted(tmp_path: Path) -> None:
    draw, acted, spent = random.Random(1), 0, 0.0
    for words in LOOKING:
        length = lasts(words, tmp_path)
        spent += length
        for act in (interrupt, interrupt, interrupt, leave, leave):
            code, said, seen = seen_ended(words, tmp_path, act(draw.uniform(0, length)))
            acted += seen
            told = 2 if words == ("seed=x",) else 0
            assert code in ((told,) if act is leave else (told, -signal.SIGINT)), (words, act, code, said)
            assert said == "" or (told == 2 and said.startswith("error: ") and said.count("\n") == 1), (words, said)
    assert not list(tmp_path.iterdir())
    assert acted > 40, "of 45"
    assert spent > 0.5, "main begins by taking Python's handler away; else that is only gone when Python ends"


@pytest.mark.proof
@pytest.mark.parametrize(("words", "moments"), [(RUN, 30), (RANKS, 12), (SWEEP, 13)], ids=["run", "ranks", "sweep"])
def test_what_trains_is_interrupted_and_goes_on(words: tuple[str, ...], moments: int, tmp_path: Path) -> None:
    draw, left = random.Random(len(words)), moments
    length = lasts(words, tmp_path / "alone")
    assert length > 0.5, "as above"
    weights = results(tmp_path / "alone")
    folder = tmp_path / "stopped"
    while left:
        for _ in range(min(left, 6)):
            left -= 1
            act = leave if left % 5 == 0 else interrupt
            code, said, seen = ended(words, folder, act(draw.uniform(0, length)))
            assert seen
            assert code in (0, -signal.SIGINT, INTERRUPTED), (left, code, said)
            assert "Traceback" not in said, (left, said)
            assert code != 0 or results(folder) == weights
        code, said, _ = ended(words, folder, lambda process: None)
        assert (code, said) == (0, ""), left
        assert results(folder) == weights, left
        shutil.rmtree(folder)


def results(folder: Path) -> dict[str, bytes]:
    return {file.parent.name: file.read_bytes() for file in folder.glob("results/runs/*/weights.safetensors")}
