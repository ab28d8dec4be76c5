"""The listing of class folders: the same whether it is read from the folders or from the cache, in `Path`'s order."""

import gc
import json
import os
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import psutil
import pytest
import torch
from image_folders import jpeg, write

from sam_repro.config.schema import AugmentConfig, BudgetConfig
from sam_repro.data import listed, load
from sam_repro.data.declared import DatasetConfig, Fit, Source
from sam_repro.data.listing import SETTLED_SECONDS, SUFFIXES

CLASSES = ("ape", "bird")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Flat and nested classes, links, and names that sort otherwise as text than as paths, or are no text."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(listed, "WORTH_KEEPING", 1)
    for name in ("1.png", "a/2.JPEG", "a-b.jpg", "a/b/3.gif", ".hidden.png", ".far/4.bmp", "notes.txt"):
        write(tmp_path / "train/ape" / name, b"")
    for name in (b"\xff.png", "\uffff.png".encode(), "\U0001f600.png".encode(), b"new\nline.png"):
        write(tmp_path / "train/bird/x").rename(os.fsdecode(os.fsencode(tmp_path) + b"/train/bird/" + name))
    (tmp_path / "train/bird/a.png").symlink_to("nowhere")
    (tmp_path / "train/bird/folder.png").symlink_to(tmp_path / "train/ape")
    monkeypatch.setattr(listed, "SETTLED_SECONDS", 0.1)
    time.sleep(0.2)  # no program can set back the time of an inode's change
    return tmp_path / "train"


def as_paths_sort(folder: Path) -> list[Path]:
    names = (Path(base, name) for base, _, names in os.walk(folder) for name in names)
    return sorted(path for path in names if path.name.lower().endswith(SUFFIXES) and path.name[0] != ".")


def listing(folder: Path, classes: Sequence[str] = CLASSES) -> tuple[list[Path], list[int]]:
    paths, counts = listed.listed(folder, classes)
    return [Path(os.fsdecode(path)) for path in paths], counts


def kept(folder: Path) -> list[Path]:
    return list((folder.parent / "cache/sam_repro/listings").glob("*"))


def test_a_listing_is_kept_until_a_folder_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [path for name in CLASSES for path in as_paths_sort(folder / name)], [5, 5]
    assert listing(folder) == expected
    (cache,) = kept(folder)
    with monkeypatch.context() as patch:
        patch.setattr(listed, "walked", None)
        assert listing(folder) == expected
    nested = write(folder / "ape/a/b/0.png")
    assert listing(folder)[0][1] == expected[0][1]
    assert listing(folder)[1] == [6, 5]
    nested = nested.rename(folder / "ape/a/b/9.png")
    assert listing(folder)[0] == [path for name in CLASSES for path in as_paths_sort(folder / name)]
    assert listing(folder)[1] == [6, 5]
    nested.unlink()
    assert listing(folder) == expected
    assert listing(folder, ["bird"]) == (expected[0][5:], [5])
    shutil.rmtree(folder / "bird")
    assert listing(folder)[1] == [5, 0]
    assert [cache] == kept(folder), "nothing lies beside it"


def test_a_folder_that_just_changed_is_not_believed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "SETTLED_SECONDS", SETTLED_SECONDS)
    write(folder / "ape/0.png")
    assert listing(folder)[1] == [6, 5]
    assert not kept(folder), "it may change again within one tick of the clock"


def test_a_listing_that_is_none_is_made_anew(folder: Path) -> None:
    expected = listing(folder)
    (cache,) = kept(folder)
    whole = cache.read_bytes()
    foreign = json.dumps({"classes": CLASSES}).encode() + b"\n"
    for content in (
        b"",
        whole[:-1],
        whole[: len(whole) // 2],
        whole.replace(b"2.JPEG", b"3.JPEG"),
        listed.checked(foreign),
        listed.checked(b"[" * 5000),
        listed.checked(b"null"),
    ):
        cache.write_bytes(content)
        assert listing(folder) == expected
        assert cache.read_bytes() == whole
    cache.unlink()
    cache.mkdir()  # nor can it be written
    assert listing(folder) == expected


def test_a_home_that_cannot_be_written_costs_time_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = listing(folder)
    for home in ("/proc/none", str(write(folder.parent / "file"))):
        monkeypatch.setenv("XDG_CACHE_HOME", home)
        assert listing(folder) == expected


@pytest.mark.slow  # 20 s
def test_a_worker_takes_no_more_memory_at_an_epochs_end(tmp_path: Path) -> None:
    """100,000 files, in the order of the listing: what reading a file leaves behind grows with each of them."""
    root = tmp_path / ("long" * 50)
    for label in range(100):
        write(root / f"test/{label}/0.jpg")
        first = write(root / f"train/{label}/0.jpg", jpeg(width=8, height=8))
        for number in range(1, 1000):
            os.link(first, first.with_name(f"{number}.jpg"))
    # A page that the parent writes is the worker's alone from then on: a test process writes many, a fresh one few.
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        before, after = fresh.submit(megabytes_of_a_worker, root).result()
    assert after < before + 8, "paths in a list are copied as they are read, 20 MB"
    assert after < 70, "one look for garbage at what was there at the fork copies 80 MB to the worker's 35"


def megabytes_of_a_worker(root: Path) -> list[float]:
    """What it shares with nobody, at two fifths of an epoch and at its end."""
    fields = {"classes": 100, "image_size": 8, "stream": True, "workers": 1, "fit": Fit.squash}
    config = DatasetConfig(Source.folder, str(root), **fields)  # type: ignore[arg-type]
    others = set(psutil.Process().children())
    data = load(config, AugmentConfig(crop=0, flip=False), BudgetConfig(), 0, "cpu").train
    megabytes = []
    for number, _ in enumerate(data.gather_each(torch.arange(100_000).split(500), 0)):
        if number in (80, 199):
            gc.disable()  # in this process alone: its worker has begun
            (worker,) = set(psutil.Process().children()) - others
            megabytes.append(worker.memory_full_info().uss / 1e6)
    return megabytes
