"""What moves during training: the radius, the size of the noise, and which steps ascend at all."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sam_repro.methods.spec import Radius, Spec


@dataclass(frozen=True)
class Moment:
    """Where training stands. The learning rate is the base optimizer's for this step."""

    step: int = 0
    progress: float = 0.0  # of the whole run, 0 to 1
    lr: float = 0.0
    lr_min: float = 0.0
    lr_max: float = 0.0


def radius(spec: Spec, at: Moment | None) -> float:
    """GSAM: rho_t = rho_min + (rho - rho_min) (lr_t - lr_min) / (lr_max - lr_min).

    Warm-up starts below lr_min, where the line would make rho negative: rho_min is the floor.
    """
    if spec.radius is Radius.constant:
        return spec.rho
    if at is None:
        raise ValueError("radius=follow_lr needs estimate(..., at=Moment(lr=..., lr_min=..., lr_max=...))")
    span = at.lr_max - at.lr_min
    share = (at.lr - at.lr_min) / span if span > 0 else 1.0
    return max(spec.rho_min, spec.rho_min + (spec.rho - spec.rho_min) * share)


def noise_size(spec: Spec, at: Moment | None) -> float:
    """gamma, or a cosine ramp gamma_t = gamma + (gamma_end - gamma) (1 - cos(pi t / T)) / 2 over the run."""
    if spec.gamma_end is None:
        return spec.gamma
    if at is None:
        raise ValueError("gamma_end needs estimate(..., at=Moment(progress=...))")
    return spec.gamma + (spec.gamma_end - spec.gamma) * (1 - math.cos(math.pi * at.progress)) / 2


def ascends(spec: Spec, step: int) -> bool:
    """Every `every`-th step, the first one included."""
    return step % spec.every == 0
