"""The pieces that our own residual networks share."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


def conv3x3(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)


def conv1x1(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)


class Sliced(nn.Conv2d):
    """A 1x1 convolution with a stride, computed as one without on every so many pixels."""

    def forward(self, x: Tensor) -> Tensor:
        rows, columns = self.stride
        return functional.conv2d(x[:, :, ::rows, ::columns], self.weight, self.bias, groups=self.groups)


def slice_narrow(model: nn.Module) -> nn.Module:
    """Give a model's strided 1x1 convolutions of few channels a form that torch survives.

    On a CPU with several threads the backward pass of a channels-last one on fewer than 16 channels and an odd number
    of samples writes beyond its memory (seen in torch 2.15): the process dies, there or later.
    """
    for module in model.modules():
        if type(module) is not nn.Conv2d or module.in_channels >= 16:
            continue
        if (module.kernel_size, module.padding) == ((1, 1), (0, 0)) and module.stride != (1, 1):
            module.__class__ = Sliced
    return model


def global_average(x: Tensor) -> Tensor:
    """[n, c, h, w] -> [n, c]. A mean and not a pooling layer: it takes every image size and every memory format."""
    return x.mean((2, 3))


class SquarePool(nn.AdaptiveAvgPool2d):
    """Adaptive average pooling with a backward pass that is deterministic on CUDA, where torch's is not.

    Cell i of `size` takes the mean of the rows floor(i h / size) to ceil((i + 1) h / size), as torch has it, and
    likewise of columns: y = A x B'. Images that are as large already, or one pixel, come through to the bit. On a CPU
    it is torch's own.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if x.device.type == "cpu" else self.deterministic(x)

    def deterministic(self, x: Tensor) -> Tensor:
        if x.shape[-2:] == (self.size, self.size):
            return x
        if x.shape[-2:] == (1, 1):
            return x.expand(-1, -1, self.size, self.size)
        return self._means(x, -2) @ x @ self._means(x, -1).mT

    def _means(self, x: Tensor, dimension: int) -> Tensor:
        """[size, n]: the weights of a mean over each cell."""
        n = x.shape[dimension]
        cell, at = torch.arange(self.size, device=x.device)[:, None], torch.arange(n, device=x.device)
        inside = (at >= cell * n // self.size) & (at < ((cell + 1) * n + self.size - 1) // self.size)
        return (inside / inside.sum(1, keepdim=True)).to(x.dtype)


def he_initialise(model: nn.Module) -> None:
    """He's normal initialisation with fan-out, batch norm at (1, 0), a zero bias in the linear head.

    Fan-out is what the authors' code of the three families here does (ResNet in Torch, WRN, PyramidNet); the linear
    weight keeps PyTorch's uniform default, as theirs.
    """
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
