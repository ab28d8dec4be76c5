"""The base optimizer: an ordinary one of torch.optim, which takes one ordinary step on the final gradient."""

from __future__ import annotations

import torch
from torch import nn

from sam_repro.config.schema import BaseOptimizerConfig, Optimizer


def build(config: BaseOptimizerConfig, model: nn.Module) -> torch.optim.Optimizer:
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [{"params": parameters, "weight_decay": config.weight_decay}]
    if not config.decay_norm_and_bias:
        groups = [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": config.weight_decay},
            {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
        ]
    lr = config.lr
    match config.name:
        case Optimizer.sgd:
            return torch.optim.SGD(groups, lr, momentum=config.momentum, nesterov=config.nesterov, fused=True)
        case Optimizer.rmsprop:
            return torch.optim.RMSprop(groups, lr, alpha=config.alpha, eps=config.eps, momentum=config.momentum)
        case Optimizer.adam:
            return torch.optim.Adam(groups, lr, betas=(config.beta1, config.beta2), eps=config.eps, fused=True)
        case Optimizer.adamw:
            return torch.optim.AdamW(groups, lr, betas=(config.beta1, config.beta2), eps=config.eps, fused=True)
