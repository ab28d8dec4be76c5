"""Which files of a folder are images, in an order that any machine finds. Imports no torch: a run's id needs it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")


def subfolders(folder: Path) -> list[str]:
    """Sorted names, hidden ones left out; empty where there is no folder."""
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))


def images(folder: Path) -> list[Path]:
    """All images below a class's folder, sorted."""
    return sorted(_below(folder))


def _below(folder: Path) -> Iterator[Path]:
    for base, _, names in os.walk(folder):
        for name in names:
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(base) / name
