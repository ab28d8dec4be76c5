"""The loss of every token of a batch of translations."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from sam_repro.tasks.translation.bpe import PAD


def token_losses(logits: Tensor, target_out: Tensor, smoothing: float = 0.0) -> Tensor:
    """[tokens]: -(1 - e) log p(y) - e/V sum_v log p(v) of each token, row by row; padding has none.

    logits: [tokens, symbols], as `Transformer` gives them. The weight of each token is one.
    """
    exact = logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits
    return F.cross_entropy(exact, target_out[target_out != PAD], label_smoothing=smoothing, reduction="none")


def of_sentences(each: Tensor, target_out: Tensor) -> tuple[Tensor, Tensor]:
    """([n], [n]): the sum of each sentence's token losses, and its weight, the number of its tokens."""
    weights = (target_out != PAD).sum(1)
    rows = torch.repeat_interleave(torch.arange(len(target_out), device=each.device), weights)
    return each.new_zeros(len(target_out)).index_add(0, rows, each), weights.to(each.dtype)
