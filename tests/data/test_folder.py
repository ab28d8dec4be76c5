"""Class folders of images."""

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sam_repro.config import identity
from sam_repro.config.compose import compose
from sam_repro.config.identity import run_id
from sam_repro.config.schema import AugmentConfig, BudgetConfig
from sam_repro.data import listing, load
from sam_repro.data.declared import DatasetConfig, Source
from sam_repro.errors import UserError

UNIT = {"mean": [0.0] * 3, "std": [1 / 255] * 3}


def make(root: Path, classes: tuple[str, ...] = ("bird", "ape"), size: tuple[int, int] = (8, 8)) -> None:
    random = np.random.default_rng(0)
    for half, n in (("train", 3), ("test", 2)):
        for name in classes:
            (root / half / name).mkdir(parents=True)
            for i in range(n):
                pixels = random.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
                Image.fromarray(pixels).save(root / half / name / f"{i}.png")


def config(root: Path, size: int = 8, classes: int = 2) -> DatasetConfig:
    return DatasetConfig(Source.folder, str(root), classes=classes, image_size=size, **UNIT)


def test_images_and_classes_in_sorted_order(tmp_path: Path) -> None:
    make(tmp_path)
    data = load(config(tmp_path), AugmentConfig(crop=0, flip=False), BudgetConfig(), 0, "cpu")
    batch = data.train.gather(torch.arange(6), 0)
    assert batch.targets.tolist() == [0, 0, 0, 1, 1, 1]  # ape before bird
    first = np.asarray(Image.open(tmp_path / "train/ape/0.png")).transpose(2, 0, 1)
    assert np.array_equal(batch.images[0].round().byte().numpy(), first)
    assert data.test.size == 4


def test_any_size_and_mode_is_fitted(tmp_path: Path) -> None:
    make(tmp_path, size=(20, 10))
    # The left and right quarters of a 2:1 image are cut away, the middle is scaled (the filter looks further).
    wide = np.zeros((10, 20, 3), np.uint8)
    wide[:, 2:18] = 200
    Image.fromarray(wide).save(tmp_path / "train/ape/0.png")
    Image.fromarray(wide[..., 0]).save(tmp_path / "train/ape/1.png")  # grey
    Image.fromarray(wide).convert("P", palette=Image.Palette.ADAPTIVE).save(tmp_path / "train/ape/2.png")  # palette
    data = load(config(tmp_path, size=5), AugmentConfig(crop=0, flip=False), BudgetConfig(), 0, "cpu")
    fitted = data.train.gather(torch.arange(3), 0).images
    assert fitted.shape == (3, 3, 5, 5)
    assert bool((fitted.round() == 200).all())


@pytest.mark.parametrize("content", [b"", b"not an image", None])
def test_an_unreadable_image_is_named(tmp_path: Path, content: bytes | None) -> None:
    make(tmp_path)
    path = tmp_path / "train/bird/1.png"
    path.write_bytes(path.read_bytes()[:60] if content is None else content)
    with pytest.raises(UserError, match=str(path)) as caught:
        load(config(tmp_path), AugmentConfig(), BudgetConfig(), 0, "cpu")
    assert "\n" not in str(caught.value)


def test_mistakes_are_told_in_one_line(tmp_path: Path) -> None:
    def refused(root: Path, match: str, **fields: int) -> None:
        with pytest.raises(UserError, match=match):
            load(config(root, **fields), AugmentConfig(), BudgetConfig(), 0, "cpu")

    refused(tmp_path / "absent", "dataset.root=")
    make(tmp_path)
    refused(tmp_path, "set dataset.classes=2", classes=3)
    (tmp_path / "test/bird").rename(tmp_path / "test/birds")
    refused(tmp_path, "different classes: bird, birds")
    (tmp_path / "train/cat").mkdir()
    (tmp_path / "test/birds").rename(tmp_path / "test/bird")
    refused(tmp_path, "different classes: cat: every class needs both", classes=3)
    (tmp_path / "train/cat").rmdir()
    for image in (tmp_path / "test/bird").iterdir():
        image.unlink()
    refused(tmp_path, "no images")


