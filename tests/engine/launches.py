"""What a step asks of a GPU, counted on one that has no values: `python tests/renew.py launches` writes the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

import torch
from commands import ROOT
from fake_gpu import GPU, fake_gpu
from rig import rigged
from test_fake_gpu import ALONE, task

from sam_repro import models
from sam_repro.config.compose import compose
from sam_repro.files.atomic import write_atomic

PAGE = ROOT / "docs" / "cluster.md"
MODELS = {"ResNet-20": "resnet20", "ResNet-18": "resnet18", "WRN-28-10": "wrn_28_10", "ViT-S/16": "vit_s16"}
METHODS = {"SGD": "plain", "SAM": "sam"}
HEAD = f"| operations a step | {' | '.join(METHODS)} |\n| --- |{' --- |' * len(METHODS)}\n"


@cache
def launches(model: str, method: str, *more: str, log: bool = False) -> Counter[str]:
    """The operations of one step in bf16 and channels-last, on a batch that is cropped and flipped on the device."""
    c = compose([f"model={model}", f"method={method}", "augment=basic", "loop.batch_size=16", *more])
    with fake_gpu() as gpu:
        net = models.build(c.model, 10, 32).to(memory_format=torch.channels_last).to(GPU)
        s = rigged(c, net, task(c), ALONE)
        for step in (0, 1):  # the first makes what momenta and averages are kept in
            gpu.forget()
            s(s.data.order(0)[:16], 0, step, log=log)
    return gpu.calls


def rows() -> Iterator[str]:
    for name, model in MODELS.items():
        counts = [str(launches(model, method).total()) for method in METHODS.values()]
        yield f"| {name} | {' | '.join(counts)} |\n"


def table() -> str:
    return HEAD + "".join(rows())


def renew() -> None:
    page = PAGE.read_text(encoding="utf-8")
    start = page.index(HEAD)
    end = page.index("\n\n", start) + 1
    write_atomic(PAGE, page[:start] + table() + page[end:])
