"""A stored translator as studies look at it: some pairs of its training, so that inputs are one tensor as images are.

    inputs   [n, s + t]: the source beside the target that is read, each as wide as the longest, padded
    targets  [n, t]: the target that is to be said

Padding changes no loss. The loss of a pair is scaled so that its mean over the pairs is that of a token. Attention is
computed step by step, since its fused kernels have no second derivative.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from sam_repro.config.schema import Config
from sam_repro.tasks.translation.loss import token_losses
from sam_repro.tasks.translation.model import Transformer
from sam_repro.tasks.translation.task import Translation

Batches = list[tuple[Tensor, Tensor]]
Loss = Callable[[Tensor, Tensor], Tensor]


class Joined(nn.Module):
    def __init__(self, model: Transformer, width: int) -> None:
        super().__init__()
        self.model, self.width = model, width

    def forward(self, inputs: Tensor) -> Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            found: Tensor = self.model(inputs[:, : self.width], inputs[:, self.width :])
        return found


def open_translator(config: Config, model: nn.Module, pairs: int, batch: int) -> tuple[Joined, Batches, Loss]:
    """Of the first pairs of the training. The loss is without the smoothing that it was trained with."""
    assert isinstance(model, Transformer)
    task = Translation.load(config, model.target.weight.device)
    count = min(pairs, task.train.size)
    every = task.train.gather(torch.arange(count), 0)
    inputs = torch.cat([every.source, every.target_in], dim=1)
    scale = count / int(task.train.pairs.target.lengths[:count].sum())

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        return token_losses(outputs, targets).sum() * scale

    batches = list(zip(torch.split(inputs, batch), torch.split(every.target_out, batch), strict=True))
    return Joined(model, every.source.shape[1]), batches, loss
