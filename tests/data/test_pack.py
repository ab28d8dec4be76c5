"""ImageNet in one file: what the folders hold, made smaller; whole or not there; and refused where it is torn."""

import hashlib
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from image_folders import jpeg, photograph, write
from PIL import Image
from torchvision.transforms import v2

from sam_repro.config.compose import compose
from sam_repro.config.identity import run_id
from sam_repro.config.schema import AugmentConfig, BudgetConfig
from sam_repro.data import Data, imagenet, load
from sam_repro.data.declared import DatasetConfig, Source
from sam_repro.data.evaluation_sets import evaluation_sets
from sam_repro.data.fetch import main
from sam_repro.data.layouts import look_for
from sam_repro.errors import UserError

WNIDS = ("n01440764", "n01443537")


def smooth(path: Path, seed: int, kind: str = "JPEG") -> None:
    coarse = np.random.default_rng(seed).integers(0, 256, (3, 4, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(coarse).resize((60, 45), Image.Resampling.BICUBIC).save(path, kind, quality=95)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two classes of photographs; one is a PNG by another name, one is grey, one is small already."""
    monkeypatch.setattr(imagenet, "wnids", lambda: WNIDS)
    folder = tmp_path / "source"
    for label, wnid in enumerate(WNIDS):
        for number in range(3):
            smooth(folder / f"train/{wnid}/{wnid}_{number}.JPEG", 10 * label + number, "PNG" if number == 1 else "JPEG")
    for number in range(1, 5):
        smooth(folder / f"val/{WNIDS[number % 2]}/ILSVRC2012_val_{number:08d}.JPEG", 100 + number)
    Image.open(folder / f"train/{WNIDS[1]}/{WNIDS[1]}_0.JPEG").convert("L").save(
        folder / f"train/{WNIDS[1]}/{WNIDS[1]}_0.JPEG"
    )
    write(folder / f"train/{WNIDS[1]}/{WNIDS[1]}_2.JPEG", jpeg(width=20, height=16))
    return folder


def pack(source: Path, root: Path, *more: str) -> int:
    return main(["imagenet", "--pack", "--pixels", "16", "--from", str(source), "--root", str(root), *more])


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def data(root: Path, pixels: int | None = 16, workers: int = 0) -> Data:
    settings = {"classes": 2, "image_size": 14, "crop_share": 0.875, "stream": True, "workers": workers, "pack": pixels}
    config = DatasetConfig(Source.imagenet, str(root), mean=[0.0] * 3, std=[1 / 255] * 3, **settings)  # type: ignore[arg-type]
    look_for(config)
    return load(config, AugmentConfig(crop=0, resized_crop=0.3), BudgetConfig(), 0, "cpu")


def test_a_pack_is_the_folders_made_smaller(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pack(source, tmp_path) == 0
    path = tmp_path / "imagenet-16.pack"
    assert capsys.readouterr().out == f"{path}\n"
    assert sorted(os.listdir(tmp_path)) == [".fetch-imagenet-16.pack.lock", path.name, "source"]
    for (packed, labels), (files, expected) in zip(
        imagenet.find_packed(str(tmp_path), 16), imagenet.find_imagenet(str(source)), strict=True
    ):
        assert torch.equal(labels, expected)
        for index in range(len(files)):
            assert packed.path(index).relative_to(path) == files.path(index).relative_to(source)
            whole, small = files.read(index), packed.read(index)
            if min(whole.shape[1:]) > 16:  # as evaluation scales it
                off = (small.float() - v2.Resize(16)(whole).float()).abs()
                assert small.shape == (3, 16, 21)
                assert off.mean() < 2
            else:
                assert packed.content(index) == files.content(index)


def test_runs_and_evaluations_read_it(source: Path, tmp_path: Path) -> None:
    assert pack(source, tmp_path) == 0
    shutil.copytree(source / "val", tmp_path / "val")  # which is not what is judged here
    alone, helped, folders = data(tmp_path), data(tmp_path, workers=1), data(source, None)
    order = alone.train.order(1)
    for one, other in zip(*(found.train.gather_each(order.split(4), 1) for found in (alone, helped)), strict=True):
        assert torch.equal(one.images, other.images)
        assert torch.equal(one.targets, other.targets)
    ((judged,), (expected,)) = (list(found.test.batches(9)) for found in (alone, folders))
    assert torch.equal(judged.targets, expected.targets)
    assert (judged.images - expected.images).abs().mean() < 2, "the pictures that evaluation makes of the folders"
    assert (alone.facts["train_images"], alone.facts["test_images"]) == (6, 4)
    assert len(alone.facts["pack"]) == 64
    assert "pack" not in folders.facts
    config = DatasetConfig(Source.imagenet, str(tmp_path), classes=2, image_size=14, workers=0, pack=16)
    (one,) = evaluation_sets("imagenet", config, "cpu")
    assert str(one.data.pictures.path(0)).startswith(str(tmp_path / "imagenet-16.pack/val"))  # type: ignore[attr-defined]
    real, _ = imagenet.find_real(str(tmp_path), [[0], [], [1], [0, 1]], pack=16)
    assert sorted(real.path(index).name[-6:] for index in range(3)) == ["1.JPEG", "3.JPEG", "4.JPEG"]
    assert real.path(0).parents[2].name == "imagenet-16.pack"


def test_what_a_kill_leaves_is_kept(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of whatever a kill leaves of the two files, what is whole is taken and the rest made again."""
    assert pack(source, tmp_path / "fresh") == 0
    fresh = sha256(tmp_path / "fresh/imagenet-16.pack")
    last = source / f"val/{WNIDS[1]}/ILSVRC2012_val_00000003.JPEG"
    whole = last.read_bytes()
    last.write_bytes(whole[:100])
    assert pack(source, tmp_path / "cut") == 2
    (error,) = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert f"{last} is no readable image" in error
    last.write_bytes(whole)
    staging = tmp_path / "cut/.fetch-imagenet-16.pack"
    assert not (tmp_path / "cut/imagenet-16.pack").exists()
    pictures, records = (staging / "pictures").read_bytes(), (staging / "records").read_bytes()
    first = source / f"train/{WNIDS[0]}/{WNIDS[0]}_0.JPEG"
    assert len(records) == 9 * 36

    def resumed(pictures: bytes, records: bytes, name: str) -> str:
        root = tmp_path / name
        shutil.rmtree(root, ignore_errors=True)
        write(root / ".fetch-imagenet-16.pack/pictures", pictures)
        write(root / ".fetch-imagenet-16.pack/records", records)
        assert pack(source, root) == 0
        return sha256(root / "imagenet-16.pack")

    for cut in (0, 5, 70, len(pictures) // 2, len(pictures)):
        assert resumed(pictures[:cut], records, "cut") == fresh
        assert resumed(pictures, records[: cut % len(records)], "cut") == fresh
    assert resumed(pictures + b"torn", records + bytes(50), "cut") == fresh
    assert resumed(b"another form\n" + pictures, records, "cut") == fresh
    smooth(first, 77)  # had it been made again, it would be another pack
    assert resumed(pictures, records, "cut") == fresh
    assert resumed(b"", b"", "cut") != fresh


def test_what_the_folders_reader_refuses_is_not_packed(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(match: str) -> None:
        assert pack(source, tmp_path / "root") == 2
        assert match in capsys.readouterr().err
        assert not list((tmp_path / "root").glob("*.pack"))

    for image in (source / f"val/{WNIDS[0]}").iterdir():
        image.unlink()
    refused(f"val/{WNIDS[0]} has no images")
    shutil.rmtree(source / f"val/{WNIDS[0]}")
    refused("1 lack (n01440764, ...)")
    shutil.rmtree(source)
    refused("imagenet/train not found; looked in")


def test_a_torn_pack_is_one_line(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pack(source, tmp_path) == 0
    path = tmp_path / "imagenet-16.pack"
    whole = path.read_bytes()
    again = "delete it and make it again with `sam-repro fetch imagenet --pack --pixels 16`"
    for content in (whole[:-1], whole[:500], whole[:3], whole + b"x", whole[:-60] + b"x" + whole[-59:], b"x" * 500):
        path.write_bytes(content)
        with pytest.raises(UserError, match="is torn, or no pack of 16 pixels: " + again):
            data(tmp_path)
        capsys.readouterr()
        assert pack(source, tmp_path) == 2, "what lies there may be somebody's: it is not written over"
        assert again in capsys.readouterr().err
    path.write_bytes(b"")
    with pytest.raises(UserError, match=r"imagenet-16\.pack can't be read"):
        data(tmp_path)
    path.write_bytes(whole)
    assert pack(source, tmp_path, "--check") == 0
    shutil.copy(path, tmp_path / "imagenet-14.pack")
    with pytest.raises(UserError, match="no pack of 14 pixels"):
        data(tmp_path, 14)
    middle = len(whole) // 4
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    assert pack(source, tmp_path, "--check") == 2
    assert ".JPEG is not as it was packed: delete" in capsys.readouterr().err


def test_it_is_part_of_what_a_run_is() -> None:
    settings = ["dataset=imagenet", "model=timm", "model.name=vit_tiny_patch16_224"]
    folders, small, large = ([*settings, f"dataset.pack={pack}"] for pack in ("null", 256, 512))
    assert run_id(compose(folders)) == run_id(compose(settings))
    assert len({run_id(compose(said)) for said in (folders, small, large)}) == 3
    with pytest.raises(UserError, match=r"dataset\.pack is 128: its pictures are smaller than dataset\.image_size=224"):
        compose([*settings, "dataset.pack=128"])
    with pytest.raises(UserError, match=r"dataset\.pack is not read here: it goes with dataset=imagenet"):
        compose(["dataset.pack=256"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["imagenet"], "imagenet is on no registry: dataset.root= names your copy; --pack makes one file of it"),
        (["imagenet", "--pack", "--pixels", "2k"], "--pixels 2k: say a whole number"),
        (["cifar10", "--pack"], "--pack goes with imagenet"),
    ],
)
def test_mistakes_are_one_line(words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--root", str(tmp_path / "data")]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "data").exists()
    with pytest.raises(UserError, match=r"imagenet-256\.pack not found; looked in .*--pack --pixels 256"):
        look_for(DatasetConfig(Source.imagenet, str(tmp_path), pack=256))


@pytest.mark.slow  # 15 s
def test_a_killed_packing_leaves_no_process(source: Path, tmp_path: Path) -> None:
    """Though its workers hand over more than a pipe holds, and nobody reads it."""
    for number in range(1000):
        photograph(source / f"train/{WNIDS[0]}/more_{number}.JPEG", seed=0, width=300, height=200)
    called = (
        f"from sam_repro.data import imagenet, packing\nfrom pathlib import Path\nimagenet.wnids = lambda: {WNIDS}\n"
        f"packing.make({str(source)!r}, Path({str(tmp_path)!r}), 190)"
    )
    process = psutil.Popen([sys.executable, "-c", called])
    try:
        records = tmp_path / ".fetch-imagenet-190.pack/records"
        while not (records.exists() and records.stat().st_size):
            assert process.poll() is None
            time.sleep(0.05)
        workers = process.children()
        assert workers
    finally:
        process.kill()
        process.wait()
    _, left = psutil.wait_procs(workers, timeout=30)
    for worker in left:
        worker.kill()
    assert not left
    assert not (tmp_path / "imagenet-190.pack").exists()
