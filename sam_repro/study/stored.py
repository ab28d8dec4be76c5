"""A stored run as studies look at it: its model as it was left, on a fixed part of its training images as they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sam_repro.errors import UserError
from sam_repro.study.frame import Subject

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from sam_repro.config.schema import Config
    from sam_repro.study.sentences import Batches, Loss


@dataclass(frozen=True)
class Opened:
    config: Config
    model: nn.Module  # in evaluation mode, in the precision asked for
    batches: Batches  # normalised images, without augmentation, and their labels; or pairs of sentences
    loss: Loss  # summed over a batch, without the smoothing that it was trained with
    device: torch.device
    facts: dict[str, Any]  # to be recorded with every number

    @property
    def count(self) -> int:
        return sum(len(targets) for _, targets in self.batches)


def open_subject(subject: Subject, images: int, batch: int, *, double: bool = False) -> Opened:
    """Batch norm by its running statistics; `images` of the training half, the same share of each class."""
    import torch

    from sam_repro.config.reads import is_text
    from sam_repro.config.schema import AugmentConfig, BudgetConfig
    from sam_repro.data.loading import load
    from sam_repro.engine.ranks import device_of
    from sam_repro.evaluate import trained
    from sam_repro.runs.run import Run
    from sam_repro.tasks.classification.loss import loss_of

    run = Run.at(subject.results, subject.id)
    config = run.stored()
    if config.task is not None:
        raise UserError(f"run={run.id} is of another task: this study is of runs that classify images or translate")
    device = device_of(config.runtime, 0)
    model = trained(config, run.weights).to(device).eval()
    dtype = torch.float64 if double else torch.float32
    model = model.to(dtype)
    facts = {
        "id": subject.id, "label": subject.label, "method": config.method.name, "seed": config.seed,
        "augmented": False, "batchnorm": "running statistics", "loss_smoothing": 0.0,
        "trained_smoothing": config.augment.label_smoothing, "weight_decay": config.base_optimizer.weight_decay,
        "precision": "fp64" if double else "fp32",
    }  # fmt: skip
    if is_text(config):
        from sam_repro.study.sentences import open_translator

        joined, pairs, loss_of_tokens = open_translator(config, model, images, batch)
        count = sum(len(targets) for _, targets in pairs)
        return Opened(config, joined, pairs, loss_of_tokens, device, facts | {"images": count, "unit": "pairs"})
    limit = min(images, config.dataset.train_images or images, config.budget.train_images or images)
    data = replace(config.dataset, train_images=limit, test_images=config.dataset.classes)
    train = load(data, AugmentConfig(crop=0, flip=False), BudgetConfig(), config.seed, device).train
    batches = []
    for ids in torch.split(torch.arange(train.size), batch):
        found = train.gather(ids, 0)
        batches.append((found.images.to(dtype), found.targets))

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        return loss_of(config.loop.loss, outputs, targets, reduction="sum")

    return Opened(config, model, batches, loss, device, facts | {"images": train.size})


def gap_of(subject: Subject) -> float:
    """Test error less training error at the last epoch, in points."""
    from sam_repro.record import metrics
    from sam_repro.runs.run import Run

    run = Run.at(subject.results, subject.id)
    epochs = [record for record in metrics.read(run.path) if record["kind"] == "epoch"]
    last = epochs[-1] if epochs else {}
    for kind in ("accuracy", "token_accuracy"):
        if {f"train_{kind}", f"test_{kind}"} <= last.keys():
            return float(last[f"train_{kind}"]) - float(last[f"test_{kind}"])
    raise UserError(
        f"run={run.id} says no accuracy of its last epoch: this study is of runs that classify or translate"
    )
