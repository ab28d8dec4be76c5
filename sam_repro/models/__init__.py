"""What is trained: `build(config.model, classes, image_size)` and `count_parameters(model)`.

`catalog` says which models exist and which settings they take, without torch; our own networks have a file each; timm
and torchvision give the rest and are imported only by a run that needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sam_repro.models.factory import build, count_parameters

__all__ = ["build", "count_parameters"]


def __getattr__(name: str) -> Any:
    # Lazy: `sam_repro.models.catalog` is read by code that must start without torch.
    if name in __all__:
        from sam_repro.models import factory

        return getattr(factory, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
