"""The largest and the average loss in a ball around some weights: sharpness, and adaptive sharpness.

    sharpness  max over ||T^-1 eps||_p <= rho of L(w + eps), less L(w)   (ASAM, definition 2 and equation 4)

T is 1 (plain), abs(w) + eta (element-wise), or a filter's length + eta (filter-wise; abs(w) outside filters); 1 on
biases unless they are normalised too. In the coordinates e = T^-1 eps the gradient is T g and the ball is round.

    one step   e = rho T g / ||T g||_2   or   rho sign(T g)          the papers' maximiser
    APGD       projected ascent with momentum whose step is halved when it stalls (Croce and Hein 2020), from the
               one-step point and from random restarts; the best loss that was seen, so at least the one step's
    average    mean of L(w + T e) over random e: a Gaussian of standard deviation rho, or uniform in the box
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from sam_repro.engine.ranks import Ranks

Geometry = Literal["none", "elementwise", "filterwise"]
Batches = Sequence[tuple[Tensor, Tensor]]
Loss = Callable[[Tensor, Tensor], Tensor]  # (outputs, targets) -> the sum over the batch
ALONE = Ranks(0, 1, torch.device("cpu"))  # without others nothing is added up, on whatever device
MOMENTUM, RISES = 0.75, 0.75  # of APGD: its momentum, and the share of steps that must have risen


@dataclass(frozen=True)
class Norm:
    """Of the ball."""

    p: float  # 2 or inf
    geometry: Geometry
    eta: float = 0.0
    biases: bool = False  # normalised too

    def scales(self, model: nn.Module) -> list[Tensor]:
        return [self._scale(p.detach()) for p in model.parameters() if p.requires_grad]

    def _scale(self, w: Tensor) -> Tensor:
        if self.geometry == "none" or (w.ndim <= 1 and not self.biases):
            return torch.ones_like(w)
        if self.geometry == "filterwise" and w.ndim == 4:
            lengths: Tensor = w.flatten(1).norm(dim=1)
            return lengths.view(-1, 1, 1, 1).expand_as(w) + self.eta
        return w.abs() + self.eta

    def steepest(self, g: Sequence[Tensor], length: float) -> list[Tensor]:
        """The point of the ball of that radius in which <g, e> is largest."""
        if self.p == math.inf:
            return [length * part.sign() for part in g]
        norm = total_norm(g)
        return [torch.zeros_like(part) if norm == 0 else part * (length / norm) for part in g]

    def project(self, e: Sequence[Tensor], rho: float) -> list[Tensor]:
        if self.p == math.inf:
            return [part.clamp(-rho, rho) for part in e]
        norm = total_norm(e)
        return [part * (rho / norm) if norm > rho else part for part in e]


def total_norm(parts: Sequence[Tensor]) -> float:
    return math.sqrt(math.fsum(float(part.double().square().sum()) for part in parts))


class Landscape:
    """The mean loss of a model over some batches, as a function of e. `close` gives the weights back to the bit.

    Ranks have all of the batches, and compute the loss of a share of them each; what is found is the same on all.
    """

    def __init__(self, model: nn.Module, batches: Batches, loss: Loss, norm: Norm, ranks: Ranks = ALONE) -> None:
        self.model, self.loss, self.norm, self.ranks = model, loss, norm, ranks
        self.batches = ranks.mine(batches)
        self.total = sum(len(targets) for _, targets in batches)
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.start = [p.detach().clone() for p in self.parameters]
        self.scales = norm.scales(model)

    def close(self) -> None:
        with torch.no_grad():
            for p, start in zip(self.parameters, self.start, strict=True):
                p.copy_(start)

    def _move(self, e: Sequence[Tensor] | None) -> None:
        self.close()
        if e is not None:
            with torch.no_grad():
                for p, scale, part in zip(self.parameters, self.scales, e, strict=True):
                    p.addcmul_(scale, part)

    @torch.no_grad()
    def value(self, e: Sequence[Tensor] | None = None) -> float:
        self._move(e)
        found = math.fsum(float(self.loss(self.model(x), y)) for x, y in self.batches)
        self.close()
        return self._mean(found, [])

    def slope(self, e: Sequence[Tensor] | None = None) -> tuple[float, list[Tensor]]:
        """The loss and its gradient by e."""
        self._move(e)
        value, sums = 0.0, [torch.zeros_like(p) for p in self.parameters]
        for x, y in self.batches:
            loss = self.loss(self.model(x), y)
            torch._foreach_add_(sums, torch.autograd.grad(loss, self.parameters, materialize_grads=True))
            value += float(loss.detach())
        self.close()
        value = self._mean(value, sums)
        return value, [g * scale / self.total for g, scale in zip(sums, self.scales, strict=True)]

    def _mean(self, loss: float, sums: Sequence[Tensor]) -> float:
        """Of all ranks' losses; the tensors are replaced by their sums over the ranks."""
        if sums:
            self.ranks.sum_(sums)
        return self.ranks.add_up([loss])[0] / self.total


