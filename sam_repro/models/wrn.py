"""WRN-depth-k, the wide residual network (Zagoruyko and Komodakis 2016), pre-activation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sam_repro.models.layers import conv1x1, conv3x3, global_average, he_initialise


class Block(nn.Module):
    """bn-relu-conv-bn-relu-dropout-conv plus shortcut. Where the shape changes the shortcut is a bare 1x1 convolution
    of the *activated* input, as in the authors' code; elsewhere it is the raw input."""

    def __init__(self, inputs: int, outputs: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = conv3x3(inputs, outputs, stride)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.dropout = nn.Dropout(dropout) if dropout > 0 else nn.Identity()
        self.conv2 = conv3x3(outputs, outputs)
        self.shortcut = conv1x1(inputs, outputs, stride) if inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        active = torch.relu(self.bn1(x))
        out: Tensor = self.conv2(self.dropout(torch.relu(self.bn2(self.conv1(active)))))
        shortcut: Tensor = x if self.shortcut is None else self.shortcut(active)
        return out + shortcut


class WideResNet(nn.Module):
    """A 16-channel 3x3 stem, three stages of (depth - 4) / 6 blocks with 16 k, 32 k and 64 k channels, linear head."""

    def __init__(self, depth: int, widen: int, classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        assert (depth - 4) % 6 == 0, depth
        self.stem = conv3x3(3, 16)
        stages: list[nn.Module] = []
        channels = 16
        for stage in range(3):
            outputs = 16 * widen * 2**stage
            for block in range((depth - 4) // 6):
                stages.append(Block(channels, outputs, 2 if stage > 0 and block == 0 else 1, dropout))
                channels = outputs
        self.blocks = nn.Sequential(*stages)
        self.bn = nn.BatchNorm2d(channels)
        self.head = nn.Linear(channels, classes)
        he_initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        out = torch.relu(self.bn(self.blocks(self.stem(x))))
        logits: Tensor = self.head(global_average(out))
        return logits
