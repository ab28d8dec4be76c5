"""Where training stands: what radii and ramps that move ask for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Moment:
    """Where training stands. The learning rate is the base optimizer's for this step."""

    step: int = 0
    progress: float = 0.0  # of the whole run, 0 to 1
    lr: float = 0.0
    lr_min: float = 0.0
    lr_max: float = 0.0
    warms_up: bool = False  # whether the learning rate still rises to lr_max
