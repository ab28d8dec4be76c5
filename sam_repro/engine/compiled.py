"""A model compiled by torch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from sam_repro.errors import UserError


def compiled(model: nn.Module) -> Callable[..., Tensor]:
    """torch compiles at the first call. That it can't, for want of a C++ compiler say, is no fault of this program."""
    from torch._dynamo.exc import TorchDynamoException

    forward = torch.compile(model)

    def call(*inputs: Tensor) -> Tensor:
        try:
            output: Tensor = forward(*inputs)
        except TorchDynamoException as error:
            reason = str(error).partition("\n")[0]
            raise UserError(
                f"runtime.compile=true: torch can't compile this model here ({reason}): leave it out"
            ) from None
        return output

    return call
