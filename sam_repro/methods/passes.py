"""The passes that a method asks for: what a pass is, and the one place that calls the user's function for it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sam_repro.methods.ascents import Data


@dataclass(frozen=True)
class Pass:
    """One forward and backward pass: the mean gradient of this data at the weights as they are now."""

    data: Data = "batch"
    fraction: float = 1.0  # of the batch
    keep: float = 1.0  # share of the batch: the samples whose loss rose most since the step's first pass (ESAM)
    index: int = 0  # 0 is the step's first pass
    part: int = 0  # of the batch, from 0
    parts: int = 1  # into which the batch is split: their losses and gradients add up to its mean

    @property
    def whole(self) -> bool:
        """Whether it is over the whole batch at once, as a closure without arguments is."""
        return self.data == "batch" and self.fraction == 1 and self.keep == 1 and self.parts == 1

    @property
    def last(self) -> bool:
        """Whether it ends the batch: of several parts, the last one does."""
        return self.part == self.parts - 1

    def of(self, size: int) -> tuple[slice, int]:
        """(The samples that it is over of a batch of that size, what the sum of their losses is divided by.)"""
        if self.parts > 1:
            each, longer = divmod(size, self.parts)  # the first parts have a sample more
            begins = self.part * each + min(self.part, longer)
            return slice(begins, begins + each + (self.part < longer)), size
        count = max(1, math.ceil(self.fraction * size))
        return slice(count), count


class Overflow(ArithmeticError):
    """A gradient that the loss scale made inf or NaN: the step has to be skipped."""


GradFn = Callable[..., Tensor]
Around = Callable[[bool], AbstractContextManager[object]]


class Passes:
    """Runs the passes of one step and keeps what the log wants to know of them."""

    def __init__(self, grad_fn: GradFn, params: list[Tensor], scaler: Any = None, around: Around = nullcontext):
        """around: the context that each pass runs in, given whether it starts anew or is one more part of the batch."""
        self._grad_fn = grad_fn
        self._params = params
        self._around = around
        self._scaler = scaler if scaler is not None and scaler.is_enabled() else None
        self._scale: Tensor | None = None
        self._takes_pass = _takes_an_argument(grad_fn)
        self._count = 0
        self.losses: list[Tensor] = []  # of each pass; parts of one batch are one
        self.batch_loss: Tensor | None = None  # of the first pass over the batch, or over a fraction of it

    def __call__(
        self, data: Data = "batch", fraction: float = 1.0, keep: float = 1.0, part: int = 0, parts: int = 1
    ) -> Tensor:
        wanted = Pass(data, fraction, keep, self._count, part, parts)
        self._count += 1
        if not (wanted.whole or self._takes_pass):
            raise ValueError(
                f"this method asks for {wanted}: give estimate() a function of one argument, the pass, "
                "since a closure without arguments only knows the batch"
            )
        drop_gradients(self._params)
        with torch.enable_grad(), self._around(part == 0):
            loss = self._grad_fn(wanted) if self._takes_pass else self._grad_fn()
        loss = loss.detach()
        self.losses.append(loss if part == 0 else self.losses.pop() + loss)
        if (self.batch_loss is None or part > 0) and data == "batch":
            self.batch_loss = self.losses[-1]
        if self._scaler is not None:
            self._unscale()
        return loss

    def _unscale(self) -> None:
        """Divide by the loss scale, for the direction of some methods depends on the length of the gradient."""
        grads = [p.grad for p in self._params if p.grad is not None]
        if not grads:
            return
        # A scaled one is the scale as a tensor, by the scaler's public interface and without waiting for the device.
        self._scale = self._scaler.scale(torch.ones((), device=grads[0].device))  # type: ignore[union-attr]
        found = torch.zeros((), device=grads[0].device)
        torch._amp_foreach_non_finite_check_and_unscale_(grads, found, self._scale.double().reciprocal().float())
        if found.item():  # one wait a pass, as `scaler.step` itself has one
            raise Overflow("inf or NaN in a gradient at this loss scale")

    def rescale(self) -> None:
        """Leave the final gradient as `scaler.step(optimizer)` expects it: scaled."""
        grads = [p.grad for p in self._params if p.grad is not None]
        if self._scale is not None and grads:
            torch._foreach_mul_(grads, self._scale)

    @property
    def scaled(self) -> bool:
        return self._scaler is not None


def drop_gradients(params: list[Tensor]) -> None:
    """A gradient that is a view (of a bucket, of a flat buffer) must stay that view: it is zeroed in place."""
    for p in params:
        if p.grad is None:
            continue
        if owns_storage(p.grad):
            p.grad = None
        else:
            p.grad.zero_()


def owns_storage(t: Tensor) -> bool:
    """Whether nothing else lives in, or looks into, this tensor's memory.

    A DDP bucket with a single parameter is covered by its view entirely, so sizes alone do not tell: count the users.
    """
    storage = t.untyped_storage()
    users: int = torch._C._storage_Use_Count(storage._cdata)
    # Two: the tensor, and `storage` here.
    return users == 2 and bool(storage.nbytes() == t.numel() * t.element_size())


def _takes_an_argument(f: GradFn) -> bool:
    """Whether f wants the pass; it may say so. An argument with a default is the caller's own (`lambda x=x: ...`)."""
    if (said := getattr(f, "takes_pass", None)) is not None:
        return bool(said)
    try:
        parameters = inspect.signature(f).parameters.values()
    except ValueError:  # a callable without a signature
        return True
    required = [p for p in parameters if p.default is p.empty]
    return any(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL) for p in required)
