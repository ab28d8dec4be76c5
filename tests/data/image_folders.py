"""Small image files and folders of them."""

import io
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image


@cache
def jpeg(value: int = 128, width: int = 12, height: int = 10) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.full((height, width, 3), value, np.uint8)).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def photograph(path: Path, seed: int, width: int = 40, height: int = 30) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def write(path: Path, content: bytes | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(jpeg() if content is None else content)
    return path
