"""How the embedded subset of Fashion-MNIST was made: `python -m sam_repro.data.embed <folder of the official files>`.

The first 1,000 training and 200 test images of each class in the fixed order of `subset.balanced`, in the official
order and layout. gzip's time stamp is zero, so the same zlib gives the same bytes.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import torch

from sam_repro.data.layouts import EMBEDDED, FASHION_MNIST, File, read
from sam_repro.data.subset import balanced

TRAIN, TEST = 10_000, 2_000


def embed(source: Path, destination: Path) -> None:
    destination.mkdir(parents=True, exist_ok=True)
    for (images_file, labels_file), n in ((FASHION_MNIST.train, TRAIN), (FASHION_MNIST.test, TEST)):
        labels = np.frombuffer(read(source, labels_file), np.uint8, offset=8)
        images = np.frombuffer(read(source, images_file), np.uint8, offset=16).reshape(-1, 28, 28)
        ids = balanced(torch.from_numpy(labels.astype(np.int64)), n).numpy()
        _write(destination, images_file, images[ids])
        _write(destination, labels_file, labels[ids])


def _write(folder: Path, file: File, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
    (folder / file.name).write_bytes(gzip.compress(header + array.tobytes(), 9, mtime=0))


if __name__ == "__main__":
    embed(Path(sys.argv[1]), EMBEDDED)
