"""One step at work: what the options of a method may look at, and change."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from sam_repro.methods.ascents import Data
from sam_repro.methods.passes import Passes, owns_storage
from sam_repro.methods.state import State
from sam_repro.methods.vector import Tensors


@dataclass
class Work:
    run: Passes
    state: State  # of this shard; goes back when the step does
    shared: State  # of all shards: changed at the end of a step only, by what `sum_over_shards` collected
    names: list[str]
    params: list[Tensor]
    scope: list[int]  # the places of the parameters that are perturbed
    lazy: bool  # the arithmetic: see vector.py
    observe: bool  # whether norms are wanted for the log
    noise: dict[int, Tensor] = field(default_factory=dict)  # d0, by parameter
    where: list[int] = field(default_factory=list)  # the parameters in scope with an ascent gradient
    g: Tensors = field(default_factory=list)  # theirs

    def with_gradient(self) -> list[int]:
        return [i for i, p in enumerate(self.params) if p.grad is not None]

    def in_scope(self) -> list[int]:
        """Those of them that the perturbation is of."""
        return [i for i in self.scope if self.params[i].grad is not None]

    def gradients(self, where: list[int]) -> Tensors:
        return [g for i in where if (g := self.params[i].grad) is not None]

    def set_gradient(self, i: int, value: Tensor) -> None:
        """Into the memory that is there, if there is: it may be a view of a bucket."""
        grad = self.params[i].grad
        if grad is None:
            self.params[i].grad = value
        else:
            grad.copy_(value)

    def another_gradient(self, data: Data) -> dict[int, Tensor]:
        """The gradient of other data at these weights, by parameter in scope. `g` stays: it leaves `.grad`."""
        self.g = [x if owns_storage(x) else x.clone() for x in self.g]
        for i, x in zip(self.where, self.g, strict=True):
            if self.params[i].grad is x:
                self.params[i].grad = None
        self.run(data)
        where = self.in_scope()
        return dict(zip(where, self.gradients(where), strict=True))

    def sum_over_shards(self, name: str, like: Tensor) -> Tensor:
        """Where a parameter's sum over the shards of this step is collected."""
        total = self.shared.of("total")
        if name not in total:
            total[name] = torch.zeros_like(like)
        return total[name]
