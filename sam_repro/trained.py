"""The model of a run with weights that it left behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sam_repro.config.reads import is_text
from sam_repro.config.schema import Config
from sam_repro.errors import UserError

if TYPE_CHECKING:
    from torch import nn


def trained(config: Config, file: Path) -> nn.Module:
    """The model with the weights in a file of the run. Those it started from may be gone, or need a download."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from sam_repro import models
    from sam_repro.train import task_of

    if config.task is None and not is_text(config):
        bare = replace(config.model, pretrained=False, weights=None, weights_sha256=None)
        model = models.build(bare, config.dataset.classes, config.dataset.image_size)
    else:
        model = task_of(config, torch.device("cpu")).build()
    try:
        model.load_state_dict(load_file(file))
    except (OSError, SafetensorError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{file} can't be used ({reason}): put it back, or train the run again with force=true"
        ) from error
    return model
