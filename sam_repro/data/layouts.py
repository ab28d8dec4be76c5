"""The official files of each data set, as data: where they are and how each is verified. Imports no torch.

The CIFAR sets are read in their binary layout, never as pickles, which run code. Fashion-MNIST is the idx layout; its
files are checked after decompression, since distributions compress the same content differently.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from sam_repro.data.declared import FOLDERS, DatasetConfig, Source, pack_name
from sam_repro.errors import UserError
from sam_repro.files.read import DamagedError, read_bytes, read_text

MANIFEST = "sha256.txt"  # written beside the files by the fetcher, when they come from an archive with verified md5
EMBEDDED = Path(__file__).resolve().parent / "embedded"
ENVIRONMENT = "SAM_REPRO_DATA"  # a folder to look in besides dataset.root


@dataclass(frozen=True)
class File:
    name: str
    size: int  # bytes of the content; of a .gz file, decompressed
    md5: str  # of the content


@dataclass(frozen=True)
class Layout:
    folder: str
    train: tuple[File, ...]
    test: tuple[File, ...]
    label_bytes: int = 1  # before each image of a binary file; the last of them is the label used
    idx: bool = False  # a pair of idx files (images, labels) instead of binary files

    @property
    def files(self) -> tuple[File, ...]:
        return self.train + self.test


CIFAR10 = Layout(
    folder="cifar-10-batches-bin",
    train=(
        File("data_batch_1.bin", 30_730_000, "5dd7e06a14cb22eb9f671a540d1b7c25"),
        File("data_batch_2.bin", 30_730_000, "5ea93a67294ea407fff1d09f752e9692"),
        File("data_batch_3.bin", 30_730_000, "942cd6a4bcdd0dd3c604fbe906cb4421"),
        File("data_batch_4.bin", 30_730_000, "ae636b3ba5c66a11e91e8cb52e771fcb"),
        File("data_batch_5.bin", 30_730_000, "53f37980c15c3d472c316c40844f3f0d"),
    ),
    test=(File("test_batch.bin", 30_730_000, "803d5f7f4d78ea53de84dbe85f74fb6d"),),
)
# The publisher states the archive's md5 only. These two are a third party's; so what came out of a verified archive
# is accepted too, by the manifest.
CIFAR100 = Layout(
    folder="cifar-100-binary",
    train=(File("train.bin", 153_700_000, "6172c7755cfe09b2fe270c85cebc1b15"),),
    test=(File("test.bin", 30_740_000, "4499cfba6c016c1be1438163640a0898"),),
    label_bytes=2,
)
FASHION_MNIST = Layout(
    folder="fashion_mnist",
    train=(
        File("train-images-idx3-ubyte.gz", 47_040_016, "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
        File("train-labels-idx1-ubyte.gz", 60_008, "9018921c3c673c538a1fc5bad174d6f9"),
    ),
    test=(
        File("t10k-images-idx3-ubyte.gz", 7_840_016, "8181f5470baa50b63fa0f6fddb340f0a"),
        File("t10k-labels-idx1-ubyte.gz", 10_008, "15d484375f8d13e6eb1aabb0c3f46965"),
    ),
    idx=True,
)
EMBEDDED_SET = Layout(
    folder="embedded",
    train=(
        File("train-images-idx3-ubyte.gz", 7_840_016, "a79d38864c44c70d48401e419cf25db6"),
        File("train-labels-idx1-ubyte.gz", 10_008, "12df4f76948ce10993d23661fee491e7"),
    ),
    test=(
        File("t10k-images-idx3-ubyte.gz", 1_568_016, "1ea27803b1b4fc0c96c9ce0edaa9d263"),
        File("t10k-labels-idx1-ubyte.gz", 2_008, "795f34b28832a35de640661c442ef064"),
    ),
    idx=True,
)
LAYOUTS = {
    Source.cifar10: CIFAR10,
    Source.cifar100: CIFAR100,
    Source.fashion_mnist: FASHION_MNIST,
    Source.embedded: EMBEDDED_SET,
}


def candidates(layout: Layout, root: str) -> list[Path]:
    """Where the files may be: in their own folder under a root, or in the root itself."""
    if layout is EMBEDDED_SET:
        return [EMBEDDED]
    return [folder for r in roots(root) for folder in (r / layout.folder, r)]


def roots(root: str) -> list[Path]:
    """The configured root and the machine's."""
    return [Path(root).expanduser()] + ([Path(os.environ[ENVIRONMENT])] if os.environ.get(ENVIRONMENT) else [])