def one_step(land: Landscape, rho: float) -> list[Tensor]:
    return land.norm.steepest(land.slope()[1], rho)


def one_steps(
    model: nn.Module, batches: Batches, loss: Loss, norm: Norm, radii: Sequence[float], m: int, ranks: Ranks = ALONE
) -> list[float]:
    """m-sharpness by one step at each of some radii; the gradients are those of all of them."""
    groups = _groups(batches, m)
    sums = [0.0] * len(radii)
    for group in ranks.mine(groups):
        land = Landscape(model, [group], loss, norm)
        try:
            here, g = land.slope()
            for place, rho in enumerate(radii):
                sums[place] += len(group[1]) * (land.value(norm.steepest(g, rho)) - here)
        finally:
            land.close()
    return [found / sum(len(y) for _, y in groups) for found in ranks.add_up(sums)]


def _groups(batches: Batches, m: int) -> Batches:
    """Of m samples each, and of a batch's rest."""
    return [pair for x, y in batches for pair in zip(torch.split(x, m), torch.split(y, m), strict=True)]


def apgd(land: Landscape, rho: float, steps: int, restarts: int, seed: int) -> float:
    """The largest loss that was seen."""
    generator = torch.Generator().manual_seed(seed)
    starts = [one_step(land, rho)]
    starts += [land.norm.project(_random(land, rho, generator), rho) for _ in range(restarts)]
    return max(_climb(land, rho, steps, start) for start in starts)


def _climb(land: Landscape, rho: float, steps: int, start: list[Tensor]) -> float:
    norm, length = land.norm, 2 * rho
    at = before = best_at = start
    best, g = land.slope(at)
    last, rises, checked = best, 0, best
    span = max(1, round(0.22 * steps))
    until = span
    for step in range(1, steps + 1):
        ahead = [a + d for a, d in zip(at, norm.steepest(g, length), strict=True)]
        ahead = norm.project(ahead, rho)
        mixed = [a + MOMENTUM * (z - a) + (1 - MOMENTUM) * (a - b) for a, z, b in zip(at, ahead, before, strict=True)]
        before, at = at, norm.project(mixed if step > 1 else ahead, rho)
        value, g = land.slope(at)
        rises += value > last
        last = value
        if value > best:
            best, best_at = value, at
        if step == until:  # too few rises, or nothing new: smaller steps, from the best point
            if rises < RISES * span or best == checked:
                length /= 2
                at = before = best_at
                last, g = land.slope(at)
            checked, rises = best, 0
            span = max(1, max(span - round(0.03 * steps), round(0.06 * steps)))
            until += span
    return best


def average(land: Landscape, rho: float, draws: int, seed: int) -> list[float]:
    """The loss at each of some random points, less the loss at the weights."""
    generator, here = torch.Generator().manual_seed(seed), land.value()
    return [land.value(_random(land, rho, generator)) - here for _ in range(draws)]


def _random(land: Landscape, rho: float, generator: torch.Generator) -> list[Tensor]:
    found = []
    for p in land.parameters:
        if land.norm.p == math.inf:
            drawn = torch.rand(p.shape, generator=generator, dtype=torch.float64) * 2 - 1
        else:
            drawn = torch.randn(p.shape, generator=generator, dtype=torch.float64)
        found.append((rho * drawn).to(p))
    return found


def sharpness(
    model: nn.Module,
    batches: Batches,
    loss: Loss,
    norm: Norm,
    rho: float,
    steps: int,
    restarts: int,
    seed: int,
    ranks: Ranks = ALONE,
) -> float:
    """By one step where steps is 0, else by APGD."""
    land = Landscape(model, batches, loss, norm, ranks)
    try:
        here = land.value()
        return (land.value(one_step(land, rho)) if steps == 0 else apgd(land, rho, steps, restarts, seed)) - here
    finally:
        land.close()


def m_sharpness(
    model: nn.Module,
    batches: Batches,
    loss: Loss,
    norm: Norm,
    rho: float,
    m: int | None,
    steps: int,
    restarts: int,
    seed: int,
    ranks: Ranks = ALONE,
) -> float:
    """The mean over groups of m samples of each group's own sharpness; of all samples at once where m is None.

    A group is one rank's alone: the ranks meet once, at the end.
    """
    if m is None:
        return sharpness(model, batches, loss, norm, rho, steps, restarts, seed, ranks)
    groups = _groups(batches, m)
    found = [
        len(y) * sharpness(model, [(x, y)], loss, norm, rho, steps, restarts, seed + place)
        for place, (x, y) in ranks.mine(list(enumerate(groups)))
    ]
    return ranks.add_up([math.fsum(found)])[0] / sum(len(y) for _, y in groups)
