"""Loss and accuracy of a model on a test set, shared among the ranks."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sam_repro.data import EvalData
from sam_repro.engine.precision import autocast
from sam_repro.engine.ranks import Ranks
from sam_repro.schema import Config


@torch.no_grad()
def evaluate(model: nn.Module, data: EvalData, config: Config, ranks: Ranks) -> dict[str, float]:
    """test_loss (without label smoothing) and test_accuracy, test_top5 in percent."""
    was_training = model.training
    model.eval()
    totals = torch.zeros(4, dtype=torch.float64, device=ranks.device)
    for batch in data.batches(config.loop.eval_batch, ranks.rank, ranks.world):
        images = batch.images
        if config.runtime.channels_last:
            images = images.contiguous(memory_format=torch.channels_last)
        with autocast(ranks.device, config.runtime.precision):
            output = model(images)
        output = output.to(torch.promote_types(output.dtype, torch.float32))
        top = output.topk(min(5, output.shape[1]), dim=1).indices == batch.targets[:, None]
        totals += torch.stack([
            F.cross_entropy(output, batch.targets, reduction="sum"), top[:, 0].sum(), top.sum(), _count(batch.targets)
        ]).double()  # fmt: skip
    model.train(was_training)
    ranks.sum_([totals])
    loss, top1, top5, count = totals.tolist()
    return {"test_loss": loss / count, "test_accuracy": 100 * top1 / count, "test_top5": 100 * top5 / count}


def _count(targets: Tensor) -> Tensor:
    return torch.tensor(len(targets), device=targets.device)
