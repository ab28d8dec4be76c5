"""R-SAM's released code: rho_t = rho lr_t / lr_max while the learning rate warms up, from 0; after that GSAM's line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sam_repro.methods.radii.follow_lr import FollowLr

if TYPE_CHECKING:
    from sam_repro.methods.moment import Moment


@dataclass(frozen=True)
class FollowLrFromZero(FollowLr):
    def at(self, moment: Moment | None) -> float:
        if moment is not None and moment.warms_up:
            return self.rho * moment.lr / moment.lr_max if moment.lr_max > 0 else 0.0
        return super().at(moment)
