"""Oxford Flowers-102."""

from __future__ import annotations

from sam_repro.data.declared import DatasetConfig
from sam_repro.data.folder import LabelledFiles
from sam_repro.data.transfer import find_transfer


def read(config: DatasetConfig) -> tuple[LabelledFiles, LabelledFiles]:
    return find_transfer(config.name, config.root)
