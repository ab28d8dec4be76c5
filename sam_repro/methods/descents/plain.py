"""The gradient at w + eps as it is."""

from __future__ import annotations

from dataclasses import dataclass

from sam_repro.methods.descents import Descent


@dataclass(frozen=True)
class Plain(Descent):
    pass
