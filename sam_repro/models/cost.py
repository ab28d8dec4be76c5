"""What a forward pass of a shipped model costs, for planning, without torch: a table that `measure` writes.

`python -m sam_repro.models.measure` renews cost.json after a change of a model; a test recomputes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from sam_repro.models.catalog import Architecture, ModelConfig

TABLE = Path(__file__).with_name("cost.json")
# Settings that change neither size nor work (regularisation masks aside, a few percent of the activations).
IRRELEVANT = {"dropout", "drop_path", "shakedrop", "pretrained", "head_bias", "weights", "weights_sha256"}

WIDENED = (Architecture.resnet_cifar,)  # measured in two widths, which say what any other costs


@dataclass(frozen=True)
class ModelCost:
    parameters: int
    macs: int  # multiply-adds of an image's forward pass; forward and backward together take three times as many
    activations_fp32: int  # bytes an image that the backward pass needs
    activations_half: int  # the same under bf16 or fp16 autocast

    def training_bytes(self, samples: int, half: bool, bytes_a_parameter: int) -> int:
        """Memory while `samples` images are between forward and backward; an estimate from below, without gradients of
        activations, allocator's slack and kernels' workspace: `sam_repro.tables.cost` adds what runs take beyond it.

        bytes_a_parameter: weight and gradient (8), the optimizer's state, what the method keeps. Autocast holds a
        half-precision copy of the weights as well.
        """
        activations = self.activations_half if half else self.activations_fp32
        return samples * activations + self.parameters * (bytes_a_parameter + (2 if half else 0))


def settings(model: ModelConfig) -> dict[str, Any]:
    """What decides a model's shape, unset fields left out."""
    values = {f.name: getattr(model, f.name) for f in fields(model) if f.name not in IRRELEVANT}
    return {name: getattr(value, "value", value) for name, value in values.items() if value not in (None, False)}


def lookup(model: ModelConfig, classes: int, image_size: int) -> ModelCost | None:
    """None: not in the table, which has the shipped models on their own image sizes, some of them in any width."""
    wanted = settings(model)
    alike = [r for r in _table() if r["image_size"] == image_size and _but_width(r["settings"]) == _but_width(wanted)]
    row = next((row for row in alike if row["settings"] == wanted), None)
    if row is None and model.architecture in WIDENED and len(alike) == 2 and model.width:
        row = _widened(alike[0], alike[1], model.width)
    if row is None:
        return None
    # The head is one linear layer on `features`, or the last of several: all that depends on the classes.
    return ModelCost(
        row["body_parameters"] + classes * (row["features"] + 1),
        row["body_macs"] + classes * row["features"],
        row["activations_fp32"],
        row["activations_half"],
    )


def _but_width(shape: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shape.items() if name != "width"}


def _widened(one: dict[str, Any], other: dict[str, Any], width: int) -> dict[str, int]:
    """From two widths to any: what lies between layers, and their norms, grow with it; weights and work with its square
    too, but for the first layer, whose other side is the image. So two widths say all that there is to know.
    """
    first: int = one["settings"]["width"]
    second: int = other["settings"]["width"]

    def line(key: str) -> int:
        slope: float = (other[key] - one[key]) / (second - first)
        start: int = one[key]
        return start + round(slope * (width - first))

    def parabola(key: str) -> int:
        square: float = (other[key] / second - one[key] / first) / (second - first)
        share: float = one[key] / first + square * (width - first)
        return round(width * share)

    keys = {"features": line, "activations_fp32": line, "activations_half": line}
    keys |= {"body_parameters": parabola, "body_macs": parabola}
    return {key: of(key) for key, of in keys.items()}


@cache
def _table() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return rows
