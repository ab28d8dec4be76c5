"""Our own networks against their papers' formulas, written on tensors, layer by layer, in fp64."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sam_repro.models.pyramidnet import PyramidNet
from sam_repro.models.resnet_cifar import ResNetCifar
from sam_repro.models.wrn import WideResNet


class Weights:
    """A network's convolutions, batch norms and head in the order of their construction, taken one by one."""

    def __init__(self, model: nn.Module) -> None:
        layers = [m for m in model.modules() if isinstance(m, nn.Conv2d | nn.BatchNorm2d | nn.Linear)]
        self.left: list[nn.Module] = layers

    def _take(self, kind: type) -> nn.Module:
        return self.left.pop(next(i for i, layer in enumerate(self.left) if isinstance(layer, kind)))

    def conv(self, x: Tensor, stride: int = 1) -> Tensor:
        weight = self._take(nn.Conv2d).weight
        return F.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)

    def bn(self, x: Tensor) -> Tensor:
        layer = self._take(nn.BatchNorm2d)
        mean, variance = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), keepdim=True, unbiased=False)
        scale, shift = layer.weight[:, None, None], layer.bias[:, None, None]
        return (x - mean) / (variance + 1e-5).sqrt() * scale + shift

    def head(self, x: Tensor) -> Tensor:
        layer = self._take(nn.Linear)
        assert not self.left
        return x.mean((2, 3)) @ layer.weight.T + layer.bias


def resnet(w: Weights, x: Tensor, blocks: int, stem_stride: int) -> Tensor:
    x = w.bn(w.conv(x, stem_stride)).relu()
    for stage in range(3):
        for block in range(blocks):
            changes = stage > 0 and block == 0
            y = w.bn(w.conv(x, 2 if changes else 1)).relu()
            y = w.bn(w.conv(y))
            shortcut = w.bn(w.conv(x, 2)) if changes else x
            x = (y + shortcut).relu()
    return w.head(x)


def wide_resnet(w: Weights, x: Tensor, blocks: int) -> Tensor:
    x = w.conv(x)
    for stage in range(3):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            active = w.bn(x).relu()
            y = w.conv(active, stride)
            y = w.conv(w.bn(y).relu())
            x = y + (w.conv(active, stride) if block == 0 else x)
    return w.head(w.bn(x).relu())


def pyramidnet(w: Weights, x: Tensor, blocks: int, bottleneck: bool) -> Tensor:
    x = w.bn(w.conv(x))
    for number in range(blocks):
        stride = 2 if number in (blocks // 3, 2 * blocks // 3) else 1
        y = w.bn(x)
        if bottleneck:
            y = w.bn(w.conv(y)).relu()
            y = w.bn(w.conv(y, stride)).relu()
        else:
            y = w.bn(w.conv(y, stride)).relu()
        y = w.bn(w.conv(y))
        if stride == 2:
            x = (x[:, :, ::2, ::2] + x[:, :, 1::2, ::2] + x[:, :, ::2, 1::2] + x[:, :, 1::2, 1::2]) / 4
        x = y + torch.cat([x, x.new_zeros(len(x), y.shape[1] - x.shape[1], *x.shape[2:])], 1)
    return w.head(w.bn(x).relu())


CASES = {
    "resnet": (lambda: ResNetCifar(14, 4, 5), lambda w, x: resnet(w, x, 2, 1)),
    "strided resnet": (lambda: ResNetCifar(8, 4, 5, stem_stride=2), lambda w, x: resnet(w, x, 1, 2)),
    "wide resnet": (lambda: WideResNet(16, 2, 5), lambda w, x: wide_resnet(w, x, 2)),
    "basic pyramid": (lambda: PyramidNet(14, 20, 5, False), lambda w, x: pyramidnet(w, x, 6, False)),
    "bottleneck pyramid": (lambda: PyramidNet(20, 20, 5, True), lambda w, x: pyramidnet(w, x, 6, True)),
}


@pytest.mark.parametrize("case", CASES)
def test_logits_are_those_of_the_formulas(case):
    make, reference = CASES[case]
    torch.manual_seed(0)
    model = make().double()
    for layer in model.modules():  # away from 1 and 0, where a missing scale or shift could not be seen
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.weight)
            nn.init.normal_(layer.bias)
    images = torch.randn(3, 3, 16, 16, dtype=torch.float64)
    torch.testing.assert_close(model(images), reference(Weights(model), images), rtol=1e-9, atol=1e-9)
