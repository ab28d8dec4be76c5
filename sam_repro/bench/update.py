"""Time of the whole update beyond the two passes: ascent, restore and base step, gradients given.

    OMP_NUM_THREADS=2 sam-repro bench update [--json] [--model wrn-28-10] [--rounds 15]

Ours and pytorch_optimizer's run in one process and take turns; a table or `--json` prints the ratios, each with its
number of rounds and the hardware. Half of the peers' time is page faults of fresh memory, so everything is measured
twice, each time in a fresh process: with glibc's malloc as it comes, and told to keep what it has freed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from sam_repro.bench.timing import hardware
from sam_repro.engine.setup import keep_freed_memory

MODELS = ("wrn-28-10", "resnet-18", "vit-b-16")
METHODS = ("sam", "asam", "fsam")
QUIET = {"KINETO_LOG_LEVEL": "6"}  # torch's profiler reports on standard error when it starts, stops and sees no GPU
SETTINGS = TUNED, UNTUNED = "malloc tuned", "malloc as it comes"


def shapes(name: str) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the parameters, from the model built without memory."""
    with torch.device("meta"):
        if name == "vit-b-16":
            import timm

            model: nn.Module = timm.create_model("vit_base_patch16_224")
        else:
            from sam_repro import models
            from sam_repro.models.catalog import Architecture, ModelConfig, Stem

            config = (
                ModelConfig(architecture=Architecture.wrn, depth=28, width=10, stem=None)
                if name == "wrn-28-10"
                else ModelConfig(architecture=Architecture.resnet, depth=18, width=None, stem=Stem.cifar)
            )
            model = models.build(config, 10, 32)
    return [(key, tuple(p.shape)) for key, p in model.named_parameters()]


class Contender:
    """One way to do the update, with weights and gradients of its own."""

    def __init__(self, layout: list[tuple[str, tuple[int, ...]]], make: Callable[[Contender], Callable[[], object]]):
        source = torch.Generator().manual_seed(0)
        self.named = [(key, nn.Parameter(torch.randn(shape, generator=source) * 0.05)) for key, shape in layout]
        self.params = [p for _, p in self.named]
        self.first = [torch.empty_like(p, requires_grad=False) for p in self.params]
        self.second = [torch.empty_like(p, requires_grad=False) for p in self.params]
        self.refill()
        self.update = make(self)

    def refill(self) -> None:
        """Every contender works in place on its gradients. This also touches their memory before the clock runs."""
        for i, (a, b) in enumerate(zip(self.first, self.second, strict=True)):
            a.fill_(1e-3 * (i % 7 + 1))
            b.fill_(1e-3 * (i % 5 + 1))
        self.give(self.first)

    def give(self, gradients: list[Tensor]) -> None:
        for p, g in zip(self.params, gradients, strict=True):
            p.grad = g

    def seconds(self) -> float:
        self.refill()
        begin = time.perf_counter()
        self.update()
        return time.perf_counter() - begin

    def bytes_a_parameter(self) -> float:
        """Peak of what an update allocates and what it keeps for the next, beyond the base optimizer's own state."""
        self.refill()
        with torch.autograd.profiler.profile(profile_memory=True) as profile:
            self.update()
        events = [e for e in profile.kineto_results.events() if e.name() == "[memory]"]
        held, peak = 0, 0
        for event in sorted(events, key=lambda e: e.start_ns()):
            held += event.nbytes()
            peak = max(peak, held)
        return peak / sum(p.numel() for p in self.params)


def sgd(contender: Contender, **how: Any) -> torch.optim.Optimizer:
    """With its momentum in place already."""
    optimizer = torch.optim.SGD(contender.params, lr=1e-3, momentum=0.9, weight_decay=5e-4, **how)
    optimizer.step()
    return optimizer


def base(fused: bool) -> Callable[[Contender], Callable[[], object]]:
    return lambda contender: sgd(contender, fused=fused).step


def ours(name: str, swap: bool = True) -> Callable[[Contender], Callable[[], object]]:
    """As the engine runs it without a loss scaler: nothing to roll back, norms for the log on request only."""

    def make(contender: Contender) -> Callable[[], object]:
        from sam_repro.methods import build

        optimizer = sgd(contender, fused=True)
        method = build(name, contender.named, swap=swap, rollback=False)
        loss = torch.zeros(())

        def grad_fn(wanted: Any) -> Tensor:
            contender.give(contender.second if wanted.index else contender.first)
            return loss

        def update() -> None:
            method.estimate(grad_fn, observe=False)
            optimizer.step()

        return update

    return make


