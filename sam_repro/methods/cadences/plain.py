"""The steps between are plain steps."""

from __future__ import annotations

from dataclasses import dataclass

from sam_repro.methods.cadences import Cadence


@dataclass(frozen=True)
class Plain(Cadence):
    pass