def find(layout: Layout, root: str, name: str) -> Path:
    """The folder that holds all the files, or the first of several that hold some (so that what lacks is named)."""
    places = candidates(layout, root)
    for folder in places:
        if all((folder / f.name).is_file() for f in layout.files):
            return folder
    # The bare root is named once, by its subfolder: "data/cifar-100-binary" and not "data" as well.
    looked = ", ".join(str(p.absolute()) for p in places[::2])
    present = [(p, f) for p in places for f in layout.files if (p / f.name).is_file()]
    lacking = [f.name for f in layout.files if present and not (present[0][0] / f.name).is_file()]
    what = f"{', '.join(lacking)} of {name}" if present else f"the files of {name} ({layout.files[0].name}, ...)"
    raise UserError(
        f"{what} not found; looked in {looked}. Either run `sam-repro fetch {name}`, or put the "
        f"official files into {places[0]} (dataset.root= or ${ENVIRONMENT} names another root)"
    )


def find_pack(root: str, pixels: int) -> Path:
    """The file that `sam-repro fetch imagenet --pack` makes."""
    places = [place / pack_name(pixels) for place in roots(root)]
    for place in places:
        if place.is_file():
            return place
    raise UserError(
        f"{pack_name(pixels)} not found; looked in {', '.join(str(place.parent.absolute()) for place in places)}: "
        f"make it of ImageNet's folders with `sam-repro fetch imagenet --pack --pixels {pixels}`"
    )


def look_for(config: DatasetConfig) -> None:
    """A UserError where the data is not there at all. What is in the files is read, and verified, by the runs."""
    name = config.name.value
    if config.name in LAYOUTS:
        find(LAYOUTS[config.name], config.root, name)
    elif config.pack is not None:
        find_pack(config.root, config.pack)
    elif config.name in FOLDERS:
        places = [root / folder for root in roots(config.root) for folder in FOLDERS[config.name]]
        if not any(place.is_dir() for place in places):
            looked = ", ".join(str(place.absolute()) for place in places)
            raise UserError(f"{name} not found; looked in {looked}: dataset.root= names the folder that holds it")


def read(folder: Path, file: File) -> bytes:
    """The verified content. A truncated or altered file is named and refused."""
    path = folder / file.name
    try:
        content = read_bytes(path, 2 * file.size + (1 << 16))
        if path.suffix == ".gz":
            content = gzip.GzipFile(fileobj=io.BytesIO(content)).read(file.size + 1)  # a bomb is not unpacked
    except (OSError, EOFError, zlib.error, DamagedError) as error:
        raise UserError(f"{path} can't be read ({error}): {_REMEDY}") from None
    if len(content) != file.size:
        raise UserError(f"{path} has {len(content)} bytes instead of {file.size}: {_REMEDY}")
    actual = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if actual != file.md5 and hashlib.sha256(content).hexdigest() != manifest(folder).get(file.name):
        raise UserError(f"{path} was altered: its md5 is {actual} instead of {file.md5}; {_REMEDY}")
    return content


_REMEDY = "delete it and fetch it again with sam-repro fetch"


def manifest(folder: Path) -> dict[str, str]:
    """The sha256 of each file of a verified archive, in the format of sha256sum; empty where there is no record."""
    try:
        lines = [line.split() for line in read_text(folder / MANIFEST).splitlines()]
    except (FileNotFoundError, DamagedError):
        return {}
    return {words[1]: words[0] for words in lines if len(words) == 2}
