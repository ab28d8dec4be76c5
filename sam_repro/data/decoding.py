"""One image file's bytes to pixels, by either decoder.

`fast` gives JPEGs to simplejpeg, which brings libjpeg-turbo: the library, the inverse transform and the upsampling of
Pillow's own builds, so the pixels are Pillow's to the bit (a test holds that, for every kind of JPEG). What it skips is
Pillow's copies. All else goes to Pillow: other formats, CMYK, and whatever simplejpeg finds fault with, so that
Pillow alone decides what is readable.
"""

from __future__ import annotations

import io

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sam_repro.data.declared import Decoder

# PIL goes by content, not by name, and for some formats (EPS) it starts other programs.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "PPM", "TIFF", "WEBP")
_JPEG = b"\xff\xd8\xff"
Pixels = NDArray[np.uint8]  # [h, w, 3]


def decode(content: bytes, decoder: Decoder) -> Pixels:
    """RGB, whatever a file holds; the orientation that EXIF tells is not applied. Raises what PIL raises."""
    if decoder is Decoder.pil:
        return _by_pil(content)
    pixels = _by_simplejpeg(content) if content.startswith(_JPEG) else None
    return _by_pil(content) if pixels is None else pixels


def _by_pil(content: bytes) -> Pixels:
    from PIL import Image

    with Image.open(io.BytesIO(content), formats=FORMATS) as image:
        return np.array(image.convert("RGB"))


def _by_simplejpeg(content: bytes) -> Pixels | None:
    """None where PIL is to look: at colours that are converted by PIL's formula, at giants, at what is damaged."""
    import simplejpeg
    from PIL import Image

    try:
        height, width, colours, _ = simplejpeg.decode_jpeg_header(content)
        if colours not in ("YCbCr", "RGB", "Gray") or height * width > (Image.MAX_IMAGE_PIXELS or 0):
            return None
        pixels: Pixels = simplejpeg.decode_jpeg(content)  # strict: a warning is an error
    except ValueError:
        return None
    return pixels


def planes(pixels: Pixels) -> Tensor:
    """[3, h, w], a view."""
    return torch.from_numpy(pixels).permute(2, 0, 1)


def together(images: list[Tensor]) -> Tensor:
    """uint8 [n, 3, h, w] in channels-last order, the order that pixels are decoded and resized in."""
    return torch.stack([image.permute(1, 2, 0) for image in images]).permute(0, 3, 1, 2)
