"""What happens to a batch of uint8 images on the device: normalisation, cutout, mixing."""

from __future__ import annotations

import torch
from torch import Tensor

from sam_repro.config.schema import AugmentConfig
from sam_repro.data import mixing
from sam_repro.data.counter import Draw, integers, key
from sam_repro.data.sending import send

_COIN = 1 << 24  # resolution of cutout_probability


class Normalise:
    """(x / 255 - mean) / std of uint8 images, as one subtraction and one product.

    Two separate roundings and no fused multiply-add: so a pixel's value can't depend on where in a batch it stands.
    """

    def __init__(self, mean: list[float], std: list[float], device: torch.device) -> None:
        self.shift = torch.tensor([255.0 * m for m in mean], device=device).reshape(-1, 1, 1)
        self.scale = torch.tensor([1.0 / (255.0 * s) for s in std], device=device).reshape(-1, 1, 1)

    def __call__(self, images: Tensor) -> Tensor:
        floats = images.float()  # what follows is in place: an operation of two types is 20 x slower
        channels_last = not floats.is_contiguous() and floats.is_contiguous(memory_format=torch.channels_last)
        if channels_last and floats.device.type == "cpu":
            # A processor's loops are over the innermost dimension: whole rows, not three channels.
            rows, width = floats.permute(0, 2, 3, 1).flatten(2), floats.shape[3]
            rows.sub_(self.shift.flatten().repeat(width)).mul_(self.scale.flatten().repeat(width))
            return floats
        return floats.sub_(self.shift).mul_(self.scale)


class OnDevice:
    def __init__(self, augment: AugmentConfig, normalise: Normalise, seed: int, classes: int) -> None:
        self.augment = augment
        self.normalise = normalise
        self.seed = seed
        self.classes = classes
        self.mixing = mixing.applies(augment)

    def pixels(self, images: Tensor, ids: Tensor, epoch: int) -> Tensor:
        """float32, normalised, with cutout. `ids` are on the host."""
        images = self.normalise(images)
        return images.mul_(self._cutout_mask(images, ids, epoch)) if self.augment.cutout else images

    def blend(
        self, images: Tensor, targets: Tensor, partners: Tensor, partner_targets: Tensor, ids: Tensor, epoch: int
    ) -> tuple[Tensor, Tensor]:
        """Mixup or CutMix with the given partners. `ids` are on the CPU."""
        recipe = mixing.draw(ids, self.augment, self.seed, epoch, *images.shape[-2:])
        targets = mixing.soften(targets, partner_targets, recipe, self.classes)
        return mixing.blend(images, partners, recipe), targets

    def _cutout_mask(self, images: Tensor, ids: Tensor, epoch: int) -> Tensor:
        """[n, 1, H, W], 0 in a square around a uniformly drawn pixel and 1 elsewhere (DeVries and Taylor 2017).

        The square has its centre anywhere in the image and is clipped at the border, as in their code: it goes from
        centre - side // 2 to centre + side // 2, exclusive. Zero after normalisation is the mean colour.
        """
        height, width = images.shape[-2:]
        keys = [key(self.seed, epoch, s) for s in (Draw.cutout_apply, Draw.cutout_y, Draw.cutout_x)]
        coin, y, x = send(integers(ids, keys, [_COIN, height, width]), images.device)[:, :, None].unbind(1)
        half = self.augment.cutout // 2
        rows = torch.arange(height, device=images.device) - y
        columns = torch.arange(width, device=images.device) - x
        inside_y = (rows >= -half) & (rows < half) & (coin < round(self.augment.cutout_probability * _COIN))
        inside_x = (columns >= -half) & (columns < half)
        return 1.0 - inside_y.float()[:, None, :, None] * inside_x.float()[:, None, None, :]
