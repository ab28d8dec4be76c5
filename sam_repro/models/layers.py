"""The pieces that our own residual networks share."""

from __future__ import annotations

from torch import Tensor, nn


def conv3x3(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)


def conv1x1(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)


def global_average(x: Tensor) -> Tensor:
    """[n, c, h, w] -> [n, c]. A mean and not a pooling layer: it takes every image size and every memory format."""
    return x.mean((2, 3))


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
