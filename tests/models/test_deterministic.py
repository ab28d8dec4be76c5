"""What `runtime.determinism=bitwise` asks of the models on CUDA, seen on fake tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from models.conftest import Shipped
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from sam_repro.models import build
from sam_repro.models.layers import SquarePool

# Whose backward pass torch refuses under `use_deterministic_algorithms(True)` on CUDA.
REFUSED = ("adaptive_avg_pool", "adaptive_max_pool", "upsample", "grid_sampl", "reflection_pad", "replication_pad",
           "fractional_max_pool", "avg_pool3d", "max_pool3d", "max_unpool", "_ctc_loss", "nll_loss2d")  # fmt: skip


class Called(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(operator.name().removeprefix("aten::"))
        return operator(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("model", "size"),
    [("vgg19_bn_torchvision", 32), ("vgg19_bn_torchvision", 224), ("resnet18", 32)],
)
def test_no_model_calls_what_has_no_deterministic_backward_on_cuda(shipped: Shipped, model: str, size: int) -> None:
    with FakeTensorMode(), torch.device("cuda"):
        net = build(shipped(model), 10, size)
        with Called() as called:
            net(torch.randn(2, 3, size, size))
    assert "convolution" in called.names
    assert not [name for name in called.names if any(word in name for word in REFUSED)]


@pytest.mark.parametrize("shape", [(1, 1), (7, 7), (2, 5), (14, 9), (3, 3)])
def test_the_deterministic_pooling_is_torchs(shape: tuple[int, int]) -> None:
    exact = shape in ((1, 1), (7, 7))
    x = torch.randn(2, 3, *shape, dtype=torch.float32 if exact else torch.float64, requires_grad=True)
    weight = torch.randn(2, 3, 7, 7, dtype=x.dtype)

    def both(pooled: Tensor) -> tuple[Tensor, Tensor]:
        return pooled, torch.autograd.grad((pooled * weight).sum(), x)[0]

    ours, theirs = both(SquarePool(7).deterministic(x)), both(nn.AdaptiveAvgPool2d(7)(x))
    if exact:
        assert torch.equal(ours[0], theirs[0])
    torch.testing.assert_close(ours, theirs)
