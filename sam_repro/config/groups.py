"""The groups of the configuration and their options, as the folders and files of `configs/` are. Imports no Hydra."""

from __future__ import annotations

from sam_repro import CONFIGS


def groups() -> list[str]:
    return sorted(d.name for d in CONFIGS.iterdir() if d.is_dir())


def options(group: str) -> list[str]:
    """The options of a config group: the names of its files."""
    return sorted(str(f.relative_to(CONFIGS / group).with_suffix("")) for f in (CONFIGS / group).rglob("*.yaml"))
