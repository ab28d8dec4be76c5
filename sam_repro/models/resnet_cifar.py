"""ResNet of 6n+2 layers for small images (He et al. 2016, section 4.2), and its miniature ResNet-8."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sam_repro.models.layers import conv1x1, conv3x3, global_average, he_initialise


class Block(nn.Module):
    """conv-bn-relu-conv-bn plus shortcut, then relu. Where the shape changes the shortcut is a 1x1 convolution with
    batch norm (the paper's option B), as in the ASAM authors' models, and not the zero padding of option A."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = conv3x3(inputs, outputs, stride)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = conv3x3(outputs, outputs)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if inputs != outputs:
            self.shortcut = nn.Sequential(conv1x1(inputs, outputs, stride), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        out = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(out)) + self.shortcut(x))


class ResNetCifar(nn.Module):
    """A 3x3 stem, three stages of (depth - 2) / 6 blocks with `width`, 2 `width` and 4 `width` channels, linear head.

    stem_stride=2 halves the image before the first stage: a quarter of the work, for miniatures.
    """

    def __init__(self, depth: int, width: int, classes: int, stem_stride: int = 1) -> None:
        super().__init__()
        assert (depth - 2) % 6 == 0, depth
        self.stem = conv3x3(3, width, stem_stride)
        self.bn = nn.BatchNorm2d(width)
        stages: list[nn.Module] = []
        channels = width
        for stage in range(3):
            outputs = width * 2**stage
            for block in range((depth - 2) // 6):
                stages.append(Block(channels, outputs, 2 if stage > 0 and block == 0 else 1))
                channels = outputs
        self.blocks = nn.Sequential(*stages)
        self.head = nn.Linear(channels, classes)
        he_initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.blocks(torch.relu(self.bn(self.stem(x))))
        logits: Tensor = self.head(global_average(out))
        return logits
