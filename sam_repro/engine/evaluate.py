"""What a task says of a model on its test set, shared among the ranks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sam_repro.config.schema import Config
from sam_repro.engine.precision import forward
from sam_repro.engine.ranks import Ranks
from sam_repro.engine.task import Task


@torch.no_grad()
def evaluate(model: nn.Module, task: Task, config: Config, ranks: Ranks) -> dict[str, float]:
    """The scores of an epoch's record."""

    def computed(*inputs: Tensor) -> Tensor:
        return forward(model, inputs, config.runtime)

    was_training = model.training
    model.eval()
    totals = torch.zeros(task.judged, dtype=torch.float64, device=ranks.device)
    for batch in task.test.batches(config.loop.eval_batch, ranks.rank, ranks.world):
        totals += task.judge(model, computed, batch).double()
    model.train(was_training)
    ranks.sum_([totals])
    return dict(task.scores(totals.tolist()))
