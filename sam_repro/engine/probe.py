"""What a step's perturbation is made of, looked at without changing a number of the run (`loop.probe_steps`).

The premise of some methods is that the gradient g of a batch has a part along the gradient G of the whole training set
and a rest, the batch's noise n = g - (<g, G> / <G, G>) G, and that it matters which of them an ascent follows. Three
cosines say what a step's perturbation eps is made of, whatever the method:

    ascent_cosine    of eps and G
    gradient_cosine  of g and G, the share of the full gradient in the batch's
    noise_cosine     of eps and n; with SAM's eps the squares of the first and of this one add up to 1

All at w, the weights before the step, and with the epoch's augmentation. eps is how far from w the weights are in the
step's last pass. The passes of the probe leave buffers, random numbers, gradients and the method's state as they were.
It costs a pass over the training set and memory for five vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from sam_repro.engine.batchnorm import cloned
from sam_repro.engine.gradient import GradFn, Setting
from sam_repro.engine.shards import Shard
from sam_repro.methods import Overflow, Pass
from sam_repro.methods.vector import axpy, dot, ratio

NAMES = ("ascent_cosine", "gradient_cosine", "noise_cosine")
ROUNDING = 1e-5  # of single precision in a vector of millions
Sums = list[float]  # of each of NAMES a sum and how many were added up


@dataclass
class Probe:
    """Of one step on one rank. The shards come in turn: `before` the passes over one, `around` them, `after` them."""

    setting: Setting
    model: nn.Module  # not compiled: other sizes of batches could compile the step's kernels anew
    full: list[Tensor] | None = None  # G; None where it overflowed, or before the first shard
    seen: Sums = field(default_factory=lambda: [0.0] * (2 * len(NAMES)))

    @torch.no_grad()
    def before(self, shard: Shard) -> None:
        """Take G, once, and g of this shard."""
        self.moved: list[Tensor] = []
        self.home = cloned([p.detach() for p in self.setting.parameters])
        self.batch: list[Tensor] = []
        with self._unseen():
            try:
                if self.full is None:
                    self.full = self._gradient(shard, Pass("full"))
                self.batch = self._gradient(shard, Pass())
            except Overflow:  # on all ranks
                pass

    def around(self, grad_fn: GradFn) -> Callable[[Pass], Tensor]:
        """The step's passes, whose weights are looked at."""

        def watched(p: Pass) -> Tensor:
            self.moved = [now.detach() - w for now, w in zip(self.setting.parameters, self.home, strict=True)]
            return grad_fn(p)

        return watched

    def after(self) -> None:
        """Compare the perturbation of the shard's last pass with G and g."""
        if self.full is None or not self.batch:
            return
        lazy = self.setting.ranks.device.type != "cpu"
        noise = rest(self.batch, self.full, lazy)
        pairs = (self.moved, self.full), (self.batch, self.full), (self.moved, noise)
        for place, (one, other) in enumerate(pairs):
            if (value := cosine(one, other, lazy)) is not None:
                self.seen[2 * place] += value
                self.seen[2 * place + 1] += 1

    def result(self) -> Sums:
        """Over all shards of the step. Every rank asks."""
        if not self.setting.synchronised:
            total = torch.tensor(self.seen, dtype=torch.float64, device=self.setting.ranks.device)
            self.setting.ranks.sum_([total])
            self.seen = total.tolist()
        return self.seen

    def _gradient(self, shard: Shard, p: Pass) -> list[Tensor]:
        parameters = self.setting.parameters
        for parameter in parameters:
            parameter.grad = None
        with torch.enable_grad():
            GradFn(replace(self.setting, model=self.model), shard)(p)
        return [torch.zeros_like(q) if q.grad is None else q.grad for q in parameters]

    @contextmanager
    def _unseen(self) -> Iterator[None]:
        """Random numbers need nothing: the step's passes seed their masks themselves."""
        parameters = self.setting.parameters
        gradients = [p.grad for p in parameters]
        buffers = list(self.model.buffers())
        before = cloned(buffers)
        try:
            yield
        finally:
            for buffer, old in zip(buffers, before, strict=True):
                buffer.copy_(old)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient


def cosine(a: list[Tensor], b: list[Tensor], lazy: bool) -> float | None:
    """None where one of them is zero, as the perturbation of a step without an ascent, or not finite."""
    both, lengths = float(dot(a, b, lazy)), math.sqrt(float(dot(a, a, lazy))) * math.sqrt(float(dot(b, b, lazy)))
    return both / lengths if 0 < lengths < math.inf and math.isfinite(both) else None


def rest(g: list[Tensor], full: list[Tensor], lazy: bool) -> list[Tensor]:
    """g without its part along the full gradient; zero where only rounding is left, as of a batch of all data."""
    noise = cloned(g)
    axpy(noise, -1 * ratio(dot(g, full, lazy), dot(full, full, lazy)), full)
    if float(dot(noise, noise, lazy)) <= ROUNDING**2 * float(dot(g, g, lazy)):
        torch._foreach_zero_(noise)
    return noise


def means(sums: Sequence[float]) -> Mapping[str, float]:
    """What an epoch's record says of the steps that were probed in it."""
    pairs = zip(NAMES, sums[::2], sums[1::2], strict=False)
    return {name: total / count for name, total, count in pairs if count}
