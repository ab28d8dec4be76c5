"""Counts what a model costs without running it: shapes flow through it, no numbers. Writes the table of `cost`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import torch
from omegaconf import OmegaConf
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from sam_repro import CONFIGS
from sam_repro.models.catalog import Architecture, ModelConfig
from sam_repro.models.cost import TABLE, WIDENED, ModelCost, settings
from sam_repro.models.factory import build, count_parameters
from sam_repro.models.weights import last_linear


def measure(config: ModelConfig, classes: int, image_size: int) -> ModelCost:
    with torch.device("meta"):
        model = build(config, classes, image_size)
    image_bytes = {}
    for half in (False, True):
        # What one more image adds; the rest of a batch's bytes are the half-precision copies of the weights.
        # Not from one image alone: batch norm refuses a single value a channel.
        macs, two = _forward(model, 2, image_size, half)
        image_bytes[half] = _forward(model, 3, image_size, half)[1] - two
    return ModelCost(count_parameters(model), macs // 2, image_bytes[False], image_bytes[True])


def _forward(model: nn.Module, samples: int, image_size: int, half: bool) -> tuple[int, int]:
    """(multiply-adds, bytes saved for the backward pass beside parameters and buffers)."""
    saved: dict[int, torch.UntypedStorage] = {}  # kept alive, so that no address is used twice

    with FakeTensorMode():
        own = {
            name: torch.empty(t.shape, dtype=t.dtype, requires_grad=t.requires_grad)
            for name, t in [*model.named_parameters(), *model.named_buffers()]
        }
        addresses = {t.untyped_storage()._cdata for t in own.values()}

        def pack(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            if storage._cdata not in addresses:
                saved[storage._cdata] = storage
            return tensor

        counter = FlopCounterMode(display=False)
        hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
        with counter, hooks, torch.autocast("cpu", torch.bfloat16, enabled=half):
            logits = torch.func.functional_call(model, own, (torch.empty(samples, 3, image_size, image_size),))
        assert logits.shape[0] == samples
    return counter.get_total_flops() // 2, sum(storage.nbytes() for storage in saved.values())


def table() -> list[dict[str, Any]]:
    """A row for every shipped model, on 32 pixels; on 224 what is made for ImageNet. Some twice as wide, too."""
    rows = []
    for file in sorted((CONFIGS / "model").glob("*.yaml")):
        merged = OmegaConf.merge(OmegaConf.structured(ModelConfig), OmegaConf.load(file))
        config = OmegaConf.to_object(merged)
        assert isinstance(config, ModelConfig)
        if config.architecture in (Architecture.timm, Architecture.own) and config.name is None:
            continue  # a door to many models, and none itself
        if config.architecture is Architecture.transformer:
            continue  # of tokens, not images: tasks/translation/declared.py counts it
        image_size = 224 if config.architecture is Architecture.timm or file.stem == "resnet50_imagenet" else 32
        of_widths = [config]
        if config.architecture in WIDENED and config.width:
            of_widths.append(replace(config, width=2 * config.width))
        rows += [
            {"model": file.stem, "image_size": image_size, "settings": settings(one)} | _row(one, image_size)
            for one in of_widths
        ]
    return rows


def _row(config: ModelConfig, image_size: int, classes: int = 10) -> dict[str, int]:
    cost = measure(config, classes, image_size)
    with torch.device("meta"):
        model = build(config, classes, image_size)
    head = model.get_submodule(last_linear(model)[0])
    assert isinstance(head, nn.Linear)
    return {
        "features": head.in_features,
        "body_parameters": cost.parameters - classes * (head.in_features + 1),
        "body_macs": cost.macs - classes * head.in_features,
        "activations_fp32": cost.activations_fp32,
        "activations_half": cost.activations_half,
    }


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(row) for row in table())
    TABLE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
