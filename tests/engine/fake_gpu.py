"""A GPU that is not there: tensors on "cuda" have shapes, types and strides but no values, those on the host are real.

So a tensor on the wrong device is an error without a GPU, as are most operations that CUDA has not, and whatever makes
the host wait can be counted: a value fetched, a copy from or to memory that is not pinned. Kernels are not run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_leaves

GPU = torch.device("cuda", 0)


class FakeGpu(FakeTensorMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__(allow_fallback_kernels=False, allow_non_fake_inputs=True)
        self.waits: Counter[str] = Counter()  # calls for which the host waits for the device
        self.calls: Counter[str] = Counter()  # operations on it that compute: as many launches, or a few more
        self._inside = False  # an operation that torch takes apart

    @property
    def avoid_device_init(self) -> bool:
        return True

    def forget(self) -> None:
        self.waits.clear()
        self.calls.clear()

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        leaves = tree_leaves((args, kwargs))
        fakes = [t for t in leaves if isinstance(t, FakeTensor)]
        place = kwargs.get("device")
        if not fakes and (place is None or torch.device(place).type == "cpu"):
            return func(*args, **kwargs)
        name = func.name()
        if name == "aten::_local_scalar_dense":
            self.waits["a value fetched"] += fakes[0].device.type == "cuda"
            return torch.zeros((), dtype=fakes[0].dtype).item()
        if self._inside:
            return super().dispatch(func, types, args, kwargs)
        self._count(func, leaves, place)
        if name == "aten::_fused_sgd_":  # torch has no meta kernel of it
            return fused(*args[:3])
        self._inside = True
        try:
            return super().dispatch(func, types, args, kwargs)
        finally:
            self._inside = False

    def _count(self, func: Any, leaves: Sequence[Any], place: Any) -> None:
        if func.namespace != "aten" or is_view(func):
            return
        tensors = [t for t in leaves if isinstance(t, Tensor)]
        name = func.name().partition(".")[0]
        if name in ("aten::_to_copy", "aten::copy_"):
            ways = [t.device.type for t in tensors] + ([torch.device(place).type] if place is not None else [])
            if len(set(ways)) > 1 and not any(leaf is True for leaf in leaves):  # the only flag is non_blocking
                self.waits["a copy to the device" if ways[-1] != ways[0] == "cpu" or name == "aten::copy_" else
                           "a copy from the device"] += 1  # fmt: skip
        if name not in ("aten::empty", "aten::new_empty", "aten::empty_like", "aten::lift_fresh", "aten::empty_strided",
                        "aten::new_empty_strided", "aten::is_pinned", "aten::set_"):  # fmt: skip
            self.calls[name] += 1


def fused(weights: list[Tensor], gradients: list[Tensor], momenta: list[Tensor]) -> None:
    """What CUDA's kernel asks for, which walks through all of them in the order of memory."""
    for same in zip(weights, gradients, *[momenta] * bool(momenta), strict=True):
        forms = {(t.device, t.dtype, t.shape, t.stride()) for t in same}
        assert len(forms) == 1, f"fused SGD on tensors that are laid out differently: {forms}"


def is_view(func: Any) -> bool:
    """Whether it returns an alias of what it was given, and computes nothing."""
    returns = func._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def backward(tensors: Any, *_: Any, **__: Any) -> None:
    """`torch.autograd.backward` of a scalar, node by node: torch's engine wants a driver as soon as it sees "cuda"."""
    root = tensors.grad_fn
    given: dict[Any, list[Tensor | None]] = {root: [torch.ones_like(tensors)]}
    needed = dependencies(root)
    ready = [root]
    with torch.no_grad():
        while ready:
            node = ready.pop()
            found = node(*given.pop(node)) if not kept(node, given) else ()
            found = found if isinstance(found, tuple) else (found,)
            for gradient, (following, place) in zip(found, node.next_functions, strict=False):
                if following is None:
                    continue
                slots = given.setdefault(following, [])
                slots += [None] * (place + 1 - len(slots))
                if gradient is not None:
                    form = following._input_metadata[place]
                    gradient = gradient.sum_to_size(form.shape).to(form.dtype)
                    slots[place] = gradient if slots[place] is None else slots[place] + gradient
                needed[following] -= 1
                if not needed[following]:
                    ready.append(following)


def kept(node: Any, given: dict[Any, list[Tensor | None]]) -> bool:
    """Whether the gradient becomes `.grad` as it is, as it does where nobody else holds it and its layout is right."""
    leaf = getattr(node, "variable", None)
    if leaf is None or leaf.grad is not None or given[node][0].stride() != leaf.stride():  # type: ignore[union-attr]
        return False
    leaf.grad = given.pop(node)[0].detach()  # type: ignore[union-attr]
    return True


def dependencies(root: Any) -> Counter[Any]:
    """How many edges lead to each node."""
    count: Counter[Any] = Counter()
    seen, todo = {root}, [root]
    while todo:
        for following, _ in todo.pop().next_functions:
            if following is None:
                continue
            count[following] += 1
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return count


class NoGenerator:
    """A random tensor has a shape, too, whatever it was drawn by."""

    def manual_seed(self, seed: int) -> None: ...


@contextmanager
def fake_gpu() -> Iterator[FakeGpu]:
    real = torch.Generator

    def generator(device: Any = "cpu") -> Any:
        return NoGenerator() if torch.device(device).type == "cuda" else real(device)

    def tolist(t: Tensor) -> Any:  # of an accelerator's tensor torch copies all values at once
        mode.waits["values fetched"] += 1
        return torch.Tensor.tolist(torch.ones(t.shape, dtype=t.dtype, device="cpu"))

    with pytest.MonkeyPatch.context() as patch, FakeGpu() as mode:
        patch.setattr(torch.cuda, "is_available", lambda: True)
        patch.setattr(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False)
        patch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
        patch.setattr(torch.cuda, "manual_seed", lambda seed: None)
        patch.setattr(torch, "Generator", generator)
        patch.setattr(torch.Tensor, "is_pinned", lambda t, device=None: True)
        patch.setattr(torch.Tensor, "pin_memory", lambda t, device=None: t)
        patch.setattr(FakeTensor, "tolist", tolist)
        patch.setattr(torch.autograd, "backward", backward)
        # Which looks for torch's own tensors, and none that are fake.
        patch.setattr(torch.nn.utils.clip_grad, "_has_foreach_support", lambda tensors, device: device.type == "cuda")
        yield mode