def peer(name: str, fused: bool) -> Callable[[Contender], Callable[[], object]]:
    def make(contender: Contender) -> Callable[[], object]:
        from pytorch_optimizer import SAM, FriendlySAM

        how: dict[str, Any] = {"lr": 1e-3, "momentum": 0.9, "weight_decay": 5e-4} | ({"fused": True} if fused else {})
        optimizer: Any
        if name == "fsam":
            optimizer = FriendlySAM(contender.params, torch.optim.SGD, rho=0.1, sigma=1.0, lmbda=0.6, **how)
        else:
            optimizer = SAM(contender.params, torch.optim.SGD, rho=0.05, adaptive=name == "asam", **how)
        optimizer.base_optimizer.step()
        return lambda: optimizer.step(lambda: contender.give(contender.second))

    return make


def measure(model: str, name: str, rounds: int, warmup: int = 6) -> dict[str, Any]:
    """Median milliseconds of a method's contenders on one model, taking turns, and their bytes a parameter."""
    layout = shapes(model)
    makes = {
        "sgd": base(False),
        "sgd, fused": base(True),
        f"{name}: ours": ours(name),
        f"{name}: ours, copying": ours(name, swap=False),
        f"{name}: pytorch_optimizer": peer(name, False),
        f"{name}: pytorch_optimizer, fused sgd": peer(name, True),
    }
    # A virtual machine's fresh memory is several times slower: have all that the turns need backed beforehand.
    torch.ones(6 * 6 * sum(torch.Size(shape).numel() for _, shape in layout))
    contenders = {key: Contender(layout, make) for key, make in makes.items()}
    taken: dict[str, list[float]] = {key: [] for key in contenders}
    for turn in range(warmup + rounds):
        for key, contender in contenders.items():
            seconds = contender.seconds()
            if turn >= warmup:
                taken[key].append(1e3 * seconds)
    del contenders, contender
    times = {key: statistics.median(all_) for key, all_ in taken.items()}
    ours_ = times[f"{name}: ours"]
    return {
        "parameters": sum(torch.Size(shape).numel() for _, shape in layout),
        "rounds": rounds,
        "milliseconds": {key: round(t, 3) for key, t in times.items()},
        "ratio to sgd": {key: round(t / times["sgd"], 3) for key, t in times.items()},
        "ours against pytorch_optimizer": {
            name: {
                "times faster": round(times[f"{name}: pytorch_optimizer"] / ours_, 2),
                "times faster than with fused sgd": round(times[f"{name}: pytorch_optimizer, fused sgd"] / ours_, 2),
            }
        },
        # From a first update on, and last: the profiler's own memory would get in malloc's way.
        "bytes a parameter": {k: round(Contender(layout, make).bytes_a_parameter(), 2) for k, make in makes.items()},
    }


def run(models: tuple[str, ...] = MODELS, rounds: int = 15) -> dict[str, Any]:
    """Both malloc settings, each method in a process of its own: what malloc does depends on what ran before."""
    result: dict[str, Any] = {"hardware": hardware(), "results": {}}
    for setting in SETTINGS:
        by_model = result["results"].setdefault(setting, {})
        for model in models:
            for name in METHODS:
                command = [sys.executable, "-m", "sam_repro.bench.update", "--malloc", setting]
                done = subprocess.run(
                    [*command, "--model", model, "--method", name, "--rounds", str(rounds)],
                    check=True,
                    stdout=subprocess.PIPE,
                    text=True,
                    encoding="utf-8",
                    env=os.environ | QUIET,
                )
                found = json.loads(done.stdout.splitlines()[-1])
                for key, value in found.items():
                    if isinstance(value, dict):
                        by_model.setdefault(model, {}).setdefault(key, {}).update(value)
                    else:
                        by_model.setdefault(model, {})[key] = value
    return result


def table(result: dict[str, Any]) -> str:
    lines: list[str] = []
    for setting, by_model in result["results"].items():
        for model, r in by_model.items():
            lines += [
                "",
                f"{model}, {r['parameters']:,} parameters, {setting}, median of {r['rounds']} interleaved rounds",
            ]
            lines += [f"  {'':40}{'ms':>10}{'to own sgd':>12}{'bytes a parameter':>20}"]
            for key, t in r["milliseconds"].items():
                lines += [f"  {key:40}{t:>10.2f}{r['ratio to sgd'][key]:>12.2f}{r['bytes a parameter'][key]:>20.2f}"]
            for name, times in r["ours against pytorch_optimizer"].items():
                lines += [f"  {name}: {', '.join(f'{value:.2f} {key}' for key, value in times.items())}"]
    return "\n".join(lines)


def main() -> None:
    """One method's share, in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m sam_repro.bench.update")
    parser.add_argument("--malloc", choices=SETTINGS, required=True)
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    options = parser.parse_args()
    if options.malloc == TUNED:
        keep_freed_memory()
    print(json.dumps(measure(options.model, options.method, options.rounds)))


if __name__ == "__main__":
    main()
