"""How fast training images come: this project's input against the usual torchvision DataLoader, in one process.

    OMP_NUM_THREADS=2 sam-repro bench input [--json]

Both make batches of 128 of CIFAR's shape, randomly cropped (padding 4), flipped and normalised, as float32 tensors. The
opponent decodes nothing either: it crops and flips PIL images of the array in memory, with 0 and with 2 workers, and
the better of the two counts. Rounds are interleaved, the first is thrown away, medians are compared.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sam_repro.config.schema import AugmentConfig, RuntimeConfig
from sam_repro.data.declared import DatasetConfig, Source
from sam_repro.data.layouts import CIFAR10
from sam_repro.data.memory import MemoryTrain
from sam_repro.data.official import load_official
from sam_repro.data.on_device import Normalise, OnDevice
from sam_repro.engine.ranks import device_of
from sam_repro.errors import UserError

BATCH = 128
IMAGES = 25_600  # a round's
MEAN, STD = [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]


def cifar_images(root: str) -> tuple[Tensor, str]:
    """Real CIFAR-10 where it is at hand, else random bytes of its shape: no transform's cost depends on the content."""
    try:
        (images, _), _ = load_official(DatasetConfig(name=Source.cifar10, root=root), CIFAR10)
        return images, "CIFAR-10"
    except UserError:
        return torch.randint(0, 256, (50_000, 3, 32, 32), dtype=torch.uint8), "random bytes of CIFAR-10's shape"


def ours(images: Tensor, cutout: int) -> Callable[[int], int]:
    device = device_of(RuntimeConfig(), 0)
    augment = AugmentConfig(crop=4, flip=True, cutout=cutout)
    labels = torch.zeros(len(images), dtype=torch.int64)
    data = MemoryTrain(images, labels, OnDevice(augment, Normalise(MEAN, STD, device), 0, 10), device)

    def round_(epoch: int) -> int:
        ids = data.order(epoch)[:IMAGES]
        count = sum(len(batch.images) for batch in data.gather_each(torch.split(ids, BATCH), epoch))
        if device.type == "cuda":
            torch.cuda.synchronize()
        return count

    return round_


def torchvision_loader(images: Tensor, workers: int) -> Callable[[int], int]:
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset, RandomSampler
    from torchvision import transforms

    transform = transforms.Compose(
        [
            transforms.RandomCrop(32, padding=4),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )
    array = images.permute(0, 2, 3, 1).contiguous().numpy()

    class Pictures(Dataset[tuple[Tensor, int]]):
        def __len__(self) -> int:
            return len(array)

        def __getitem__(self, index: int) -> tuple[Tensor, int]:
            return transform(Image.fromarray(array[index])), 0

    pictures = Pictures()
    loader = DataLoader(
        pictures,
        BATCH,
        sampler=RandomSampler(pictures, num_samples=IMAGES),
        num_workers=workers,
        persistent_workers=workers > 0,
    )
    device = device_of(RuntimeConfig(), 0)
    return lambda epoch: sum(len(batch.to(device)) for batch, _ in loader)


def measure(images: Tensor, rounds: int) -> dict[str, Any]:
    contestants = {
        "ours": ours(images, 0),
        "ours with cutout": ours(images, 16),
        "torchvision, 0 workers": torchvision_loader(images, 0),
        "torchvision, 2 workers": torchvision_loader(images, 2),
    }
    speeds: dict[str, list[float]] = {name: [] for name in contestants}
    for epoch in range(rounds + 1):
        for name, run in contestants.items():
            start = time.perf_counter()
            count = run(epoch)
            if epoch:  # the first round pays for fresh memory and for starting the workers
                speeds[name].append(count / (time.perf_counter() - start))
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    best = max(value for name, value in medians.items() if name.startswith("torchvision"))
    return {
        "images_per_second": {name: round(value) for name, value in medians.items()},
        "ratio": round(medians["ours"] / best, 1),
        "ratio_with_cutout": round(medians["ours with cutout"] / best, 1),
        "rounds": rounds,
        "images_a_round": IMAGES,
    }
