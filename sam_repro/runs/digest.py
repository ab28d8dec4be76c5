"""Which weights a run ended with: their SHA-256, in its line of the ledger and on its card."""

from __future__ import annotations

import hashlib
from pathlib import Path

from sam_repro.files.read import DamagedError, opened


def digest(weights: Path) -> str | None:
    """Of a file of weights; None where there is none that can be read."""
    try:
        with opened(weights) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, DamagedError, OSError):
        return None
