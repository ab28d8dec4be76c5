"""Reproduce, compare and extend papers on sharpness-aware minimization."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sam_repro.notebook import load_runs as load_runs
    from sam_repro.notebook import open_run as open_run

__version__ = "0.1.0"

_HERE = Path(__file__).resolve().parent
# A wheel carries the configs inside the package, a checkout keeps them beside it.
CONFIGS = _HERE / "configs" if (_HERE / "configs").is_dir() else _HERE.parent / "configs"


def __getattr__(name: str) -> Any:
    """What a notebook needs, imported when it is asked for: everything imports this module."""
    if name not in ("load_runs", "open_run"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("sam_repro.notebook"), name)
