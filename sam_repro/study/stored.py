"""A stored run as studies look at it: its model as it was left, on a fixed part of its training images as they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sam_repro.errors import UserError
from sam_repro.study.frame import Subject

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sam_repro.config.schema import Config
    from sam_repro.engine.ranks import Ranks
    from sam_repro.study.sentences import Batches, Loss


@dataclass(frozen=True)
class Opened:
    config: Config
    model: nn.Module  # in evaluation mode, in the precision asked for
    batches: Batches  # of all ranks: normalised images, without augmentation, and labels; or pairs of sentences
    loss: Loss  # summed over a batch, without the smoothing that it was trained with
    ranks: Ranks  # which share the batches; on whose device they are
    facts: dict[str, Any]  # to be recorded with every number

    @property
    def count(self) -> int:
        return sum(len(targets) for _, targets in self.batches)


def open_subject(
    subject: Subject,
    images: int,
    batch: int,
    ranks: Ranks | None,
    *,
    double: bool = False,
    epoch: int | None = None,
) -> Opened:
    """Batch norm by its running statistics; `images` of the training half, the same share of each class.

    ranks: those that have met; None: this process alone, on the device that the run was trained on.
    epoch: with the weights that loop.keep_every kept of it; None: with those of the end.
    """
    import torch

    from sam_repro.config.reads import is_text
    from sam_repro.config.schema import AugmentConfig, BudgetConfig
    from sam_repro.data.loading import load
    from sam_repro.engine.ranks import Ranks, device_of
    from sam_repro.runs.run import Run
    from sam_repro.tasks.classification.loss import loss_of
    from sam_repro.trained import trained

    run = Run.at(subject.results, subject.id)
    config = run.stored()
    if config.task is not None:
        raise UserError(f"run={run.id} is of another task: this study is of runs that classify images or translate")
    ranks = ranks or Ranks(0, 1, device_of(config.runtime, 0))
    device = ranks.device
    model = trained(config, run.weights if epoch is None else run.weights_of(epoch)).to(device).eval()
    dtype = torch.float64 if double else torch.float32
    model = model.to(dtype)
    facts = {
        "id": subject.id,
        "label": subject.label,
        "method": config.method.name,
        "seed": config.seed,
        "augmented": False,
        "batchnorm": "running statistics",
        "loss_smoothing": 0.0,
        "trained_smoothing": config.augment.label_smoothing,
        "weight_decay": config.base_optimizer.weight_decay,
        "precision": "fp64" if double else "fp32",
    }
    if is_text(config):
        from sam_repro.study.sentences import open_translator

        joined, pairs, loss_of_tokens = open_translator(config, model, images, batch)
        count = sum(len(targets) for _, targets in pairs)
        return Opened(config, joined, pairs, loss_of_tokens, ranks, facts | {"images": count, "unit": "pairs"})
    limit = min(images, config.dataset.train_images or images, config.budget.train_images or images)
    data = replace(config.dataset, train_images=limit, test_images=config.dataset.classes)
    train = load(data, AugmentConfig(crop=0, flip=False), BudgetConfig(), config.seed, device).train
    batches = []
    for ids in torch.split(torch.arange(train.size), batch):
        found = train.gather(ids, 0)
        batches.append((found.images.to(dtype), found.targets))

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        return loss_of(config.loop.loss, outputs, targets, reduction="sum")

    return Opened(config, model, batches, loss, ranks, facts | {"images": train.size})


def gap_of(subject: Subject, epoch: int | None = None) -> float:
    """Test error less training error at the end of an epoch, the last one by default, in points."""
    from sam_repro.study.recorded import epochs

    known = [record for record in epochs(subject) if epoch in (None, record["epoch"])]
    one = known[-1] if known else {}
    for kind in ("accuracy", "token_accuracy"):
        if {f"train_{kind}", f"test_{kind}"} <= one.keys():
            return float(one[f"train_{kind}"]) - float(one[f"test_{kind}"])
    raise UserError(
        f"run={subject.id} says no accuracy of that epoch: this study is of runs that classify or translate"
    )


def batch_statistics(model: nn.Module) -> None:
    """Batch norm by each batch's own statistics from now on, the running ones neither read nor changed."""
    from torch.nn.modules.batchnorm import _BatchNorm

    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.train()
            module.track_running_stats = False
