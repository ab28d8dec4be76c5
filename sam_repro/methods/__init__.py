"""The papers' methods as gradient estimators, usable in any PyTorch loop. Needs torch, and YAML for a name.

    from sam_repro.methods import build
    method = build("asam", model, rho=0.5)
    loss = method.estimate(grad_fn)  # the final gradient is in .grad, the weights are where they were

The names load on first use: the configuration reads `sam_repro.methods.spec` without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sam_repro.methods.factory import build
    from sam_repro.methods.method import Method
    from sam_repro.methods.moment import Moment
    from sam_repro.methods.passes import Overflow, Pass

__all__ = ["Method", "Moment", "Overflow", "Pass", "build"]

_HOMES = {"build": "factory", "Method": "method", "Moment": "moment", "Overflow": "passes", "Pass": "passes"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
