"""Data sets and the input pipeline. Torch is imported on first use, so that fetching and checking files stays light."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sam_repro.data.loading import load
    from sam_repro.data.sets import Batch, Data, EvalData, TrainData

__all__ = ["Batch", "Data", "EvalData", "TrainData", "load"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "load":
        from sam_repro.data.loading import load

        return load
    from sam_repro.data import sets

    return getattr(sets, name)
