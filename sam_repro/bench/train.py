"""A default SAM step of this project against the step that one writes by hand around pytorch_optimizer's SAM.

    OMP_NUM_THREADS=2 sam-repro bench train [--model resnet18] [--rounds 9] [--json]

Ours: the engine, bf16 autocast, channels-last, malloc told to keep what was freed, input and augmentation included.
Theirs: fp32, two passes, on a batch that lies ready. malloc's setting holds for a whole process, so each contestant has
a process of its own, lives through the whole benchmark and takes its turns when asked; the others sleep meanwhile.
Theirs comes twice: with malloc as it comes, which the bar is about, and with malloc tuned as ours.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from sam_repro.bench.timing import CLOCKS, Bar, hardware, milliseconds, ratio, stopwatch, take_turns

OURS, THEIRS, TUNED = "ours", "pytorch_optimizer", "pytorch_optimizer, malloc tuned"
AT_LEAST, TUNED_AT_LEAST = 2.4, 1.8


class Worker:
    """A contestant in a process of its own: answers every line with the seconds of a step."""

    def __init__(self, kind: str, model: str, batch: int, clock: str) -> None:
        command = [sys.executable, "-m", "sam_repro.bench.train", kind, model, str(batch), clock]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self) -> float:
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        print("step", file=asked, flush=True)
        answer = answers.readline()
        if not answer:
            raise RuntimeError(f"a contestant ended with code {self._process.wait()}: see its message above")
        return float(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def ours(model: str, batch: int, clock: str) -> Callable[[], float]:
    from sam_repro.bench.step import Trainer, configure

    c = configure(model, "sam", batch)
    return Trainer(c, clock).step(c)


def peer(model: str, batch: int, clock: str) -> Callable[[], float]:
    import torch
    import torch.nn.functional as F
    from pytorch_optimizer import SAM

    from sam_repro import models
    from sam_repro.bench.step import configure
    from sam_repro.engine.ranks import device_of

    torch.manual_seed(0)
    c = configure(model, "sam", batch)
    device = device_of(c.runtime, 0)
    net = models.build(c.model, c.dataset.classes, c.dataset.image_size).to(device)
    optimizer = SAM(net.parameters(), torch.optim.SGD, rho=0.05, lr=1e-4, momentum=0.9, weight_decay=5e-4)
    images = torch.randn(batch, 3, c.dataset.image_size, c.dataset.image_size, device=device)
    targets = torch.randint(0, c.dataset.classes, (batch,), device=device)

    def step() -> None:
        F.cross_entropy(net(images), targets).backward()  # type: ignore[no-untyped-call]
        optimizer.first_step(zero_grad=True)
        F.cross_entropy(net(images), targets).backward()  # type: ignore[no-untyped-call]
        optimizer.second_step(zero_grad=True)

    return stopwatch(step, clock, torch.cuda.synchronize if device.type == "cuda" else None)


def run(model: str = "resnet18", rounds: int = 9, batch: int = 128, clock: str = "wall") -> dict[str, Any]:
    from sam_repro.bench.step import configure

    configure(model, "sam", batch)  # a mistake is told here, once
    what = (model, batch, clock)
    with Worker(OURS, *what) as a, Worker(THEIRS, *what) as b, Worker(TUNED, *what) as c:
        taken = take_turns({OURS: a, THEIRS: b, TUNED: c}, rounds)
    ratios = {name: round(ratio(taken[name], taken[OURS]), 3) for name in (THEIRS, TUNED)}
    return {
        "hardware": hardware(),
        "settings": {
            "model": model,
            "batch": batch,
            "clock": clock,
            OURS: "bf16, channels-last, malloc tuned, input included",
            THEIRS: "fp32, malloc as it comes, batch ready",
            TUNED: "fp32, malloc tuned, batch ready",
        },
        "rounds": rounds,
        "milliseconds": milliseconds(taken),
        "ratios": ratios,
        "bars": [
            Bar("times faster than a plain fp32 loop", ratios[THEIRS], AT_LEAST, at_least=True).as_json(),
            Bar("the same, with malloc tuned", ratios[TUNED], TUNED_AT_LEAST, at_least=True).as_json(),
        ],
    }


def table(result: dict[str, Any]) -> str:
    lines = [f"{'SAM step':<34}{'ms':>10}{'to ours':>10}"]
    for name, milli in result["milliseconds"].items():
        lines.append(f"{name:<34}{milli:>10.1f}{result['ratios'].get(name, 1.0):>10.2f}   {result['settings'][name]}")
    return "\n".join(lines)


def serve(arguments: Sequence[str] | None = None) -> None:
    """The contestant's side."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=(OURS, THEIRS, TUNED))
    parser.add_argument("model")
    parser.add_argument("batch", type=int)
    parser.add_argument("clock", choices=CLOCKS)
    options = parser.parse_args(arguments)
    if options.kind == TUNED:
        from sam_repro.engine.setup import keep_freed_memory

        keep_freed_memory()
    seconds = (ours if options.kind == OURS else peer)(options.model, options.batch, options.clock)
    for _ in sys.stdin:
        print(seconds(), flush=True)


if __name__ == "__main__":
    serve()
