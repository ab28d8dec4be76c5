"""Mixup (Zhang et al. 2018) and CutMix (Yun et al. 2019): each sample is blended with a partner, and so is its target.

    mixup     x' = lam x + (1 - lam) x_partner,      lam ~ Beta(alpha, alpha)
    cutmix    x' = x_partner inside of a box and x outside; the box has the share 1 - lam of the area and its centre
              anywhere; it is clipped at the border and lam becomes the share that is really left
    both      y' = lam y + (1 - lam) y_partner

lam and the box are drawn for each sample by its own counter, not once for a batch as in the authors' code: so a
sample's share does not depend on the batch it is in.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sam_repro.config.schema import AugmentConfig
from sam_repro.data.counter import Draw, integers, key, uniform
from sam_repro.data.sending import send


@dataclass(frozen=True)
class Recipe:
    """For each sample: its own share of the blend, and the box that is the partner's alone (empty: no box)."""

    share: Tensor  # float32 [n], the lam of the targets
    blend: Tensor  # float32 [n], the lam of the pixels outside of the box
    box: Tensor  # int64 [n, 4]: top, bottom, left, right


def applies(augment: AugmentConfig) -> bool:
    return (augment.mixup > 0 or augment.cutmix > 0) and augment.mix_probability > 0


def draw(ids: Tensor, augment: AugmentConfig, seed: int, epoch: int, height: int, width: int) -> Recipe:
    from scipy.special import betaincinv

    draws = (Draw.mixing_apply, Draw.mixing_kind, Draw.mixing_share)
    apply, kind, quantile = uniform(ids, *(key(seed, epoch, s) for s in draws)).unbind(1)
    cut = torch.full_like(kind, augment.cutmix > 0, dtype=torch.bool)
    if augment.mixup > 0:
        cut &= kind < 0.5
    alpha = torch.where(cut, augment.cutmix, augment.mixup).double()
    lam = torch.from_numpy(betaincinv(alpha.numpy(), alpha.numpy(), quantile.numpy()))
    lam = torch.where(apply < augment.mix_probability, lam, 1.0)

    side = (1.0 - lam).sqrt() * cut
    keys = [key(seed, epoch, Draw.mixing_y), key(seed, epoch, Draw.mixing_x)]
    centre_y, centre_x = integers(ids, keys, [height, width]).unbind(1)
    half_y, half_x = (height * side).long() // 2, (width * side).long() // 2
    edges = [
        (centre_y - half_y).clamp(min=0),
        (centre_y + half_y).clamp(max=height),
        (centre_x - half_x).clamp(min=0),
        (centre_x + half_x).clamp(max=width),
    ]
    left = 1.0 - (edges[1] - edges[0]) * (edges[3] - edges[2]) / (height * width)
    share = torch.where(cut, left, lam).float()
    return Recipe(share, torch.where(cut, 1.0, share), torch.stack(edges, dim=1))


def blend(images: Tensor, partners: Tensor, recipe: Recipe) -> Tensor:
    height, width = images.shape[-2:]
    top, bottom, left, right = send(recipe.box, images.device)[:, :, None].unbind(1)
    rows, columns = torch.arange(height, device=images.device), torch.arange(width, device=images.device)
    inside_y = ((rows >= top) & (rows < bottom)).float()
    inside_x = ((columns >= left) & (columns < right)).float()
    outside = 1.0 - inside_y[:, None, :, None] * inside_x[:, None, None, :]
    own = send(recipe.blend, images.device)[:, None, None, None] * outside
    return images * own + partners * (1.0 - own)


def soften(targets: Tensor, partners: Tensor, recipe: Recipe, classes: int) -> Tensor:
    """float32 [n, classes]."""
    share = send(recipe.share, targets.device)[:, None]
    own, other = (torch.nn.functional.one_hot(t, classes).float() for t in (targets, partners))
    return own * share + other * (1.0 - share)
