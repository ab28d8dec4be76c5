"""PyramidNet (Han et al. 2017), every block a little wider than the last, and ShakeDrop (Yamada et al. 2019)."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sam_repro.models.layers import conv1x1, conv3x3, global_average, he_initialise


class _Shake(torch.autograd.Function):
    """x * forward_factor, whose gradient is multiplied by another factor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, forward_factor: Tensor, backward_factor: Tensor) -> Tensor:
        ctx.save_for_backward(backward_factor)
        return x * forward_factor

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (factor,) = ctx.saved_tensors
        return grads[0] * factor, None, None


class ShakeDrop(nn.Module):
    """Yamada et al. 2019, equation 6: with chance `shaken` a sample's residual branch is multiplied by alpha in the
    forward and by beta in the backward pass,

        forward   b + alpha - b alpha,   alpha ~ U(-1, 1)
        backward  b + beta  - b beta,    beta  ~ U(0, 1),      b ~ Bernoulli(1 - shaken)
        at evaluation the expectation E[b + alpha - b alpha] = 1 - shaken.

    Gate and factors are drawn for every *sample*, as in the code of AutoAugment and of the SAM authors whose recipe the
    ASAM paper follows; a popular port draws one gate a batch, which would tie the samples of an m-shard together.
    All three are drawn in the forward pass, from torch's global generator: a reseeded pass is the same pass.
    """

    def __init__(self, shaken: float) -> None:
        super().__init__()
        self.shaken = shaken

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x * (1 - self.shaken)
        gate, alpha, beta = torch.rand(3, x.shape[0], 1, 1, 1, device=x.device).unbind()
        kept = gate >= self.shaken
        forward_factor = torch.where(kept, 1.0, 2 * alpha - 1).to(x.dtype)
        backward_factor = torch.where(kept, 1.0, beta).to(x.dtype)
        out: Tensor = _Shake.apply(x, forward_factor, backward_factor)
        return out


class Block(nn.Module):
    """Batch norm first and last, no relu after the first one and after the addition (figure 6d of the paper). The
    shortcut has no parameters: it pools where the stride is 2 and fills the new channels with zeros.

    `inner` is the channels of the 3x3 convolution(s); a bottleneck block puts out four times as many.
    """

    def __init__(self, inputs: int, inner: int, stride: int, bottleneck: bool, shaken: float) -> None:
        super().__init__()
        if bottleneck:
            convolutions = [conv1x1(inputs, inner), conv3x3(inner, inner, stride), conv1x1(inner, 4 * inner)]
        else:
            convolutions = [conv3x3(inputs, inner, stride), conv3x3(inner, inner)]
        layers: list[nn.Module] = [nn.BatchNorm2d(inputs)]
        for i, convolution in enumerate(convolutions):
            layers += [nn.ReLU()] if i > 0 else []
            layers += [convolution, nn.BatchNorm2d(convolution.out_channels)]
        self.branch = nn.Sequential(*layers)
        self.shake = ShakeDrop(shaken) if shaken > 0 else nn.Identity()
        self.stride = stride
        self.new_channels = convolutions[-1].out_channels - inputs

    def forward(self, x: Tensor) -> Tensor:
        shortcut = F.avg_pool2d(x, 2, ceil_mode=True) if self.stride == 2 else x
        shortcut = F.pad(shortcut, (0, 0, 0, 0, 0, self.new_channels))
        out: Tensor = shortcut + self.shake(self.branch(x))
        return out


class PyramidNet(nn.Module):
    """A 16-channel stem and N blocks in three stages of equal length; block l has round(16 + l alpha / N) channels.

    Rounded as in the authors' code (the paper's equation 2 truncates). `shaken` is the last block's chance in
    ShakeDrop, which rises linearly: block l has l / N of it (equation 5 of Yamada et al., p_L = 1 - shaken).
    """

    def __init__(self, depth: int, alpha: int, classes: int, bottleneck: bool, shaken: float = 0.0) -> None:
        super().__init__()
        layers_a_block = 3 if bottleneck else 2
        assert (depth - 2) % (3 * layers_a_block) == 0, depth
        blocks = (depth - 2) // layers_a_block
        self.stem = conv3x3(3, 16)
        self.bn1 = nn.BatchNorm2d(16)
        stages: list[nn.Module] = []
        channels = 16
        for number in range(1, blocks + 1):
            inner = round(16 + number * alpha / blocks)
            stride = 2 if number in (blocks // 3 + 1, 2 * blocks // 3 + 1) else 1
            stages.append(Block(channels, inner, stride, bottleneck, shaken * number / blocks))
            channels = 4 * inner if bottleneck else inner
        self.blocks = nn.Sequential(*stages)
        self.bn2 = nn.BatchNorm2d(channels)
        self.head = nn.Linear(channels, classes)
        he_initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        out = torch.relu(self.bn2(self.blocks(self.bn1(self.stem(x)))))
        logits: Tensor = self.head(global_average(out))
        return logits
