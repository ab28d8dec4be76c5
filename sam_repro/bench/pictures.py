"""How fast photographs come: decoded, cropped, resized, mirrored, normalised, in worker processes.

    sam-repro bench input --pictures [--clock wall|cpu] [--json]

The files are JPEGs of 500 x 375 pixels and about 100 KB, ImageNet's usual size, made of noise at several scales. Both
sides take random pieces of 8 to 100 % of the area to 224 x 224 pixels and deliver float32 batches of 64; the opponent
is torchvision's ImageFolder in torch's DataLoader, as in torchvision's own training script, with as many persistent
workers that run as far ahead. Rounds are interleaved. `--clock cpu` counts the processor time of all the processes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from sam_repro.bench.timing import Bar, hardware, milliseconds, ratio, take_turns
from sam_repro.config.schema import AugmentConfig, BudgetConfig
from sam_repro.data.declared import DatasetConfig, Decoder, Source
from sam_repro.data.loading import load
from sam_repro.data.sets import TrainData
from sam_repro.engine.setup import keep_freed_memory

WIDTH, HEIGHT, SIZE, LEAST = 500, 375, 224, 0.08
BATCH, FILES, TIMES = 64, 128, 2  # a round goes over the files so many times
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
BAR = 1.9


def photographs(root: Path, files: int = FILES) -> None:
    """train/ and val/ with two classes each, the validation half of one picture a class."""
    from PIL import Image

    for i in range(files + 2):
        random = np.random.default_rng(i)
        pixels = np.full((HEIGHT, WIDTH, 3), 128.0, np.float32)
        for cells, contrast in ((4, 60), (16, 50), (64, 40), (WIDTH, 16)):
            coarse = random.normal(0, contrast, (max(2, HEIGHT * cells // WIDTH), cells, 3)).astype(np.float32)
            planes = [Image.fromarray(plane).resize((WIDTH, HEIGHT), 3) for plane in np.moveaxis(coarse, 2, 0)]
            pixels += np.stack([np.asarray(plane) for plane in planes], 2)
        path = root / ("train" if i < files else "val") / f"class{i % 2}" / f"{i:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path, quality=90)


def ours(root: Path, workers: int, decoder: Decoder) -> TrainData:
    augment = AugmentConfig(crop=0, flip=True, resized_crop=LEAST)
    config = DatasetConfig(
        Source.folder,
        str(root),
        classes=2,
        image_size=SIZE,
        mean=MEAN,
        std=STD,
        stream=True,
        workers=workers,
        decoder=decoder,
    )
    return load(config, augment, BudgetConfig(), 0, "cpu").train


def a_round(data: TrainData) -> Callable[[], int]:
    epochs = iter(range(1 << 30))

    def run() -> int:
        ids = torch.cat([data.order(next(epochs)) for _ in range(TIMES)])
        return sum(len(batch.images) for batch in data.gather_each(torch.split(ids, BATCH), 0))

    return run


def theirs(root: Path, workers: int) -> Callable[[], int]:
    from torch.utils.data import DataLoader, RandomSampler
    from torchvision import datasets, transforms

    steps = [
        transforms.RandomResizedCrop(SIZE, scale=(LEAST, 1.0)),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
    pictures = datasets.ImageFolder(root / "train", transforms.Compose(steps))
    loader = DataLoader(
        pictures,
        BATCH,
        sampler=RandomSampler(pictures, replacement=True, num_samples=TIMES * len(pictures)),
        num_workers=workers,
        persistent_workers=workers > 0,
        prefetch_factor=4 if workers else None,
    )
    return lambda: sum(len(images) for images, _ in loader)


def processor_seconds() -> float:
    """Of this process and its workers, which live on from round to round."""
    this = psutil.Process()
    times = [process.cpu_times() for process in (this, *this.children(recursive=True))]
    return float(sum(t.user + t.system for t in times))


def run(rounds: int, workers: int, clock: str) -> dict[str, Any]:
    keep_freed_memory()  # as every training does
    now = time.perf_counter if clock == "wall" else processor_seconds

    def timed(job: Callable[[], int]) -> Callable[[], float]:
        def seconds() -> float:
            begin = now()
            count = job()
            return (now() - begin) / count

        return seconds

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        photographs(root)
        contestants = {decoder.value: a_round(ours(root, workers, decoder)) for decoder in Decoder}
        contestants["torchvision"] = theirs(root, workers)
        taken = take_turns({name: timed(job) for name, job in contestants.items()}, rounds, warmup=1)
    ratios = {name: round(ratio(taken["torchvision"], taken[name]), 2) for name in taken}
    bar = Bar("images a second / torchvision's ImageFolder and DataLoader", ratios["fast"], BAR, at_least=True)
    return {
        "hardware": hardware(),
        "milliseconds_an_image": milliseconds(taken),
        "times_faster": ratios,
        "workers": workers,
        "clock": clock,
        "rounds": rounds,
        "images_a_round": TIMES * FILES,
        "bars": [bar.as_json()],
    }


def table(result: dict[str, Any]) -> str:
    lines = [
        f"{name:<24}{spent:>8.2f} ms an image{result['times_faster'][name]:>8.2f} x"
        for name, spent in result["milliseconds_an_image"].items()
    ]
    return "\n".join([*lines, f"{result['workers']} workers, {result['clock']} time"])
