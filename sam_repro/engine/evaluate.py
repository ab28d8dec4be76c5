"""What a task says of a model on its test set, and on its validation set if it has one, shared among the ranks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sam_repro.config.schema import Config
from sam_repro.engine.precision import forward
from sam_repro.engine.ranks import Ranks
from sam_repro.engine.task import Task, TestSet
from sam_repro.tasks.metric import on_validation


@torch.no_grad()
def evaluate(model: nn.Module, task: Task, config: Config, ranks: Ranks) -> dict[str, float]:
    """The scores of an epoch's record."""

    def computed(*inputs: Tensor) -> Tensor:
        return forward(model, inputs, config.runtime)

    def scores(held: TestSet) -> dict[str, float]:
        totals = torch.zeros(task.judged, dtype=torch.float64, device=ranks.device)
        for batch in held.batches(config.loop.eval_batch, ranks.rank, ranks.world):
            totals += task.judge(model, computed, batch).double()
        ranks.sum_([totals])
        return dict(task.scores(totals.tolist()))

    was_training = model.training
    model.eval()
    found = scores(task.test)
    if task.validation is not None:
        found |= {on_validation(name): value for name, value in scores(task.validation).items()}
    model.train(was_training)
    return found
