"""The operator T of the ball that the perturbation stays in: eps = rho T^2 d / l2(T d), or rho T sign(d) for p = linf.

ASAM section 3, FisherSAM (F-SAM supplement A4). `operator` gives the diagonal of T for the tensors that are worked on
together; the parameters that are not normalised have T = 1 and never come here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.option import NOT_NEGATIVE, Option, choice, value

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Geometry(Option):
    axis: ClassVar[str] = "geometry"
    default: ClassVar[str] = "identity"
    whole: ClassVar[bool] = False  # whether T needs a tensor as a whole, not piece by piece

    p: str = choice(("l2", "linf"), "l2: eps = rho T^2 d / l2(T d); linf: eps = rho T sign(d)")

    def acts_on(self, name: str) -> bool:
        """Whether T is other than 1 on this parameter."""
        raise NotImplementedError

    def operator(self, w: list[Tensor], g: list[Tensor]) -> list[Tensor]:
        """The diagonal of T, in memory of its own or in a shape that broadcasts."""
        raise NotImplementedError


@dataclass(frozen=True)
class Normalising(Geometry):
    """What all but the identity have in common."""

    eta: float = value(0.0, "keeps T away from 0; for fisher, the weight of g^2", NOT_NEGATIVE)
    normalise: str = choice(
        ("weights", "all"), 'weights: T = 1 for every parameter whose name does not contain "weight": biases above all'
    )

    def acts_on(self, name: str) -> bool:
        """ "weight" is in the name of a batch norm's scale, too, and in no bias's."""
        return self.normalise == "all" or "weight" in name
