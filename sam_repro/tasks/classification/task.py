"""Classifying images, as the engine asks for it: an image weighs one and is right or wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import torch
from torch import Tensor, nn

from sam_repro import models
from sam_repro.config.schema import Config
from sam_repro.data import Batch, Data, load
from sam_repro.data.evaluation_sets import EvaluationSet
from sam_repro.tasks.classification.declared import of_images
from sam_repro.tasks.classification.loss import loss_of


class Classification:
    unit = "images"
    counted = 1  # images whose best class is theirs
    judged = 4  # the losses, images whose best class is theirs, those that have it among their best five, all

    def __init__(self, config: Config, data: Data) -> None:
        self.config = config
        self.train, self.test, self.validation = data.train, data.test, data.validation
        self.classes, self.facts = data.classes, data.facts
        self.metrics = of_images(config.dataset.classes)

    @classmethod
    def load(cls, config: Config, device: torch.device) -> Self:
        return cls(config, load(config.dataset, config.augment, config.budget, config.seed, device))

    def build(self) -> nn.Module:
        return models.build(self.config.model, self.classes, self.config.dataset.image_size)

    def inputs(self, batch: Batch) -> tuple[Tensor, ...]:
        return (batch.images,)

    def losses(self, output: Tensor, batch: Batch) -> Tensor:
        return loss_of(self.config.loop.loss, output, batch.targets, self.config.augment.label_smoothing)

    def counts(self, output: Tensor, batch: Batch) -> Tensor:
        """Where targets are soft, their largest class is the image's."""
        labels = batch.targets if batch.targets.ndim == 1 else batch.targets.argmax(1)
        return (output.argmax(1) == labels).sum(0, keepdim=True)

    def trained(self, counts: Sequence[float], weight: float) -> dict[str, float | None]:
        return {"train_accuracy": 100 * counts[0] / weight if weight else None}

    def judge(self, model: nn.Module, forward: Callable[..., Tensor], batch: Batch) -> Tensor:
        """The loss is without label smoothing."""
        output = forward(*self.inputs(batch))
        top = output.topk(min(5, output.shape[1]), dim=1).indices == batch.targets[:, None]
        loss = loss_of(self.config.loop.loss, output, batch.targets, reduction="sum")
        count = torch.full((), len(batch.targets), device=batch.targets.device)
        return torch.stack([loss, top[:, 0].sum(), top.sum(), count])

    def scores(self, sums: Sequence[float]) -> dict[str, float]:
        loss, top1, top5, count = sums
        return {"test_loss": loss / count, "test_accuracy": 100 * top1 / count, "test_top5": 100 * top5 / count}


@torch.no_grad()
def accuracy(model: Callable[..., Tensor], test: EvaluationSet, batch_size: int) -> float:
    """The share of right answers by the test set's own rule. `model` computes in the run's precision."""
    right, count = list[Tensor](), 0
    for batch in test.data.batches(batch_size):
        right.append(test.correct(model(batch.images), batch.targets).sum())
        count += len(batch.targets)
    return float(sum(right)) / max(1, count)
