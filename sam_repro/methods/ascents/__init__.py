"""On which data the ascent gradient g is taken, if there is an ascent at all.

The axes below it (direction, geometry, radius, descent, cadence) are read by ascents only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from sam_repro.methods.option import NOT_NEGATIVE, SHARE, Option, value

Data = Literal["batch", "other", "larger", "full"]


@dataclass(frozen=True)
class Ascent(Option):
    axis: ClassVar[str] = "ascent"
    default: ClassVar[str] = "none"
    ascends: ClassVar[bool] = True
    data: ClassVar[Data] = "batch"

    def passes(self, batch: int | None, train: int | None) -> float:
        """Cost in passes over the batch; NaN where it depends on a size that is not given."""
        raise NotImplementedError

    @property
    def share(self) -> float:
        """Of the batch, whose gradient the ascent takes."""
        return 1.0

    @property
    def parts(self) -> int:
        """Into how many a step splits the batch, each of which is passed once, at weights of its own."""
        return 1

    @property
    def kept(self) -> float:
        """Share of the batch that the descent takes."""
        return 1.0

    @property
    def this_batch(self) -> bool:
        """Whether g is of the samples that the descent takes, or of a part of them."""
        return self.data == "batch"


@dataclass(frozen=True)
class Perturbing(Ascent):
    """What all of them have in common."""

    perturb: float = value(1.0, "share of the weights that a step perturbs (ESAM's beta)", SHARE)
    ascent_decay: float = value(
        0.0, "adds this times w to the ascent gradient (the l2 term of the original JAX SAM)", NOT_NEGATIVE
    )

    @property
    def vectors(self) -> int:
        return 1  # w and w + eps at once
