"""What a run is called where people look at many: `asam wrn-28-10 cifar100 seed 0`, in the group of its seeds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

# W&B's own variables. A sweep says by them for which table and cell it trains; a user's come first.
GROUP, TAGS = "WANDB_RUN_GROUP", "WANDB_TAGS"


def labels(config: Mapping[str, Any]) -> dict[str, Any]:
    """`name`, `group` and `tags` of a run, of its configuration as plain values."""
    method, dataset = config.get("method", {}).get("name"), config.get("dataset", {}).get("name")
    budget, seed = config.get("budget", {}).get("name"), config.get("seed")
    of_seeds = [str(word) for word in (method, _model(config.get("model", {})), dataset) if word]
    scaled = [budget] if budget not in (None, "paper") else []
    given = [tag for tag in os.environ.get(TAGS, "").split(",") if tag]
    return {
        "name": " ".join([*of_seeds, *scaled, *([f"seed {seed}"] if seed is not None else [])]) or None,
        "group": os.environ.get(GROUP) or " ".join([*of_seeds, *scaled]) or None,
        "tags": list(dict.fromkeys([*given, *of_seeds, *scaled])),
    }


def _model(model: Mapping[str, Any]) -> str:
    """wrn-28-10, resnet_cifar-20-16; of timm and of one's own the name says it all."""
    if model.get("name"):
        return str(model["name"])
    return "-".join(str(part) for key in ("architecture", "depth", "width") if (part := model.get(key)))
