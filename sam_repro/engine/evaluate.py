"""Loss and accuracy of a model on a test set, shared among the ranks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sam_repro.config.schema import Config
from sam_repro.data import EvalData
from sam_repro.data.evaluations import EvaluationSet
from sam_repro.engine.loss import loss_of
from sam_repro.engine.precision import forward
from sam_repro.engine.ranks import Ranks


@torch.no_grad()
def accuracy(model: nn.Module, test: EvaluationSet, config: Config, device: torch.device) -> float:
    """The share of right answers by the test set's own rule."""
    right = torch.zeros((), dtype=torch.int64, device=device)
    count = 0
    for batch in test.data.batches(config.loop.eval_batch):
        right += test.correct(forward(model, batch.images, config.runtime), batch.targets).sum()
        count += len(batch.targets)
    return float(right) / max(1, count)


@torch.no_grad()
def evaluate(model: nn.Module, data: EvalData, config: Config, ranks: Ranks) -> dict[str, float]:
    """test_loss (without label smoothing) and test_accuracy, test_top5 in percent."""
    was_training = model.training
    model.eval()
    totals = torch.zeros(4, dtype=torch.float64, device=ranks.device)
    for batch in data.batches(config.loop.eval_batch, ranks.rank, ranks.world):
        logits = forward(model, batch.images, config.runtime)
        top = logits.topk(min(5, logits.shape[1]), dim=1).indices == batch.targets[:, None]
        totals += torch.stack([
            loss_of(config.loop.loss, logits, batch.targets, reduction="sum"), top[:, 0].sum(), top.sum(),
            _count(batch.targets),
        ]).double()  # fmt: skip
    model.train(was_training)
    ranks.sum_([totals])
    loss, top1, top5, count = totals.tolist()
    return {"test_loss": loss / count, "test_accuracy": 100 * top1 / count, "test_top5": 100 * top5 / count}


def _count(targets: Tensor) -> Tensor:
    return torch.tensor(len(targets), device=targets.device)
