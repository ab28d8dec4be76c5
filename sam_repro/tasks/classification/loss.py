"""The two losses of a model's outputs that the papers and their authors' code train with."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from sam_repro.config.schema import Loss


def loss_of(loss: Loss, logits: Tensor, targets: Tensor, smoothing: float = 0.0, reduction: str = "none") -> Tensor:
    """Of every sample, or their sum. `targets` are classes, or a share of each class where samples are mixed.

    Smoothing takes from the true class and gives to all under softmax. Under sigmoid, whose classes do not add up to
    one, it lifts the others alone, as in the code of R-SAM: a target t becomes t (1 - smoothing) + smoothing.
    """
    if loss is Loss.softmax:
        return F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction=reduction)
    shares = targets if targets.is_floating_point() else F.one_hot(targets, logits.shape[1])
    lifted = shares.to(logits.dtype) * (1 - smoothing) + smoothing
    each = F.binary_cross_entropy_with_logits(logits, lifted, reduction="none").sum(1)
    return each.sum() if reduction == "sum" else each
