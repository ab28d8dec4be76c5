"""Small stand-ins in the exact official layouts, with their own table of sizes and digests."""

import gzip
import hashlib
from pathlib import Path

import numpy as np

from sam_repro.data.layouts import CIFAR10, CIFAR100, FASHION_MNIST, File, Layout


def write(folder: Path, name: str, content: bytes) -> File:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return File(name, len(content), hashlib.md5(content).hexdigest())


class StandIns:
    """Writes data sets of a few images under `root` and remembers what is in them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.random = np.random.default_rng(0)

    def cifar(self, official: Layout, classes: int, per_file: int) -> tuple[Layout, dict[str, np.ndarray]]:
        folder, rows, tables = self.root / official.folder, {}, []
        for half in (official.train, official.test):
            files = []
            for file in half:
                fine = np.arange(per_file) % classes
                images = self.random.integers(0, 256, (per_file, 3, 32, 32), dtype=np.uint8)
                labels = [fine // 5, fine] if official.label_bytes == 2 else [fine]
                rows[file.name] = np.column_stack([*labels, images.reshape(per_file, -1)]).astype(np.uint8)
                files.append(write(folder, file.name, rows[file.name].tobytes()))
            tables.append(tuple(files))
        return Layout(official.folder, tables[0], tables[1], official.label_bytes), rows

    def cifar10(self, per_file: int = 20) -> tuple[Layout, dict[str, np.ndarray]]:
        return self.cifar(CIFAR10, 10, per_file)

    def cifar100(self, per_file: int = 200) -> tuple[Layout, dict[str, np.ndarray]]:
        return self.cifar(CIFAR100, 100, per_file)

    def fashion(self, train: int = 60, test: int = 30) -> tuple[Layout, dict[str, np.ndarray]]:
        folder, arrays, tables = self.root / FASHION_MNIST.folder, {}, []
        for half, n in ((FASHION_MNIST.train, train), (FASHION_MNIST.test, test)):
            images = self.random.integers(0, 256, (n, 28, 28), dtype=np.uint8)
            labels = (np.arange(n) % 10).astype(np.uint8)
            files = []
            for file, array in zip(half, (images, labels), strict=True):
                header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
                files.append(write(folder, file.name, header + array.tobytes()))
                arrays[file.name] = array
            tables.append(tuple(files))
        return Layout(FASHION_MNIST.folder, tables[0], tables[1], idx=True), arrays
