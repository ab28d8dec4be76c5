"""The operator T of the ball that the perturbation stays in: eps = rho T^2 d / l2(T d), or rho T sign(d) for p = linf.

ASAM section 3, FisherSAM (F-SAM supplement A4). `kind` says what T has to know of a parameter, None where
T is 1; `operator` gives the diagonal of T for tensors of one kind, which are worked on together.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.option import NOT_NEGATIVE, Option, choice, value

if TYPE_CHECKING:
    from torch import Tensor

    from sam_repro.methods.leaves import Leaf


@dataclass(frozen=True)
class Geometry(Option):
    axis: ClassVar[str] = "geometry"
    default: ClassVar[str] = "identity"
    whole: ClassVar[bool] = False  # whether T needs a tensor as a whole, not piece by piece

    p: str = choice(("l2", "linf"), "l2: eps = rho T^2 d / l2(T d); linf: eps = rho T sign(d)")

    def kind(self, leaf: Leaf) -> Hashable:
        raise NotImplementedError

    def operator(self, kind: Hashable, w: list[Tensor], g: list[Tensor]) -> list[Tensor]:
        """The diagonal of T, in memory of its own or in a shape that broadcasts."""
        raise NotImplementedError


@dataclass(frozen=True)
class Normalising(Geometry):
    """What all but the identity have in common."""

    eta: float = value(0.0, "keeps T away from 0; for fisher, the weight of g^2", NOT_NEGATIVE)
    normalise: str = choice(
        ("weights", "all"), "weights: T = 1 for every parameter that is no weight of its layer: biases above all"
    )

    def kind(self, leaf: Leaf) -> Hashable:
        """The scale of a batch norm is a weight, too."""
        return "weight" if self.normalise == "all" or leaf.is_weight else None
