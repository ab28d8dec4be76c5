"""Reproduce, compare and extend papers on sharpness-aware minimization."""

from pathlib import Path

__version__ = "0.1.0"

_HERE = Path(__file__).resolve().parent
# A wheel carries the configs inside the package, a checkout keeps them beside it.
CONFIGS = _HERE / "configs" if (_HERE / "configs").is_dir() else _HERE.parent / "configs"
