"""Products of a vector with the Hessian of a loss or with its Gauss-Newton matrix, over batches and ranks.

    Hessian       H v = d/dw <grad L(w), v>
    Gauss-Newton  G v = J^T (d^2 l / df^2) J v,   J = df/dw: what is left of H where the outputs f were linear in w

Without autocast: half precision would drown small eigenvalues. Each batch's graph is kept between products, so that a
product of the Hessian is one backward pass of the gradient's own graph and not the whole way from the weights again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, jvp

from sam_repro.engine.ranks import Ranks

Matrix = Literal["hessian", "gauss_newton"]
Loss = Callable[[Tensor, Tensor], Tensor]  # (outputs, targets) -> the sum over the batch
Vector = NDArray[np.float64]
T = TypeVar("T")


@dataclass
class Products:
    """`batches` are this rank's; `total` counts the samples of all ranks, over which the loss is the mean."""

    model: nn.Module
    batches: Sequence[tuple[Tensor, Tensor]]
    loss: Loss
    total: int
    matrix: Matrix
    ranks: Ranks
    keep: bool = True  # the graphs of all batches at once: as much memory as a backward pass over all of them
    count: int = 0

    def __post_init__(self) -> None:
        self.named = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        self.parameters = list(self.named.values())
        self.size = sum(p.numel() for p in self.parameters)

    def led(self, iterate: Callable[[Callable[[Vector], Vector]], T]) -> T:
        """What an iteration on products finds, on every rank.

        The main rank alone iterates, and says each vector: the others answer. When an iteration ends is a matter of
        rounding, and ranks that disagree of it would wait for ever; and the vectors that it keeps fill a memory.
        """
        if self.ranks.world == 1:
            return iterate(self)
        if self.ranks.main:
            found = iterate(lambda vector: self(self.ranks.share(vector)))
            self.ranks.share(None)
            return self.ranks.share(found)  # type: ignore[no-any-return]
        while (vector := self.ranks.share(None)) is not None:
            self(vector)
        return self.ranks.share(None)  # type: ignore[no-any-return]

    def __call__(self, vector: Vector) -> Vector:
        self.count += 1
        parts = self._split(vector)
        sums = [torch.zeros_like(p) for p in self.parameters]
        one = self._hessian if self.matrix == "hessian" else self._gauss_newton
        for number in range(len(self.batches)):
            torch._foreach_add_(sums, one(number, parts))
        self.ranks.sum_(sums)
        flat = torch.cat([part.reshape(-1) for part in sums]).div_(self.total)
        return flat.cpu().numpy().astype(np.float64)

    def _split(self, vector: Vector) -> list[Tensor]:
        whole = torch.from_numpy(np.ascontiguousarray(vector).reshape(-1))
        pieces = torch.split(whole, [p.numel() for p in self.parameters])
        return [piece.to(p).view_as(p) for piece, p in zip(pieces, self.parameters, strict=True)]

    @cached_property
    def _kept(self) -> dict[int, list[Tensor]]:
        return {}

    def _graph(self, number: int, make: Callable[[], list[Tensor]]) -> list[Tensor]:
        """A batch's gradient or outputs with their graph, from the last product if they are kept."""
        if not self.keep:
            return make()
        if number not in self._kept:
            self._kept[number] = make()
        return self._kept[number]

    def _gradient(self, number: int) -> list[Tensor]:
        inputs, targets = self.batches[number]
        loss = self.loss(self.model(inputs), targets)
        return list(torch.autograd.grad(loss, self.parameters, create_graph=True, materialize_grads=True))

    def _hessian(self, number: int, parts: Sequence[Tensor]) -> list[Tensor]:
        gradient = self._graph(number, lambda: self._gradient(number))
        # Of a parameter that the loss is linear in, or does not see, the gradient has no graph: its row is zero.
        pairs = [(g, v) for g, v in zip(gradient, parts, strict=True) if g.requires_grad]
        found = torch.autograd.grad(
            [g for g, _ in pairs],
            self.parameters,
            [v for _, v in pairs],
            retain_graph=self.keep,
            materialize_grads=True,
        )
        return list(found)

    def _gauss_newton(self, number: int, parts: Sequence[Tensor]) -> list[Tensor]:
        inputs, targets = self.batches[number]
        (outputs,) = self._graph(number, lambda: [self.model(inputs)])

        def f(parameters: dict[str, Tensor]) -> Tensor:
            found: Tensor = functional_call(self.model, parameters, (inputs,))
            return found

        point = {name: p.detach() for name, p in self.named.items()}
        along = jvp(f, (point,), (dict(zip(self.named, parts, strict=True)),))[1]
        at = outputs.detach().requires_grad_()
        (slope,) = torch.autograd.grad(self.loss(at, targets), at, create_graph=True)
        (curved,) = torch.autograd.grad(slope, at, along)
        found = torch.autograd.grad(outputs, self.parameters, curved, retain_graph=self.keep, materialize_grads=True)
        return list(found)
