"""From the configuration to a `Data`: find, split, corrupt the labels, cap, and decode into memory or stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sam_repro.config.schema import AugmentConfig, BudgetConfig, Policy
from sam_repro.data.declared import DatasetConfig, Decoder, Split
from sam_repro.data.layouts import Layout
from sam_repro.data.memory import MemoryEval, MemoryTrain
from sam_repro.data.noise import corrupt
from sam_repro.data.on_device import Normalise, OnDevice
from sam_repro.data.pack import PackedPictures
from sam_repro.data.pictures import ArrayPictures, Pictures, StoredPictures, Tally, UnreadableError
from sam_repro.data.readers import Labelled, read
from sam_repro.data.sets import Data, EvalData, TrainData
from sam_repro.data.subset import balanced, split
from sam_repro.errors import UserError

Judged = Mapping[str, Labelled]  # "test" and, with dataset.evaluate_on=both, "validation"


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
    train, test = (_by(config.decoder, half) for half in read(config, layout))
    judged = {"test": test}
    if config.evaluate_on is not Split.test:
        rest, held = split(train[1], config.validation)
        if not len(held):
            raise UserError(
                f"dataset.evaluate_on={config.evaluate_on.value} with dataset.validation={config.validation:g} holds "
                f"out none of the {len(train[1])} training images: raise dataset.validation"
            )
        judged["validation" if config.evaluate_on is Split.both else "test"] = _take(train, held)
        train = _take(train, rest)
    train = _cap(train, config.train_images, budget.train_images)
    judged = {name: _cap(half, config.test_images, budget.test_images) for name, half in judged.items()}
    tally = Tally(config.skip_unreadable)
    one_by_one = config.stream or augment.policy is not Policy.none
    if not one_by_one:
        train = _decode(train, config, tally)
        judged = {name: _decode(half, config, tally) for name, half in judged.items()}
    if not all(len(labels) for _, labels in judged.values()):
        raise UserError(
            f"dataset={config.name.value} has no image to evaluate on"
            + (": dataset.skip_unreadable left all of them out" if tally.found else ": look at dataset.root")
        )
    images, labels = train
    facts: dict[str, Any] = {"source": config.name.value, "evaluated_on": config.evaluate_on.value}
    if config.label_noise.rate:
        labels, facts["label_noise"] = corrupt(labels, config.classes, config.label_noise)
    facts |= {"train_images": len(images)} | {f"{name}_images": len(half[0]) for name, half in judged.items()}
    facts |= {"classes": config.classes}
    facts |= {"unreadable": tally.found} if isinstance(images, StoredPictures) or tally.found else {}
    facts |= {"pack": images.pack.digest} if isinstance(images, PackedPictures) else {}
    normalise = Normalise(config.mean, config.std, torch.device(device))
    on_device = OnDevice(augment, normalise, seed, config.classes)
    build = _streams if one_by_one else _in_memory
    learnt, held_out = build(config, on_device, (images, labels), judged, torch.device(device), tally)
    return Data(learnt, held_out["test"], config.classes, facts, held_out.get("validation"))


def _by(decoder: Decoder, half: Labelled) -> Labelled:
    images, labels = half
    return (images.by(decoder) if isinstance(images, StoredPictures) else images), labels


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
    config: DatasetConfig, on_device: OnDevice, train: Labelled, judged: Judged, device: torch.device, _: Tally
) -> tuple[TrainData, dict[str, EvalData]]:
    if on_device.augment.resized_crop:
        raise UserError("augment.resized_crop cuts from the original image: set dataset.stream=true")
    images, labels = train
    assert isinstance(images, Tensor)
    held_out = dict[str, EvalData]()
    for name, (held, held_labels) in judged.items():
        assert isinstance(held, Tensor)
        held_out[name] = MemoryEval(held, held_labels, on_device.normalise, device)
    return MemoryTrain(images, labels, on_device, device), held_out


def _streams(
    config: DatasetConfig, on_device: OnDevice, train: Labelled, judged: Judged, device: torch.device, tally: Tally
) -> tuple[TrainData, dict[str, EvalData]]:
    from sam_repro.data.preprocess import evaluation, training
    from sam_repro.data.stream import StreamEval, StreamTrain
    from sam_repro.data.workers import Pool, worker_count

    pool = Pool(worker_count(config.workers), device)

    def pictures(images: Tensor | StoredPictures) -> Pictures:
        return ArrayPictures(images) if isinstance(images, Tensor) else images

    fit = evaluation(config)
    held_out: dict[str, EvalData] = {
        name: StreamEval(pictures(held), labels, fit, on_device.normalise, tally, pool, device)
        for name, (held, labels) in judged.items()
    }
    transform = training(config, on_device.augment)
    return StreamTrain(pictures(train[0]), train[1], transform, on_device, tally, pool, device), held_out
