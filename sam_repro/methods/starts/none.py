"""The first gradient is taken at w."""

from __future__ import annotations

from dataclasses import dataclass

from sam_repro.methods.starts import Start


@dataclass(frozen=True)
class AtTheWeights(Start):
    pass