def test_the_run_id_is_of_the_images_and_of_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def id_of(root: str) -> str:
        identity._content.cache_clear()
        return run_id(compose(["dataset=folder", f'dataset.root="{root}"']))

    first, second = tmp_path / "first", tmp_path / "second"
    make(first)
    shutil.copytree(first, second)
    before = id_of(str(first))
    assert id_of(str(second)) == before, "where they lie is no part of it"
    (second / "train/bird/Thumbs.db").write_bytes(b"not an image")
    (second / "notes.txt").write_text("nor is this")
    assert id_of(str(second)) == before
    image = second / "train/bird/1.png"
    image.write_bytes(image.read_bytes()[:-1] + b"x")  # of equal name and size
    assert id_of(str(second)) != before
    monkeypatch.setenv("HOME", str(tmp_path))
    assert id_of("~/first") == before
    assert id_of("~/second") != before
    odd = os.fsencode(first) + b"/train/bird/\xff.png"  # not every file name is text
    with open(odd, "wb") as file:
        file.write(b"an image")
    assert id_of(str(first)) != before


def test_val_serves_where_there_is_no_test(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "test").rename(tmp_path / "val")
    data = load(config(tmp_path), AugmentConfig(crop=0, flip=False), BudgetConfig(), 0, "cpu")
    assert (data.train.size, data.test.size) == (6, 4)
    id_of = run_id(compose(["dataset=folder", f"dataset.root={tmp_path}"]))
    (tmp_path / "val/ape/0.png").unlink()
    identity._content.cache_clear()
    assert run_id(compose(["dataset=folder", f"dataset.root={tmp_path}"])) != id_of
    (tmp_path / "val").rename(tmp_path / "held")
    with pytest.raises(UserError, match=r"has no test/ \(nor val/\)"):
        load(config(tmp_path), AugmentConfig(), BudgetConfig(), 0, "cpu")


def test_classes_are_counted_where_none_are_typed(tmp_path: Path) -> None:
    make(tmp_path, classes=("ape", "bird", "cat"))
    counted = compose(["dataset=folder", f"dataset.root={tmp_path}"])
    assert counted.dataset.classes == 3
    assert run_id(compose(["dataset=folder", f"dataset.root={tmp_path}", "dataset.classes=3"])) == run_id(counted)
    with pytest.raises(UserError, match=r"dataset=folder found no .*none/train with class folders"):
        compose(["dataset=folder", f"dataset.root={tmp_path}/none"])


def test_a_folder_is_read_once_and_again_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make(tmp_path)
    image, kept = tmp_path / "train/ape/0.png", tmp_path / "cache/sam_repro/images"

    def cached() -> list[Path]:
        return list(kept.glob("*")) if kept.exists() else []

    first = listing.digest(str(tmp_path))
    assert not cached(), "a file that has just been written may change again within one tick of the clock"
    time.sleep(listing.SETTLED_SECONDS + 0.1)
    assert listing.digest(str(tmp_path)) == first
    (record,) = cached()
    for content in (b"{", b"[" * 5000, b"null", record.read_bytes().replace(first[:4].encode(), b"0000")):
        record.write_bytes(content)
        assert listing.digest(str(tmp_path)) == first, "a damaged record is none"
    with monkeypatch.context() as patch:  # what is kept needs no image
        patch.setattr(listing, "opened", None)
        assert listing.digest(str(tmp_path)) == first
    before = image.stat()
    image.write_bytes(image.read_bytes()[:-1] + b"x")
    os.utime(image, ns=(before.st_atime_ns, before.st_mtime_ns))  # of equal size and time
    assert listing.digest(str(tmp_path)) != first


def test_an_image_is_what_it_holds_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/gs").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (tmp_path / "bin/gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"
    (tmp_path / "train/ape/0.png").write_bytes(eps)
    with pytest.raises(UserError, match=r"ape/0\.png is no readable image"):
        load(config(tmp_path), AugmentConfig(), BudgetConfig(), 0, "cpu")
    assert not (tmp_path / "started").exists()


def test_a_pipe_in_an_images_place_is_one_line(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "train/ape/0.png").unlink()
    os.mkfifo(tmp_path / "train/ape/0.png")
    with pytest.raises(UserError, match=r"ape/0\.png is no file"):
        listing.digest(str(tmp_path))
    with pytest.raises(UserError, match=r"ape/0\.png is no readable image"):
        load(config(tmp_path), AugmentConfig(), BudgetConfig(), 0, "cpu")
