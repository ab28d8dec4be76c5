"""From the configuration to a `Data`: find, split, corrupt the labels, cap, and decode into memory or stream."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sam_repro.config.schema import AugmentConfig, BudgetConfig, Policy
from sam_repro.data.declared import DatasetConfig, Split
from sam_repro.data.layouts import Layout
from sam_repro.data.memory import MemoryEval, MemoryTrain
from sam_repro.data.noise import corrupt
from sam_repro.data.on_device import Normalise, OnDevice
from sam_repro.data.pictures import ArrayPictures, FilePictures, Tally, UnreadableError
from sam_repro.data.readers import Labelled, read
from sam_repro.data.sets import Data, EvalData, TrainData
from sam_repro.data.subset import balanced, split
from sam_repro.errors import UserError


def load(
    config: DatasetConfig,
    augment: AugmentConfig,
    budget: BudgetConfig,
    seed: int,
    device: torch.device | str,
    layout: Layout | None = None,
) -> Data:
    """The data of a run. `layout` replaces the table of official files and digests (stand-ins of the same form).

    The order matters. The validation part is taken first, so it is the same whatever the number of training images;
    then the training part is capped; then its labels are corrupted, at the exact rate. So the held-out labels, like
    the test labels, stay clean: they judge what was learnt, not what was memorised.
    """
    train, test = read(config, layout)
    if config.evaluate_on is Split.validation:
        rest, held = split(train[1], config.validation)
        if not len(held):
            raise UserError(
                f"dataset.evaluate_on=validation with dataset.validation={config.validation:g} holds out none of the "
                f"{len(train[1])} training images: raise dataset.validation"
            )
        train, test = _take(train, rest), _take(train, held)
    train = _cap(train, config.train_images, budget.train_images)
    test = _cap(test, config.test_images, budget.test_images)
    tally = Tally(config.skip_unreadable)
    one_by_one = config.stream or augment.policy is not Policy.none
    if not one_by_one:
        train, test = _decode(train, config, tally), _decode(test, config, tally)
    if not len(test[1]):
        raise UserError(
            f"dataset={config.name.value} has no image to evaluate on"
            + (": dataset.skip_unreadable left all of them out" if tally.found else ": look at dataset.root")
        )
    images, labels = train
    facts: dict[str, Any] = {"source": config.name.value, "evaluated_on": config.evaluate_on.value}
    if config.label_noise.rate:
        labels, facts["label_noise"] = corrupt(labels, config.classes, config.label_noise)
    facts |= {"train_images": len(images), "test_images": len(test[0]), "classes": config.classes}
    facts |= {"unreadable": tally.found} if isinstance(images, FilePictures) or tally.found else {}
    normalise = Normalise(config.mean, config.std, torch.device(device))
    on_device = OnDevice(augment, normalise, seed, config.classes)
    build = _streams if one_by_one else _in_memory
    sets = build(config, on_device, (images, labels), test, torch.device(device), tally)
    return Data(*sets, classes=config.classes, facts=facts)


def _take(half: Labelled, ids: Tensor) -> Labelled:
    return half[0][ids], half[1][ids]


def _cap(half: Labelled, *limits: int | None) -> Labelled:
    """A fixed, class-balanced subset of the smallest limit given."""
    n = min([len(half[1])] + [limit for limit in limits if limit is not None])
    return half if n == len(half[1]) else _take(half, balanced(half[1], n))


def _decode(half: Labelled, config: DatasetConfig, tally: Tally) -> tuple[Tensor, Tensor]:
    """Image files once into memory, at their final size."""
    pictures, labels = half
    if isinstance(pictures, Tensor):
        return pictures, labels
    from sam_repro.data.preprocess import evaluation

    fit = evaluation(config)
    images = torch.empty(len(pictures), 3, config.image_size, config.image_size, dtype=torch.uint8)
    kept: list[int] = []
    for index in range(len(pictures)):
        try:
            images[len(kept)] = fit(pictures.read(index))
            kept.append(index)
        except UnreadableError as error:
            tally.add(str(error))
    return images[: len(kept)], labels[kept]


def _in_memory(
    config: DatasetConfig, on_device: OnDevice, train: Labelled, test: Labelled, device: torch.device, _: Tally
) -> tuple[TrainData, EvalData]:
    if on_device.augment.resized_crop:
        raise UserError("augment.resized_crop cuts from the original image: set dataset.stream=true")
    (images, labels), (held, held_labels) = train, test
    assert isinstance(images, Tensor)
    assert isinstance(held, Tensor)
    return MemoryTrain(images, labels, on_device, device), MemoryEval(held, held_labels, on_device.normalise, device)


def _streams(
    config: DatasetConfig, on_device: OnDevice, train: Labelled, test: Labelled, device: torch.device, tally: Tally
) -> tuple[TrainData, EvalData]:
    from sam_repro.data.preprocess import evaluation, training
    from sam_repro.data.stream import StreamEval, StreamTrain, worker_count

    workers = worker_count(config.workers)
    images, held = (ArrayPictures(p) if isinstance(p, Tensor) else p for p in (train[0], test[0]))
    return (
        StreamTrain(images, train[1], training(config, on_device.augment), on_device, tally, workers, device),
        StreamEval(held, test[1], evaluation(config), on_device.normalise, tally, workers, device),
    )
