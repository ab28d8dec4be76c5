"""The parameters of a model that a method was not given: their gradients are a pass's own, as one backward leaves them.

Who gives names and tensors does not say of which model they are, so the modules that a pass calls are asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from sam_repro.methods.passes import drop_gradients


class Others:
    def __init__(self, own: list[Tensor]):
        self._known = {id(p): p for p in own}  # the tensors, too, so that no id is used again
        self._others: list[Tensor] = []
        self._met: WeakSet[nn.Module] = WeakSet()

    @contextmanager
    def watched(self, anew: bool) -> Iterator[None]:
        """For one pass, which may be over several micro-batches: old gradients go, its own add up.

        anew: it is no further part of the batch that the last pass was over.
        """
        if anew:
            drop_gradients(self._others)
        hook = register_module_forward_pre_hook(self._meet)
        try:
            yield
        finally:
            hook.remove()

    def _meet(self, module: nn.Module, _: Any) -> None:
        if torch.compiler.is_compiling() or module in self._met:
            return
        self._met.update(module.modules())
        new: list[Tensor] = [p for p in module.parameters() if p.is_leaf and id(p) not in self._known]
        self._known |= {id(p): p for p in new}
        self._others += new
        drop_gradients(new)
