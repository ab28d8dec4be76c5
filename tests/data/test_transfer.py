"""Flowers-102 and Pets, as stand-ins in the layout that torchvision reads."""

import http.server
import tarfile
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from image_folders import photograph
from scipy.io import savemat
from torchvision.datasets import Flowers102
from torchvision.datasets.utils import calculate_md5

from sam_repro.config.schema import AugmentConfig, BudgetConfig
from sam_repro.data import load
from sam_repro.data.declared import DatasetConfig, Fit, Source
from sam_repro.data.fetch import main
from sam_repro.errors import UserError

PLAIN = AugmentConfig(crop=0, flip=False)


def config(source: Source, root: Path, classes: int) -> DatasetConfig:
    return DatasetConfig(source, str(root), classes=classes, image_size=16, fit=Fit.squash)


@pytest.fixture
def flowers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    base = tmp_path / "flowers-102"
    for number in range(1, 13):
        photograph(base / "jpg" / f"image_{number:05d}.jpg", number)
    savemat(base / "setid.mat", {"trnid": [[1, 2, 3]], "valid": [[4, 5]], "tstid": [np.arange(6, 13)]})
    savemat(base / "imagelabels.mat", {"labels": [np.arange(12) % 3 + 1]})
    # torchvision's table of digests, pointed at the stand-in.
    table = dict(Flowers102._file_dict)
    for part in ("setid", "label"):
        table[part] = (table[part][0], calculate_md5(base / table[part][0]))
    monkeypatch.setattr(Flowers102, "_file_dict", table)
    return tmp_path


def test_flowers_trains_on_train_and_val(flowers: Path) -> None:
    data = load(config(Source.flowers102, flowers, 3), PLAIN, BudgetConfig(), 0, "cpu")
    assert (data.train.size, data.test.size) == (5, 7)
    batch = data.train.gather(torch.arange(5), 0)
    assert batch.targets.tolist() == [0, 1, 2, 0, 1]
    assert batch.images.shape == (5, 3, 16, 16)
    (tested,) = data.test.batches(100)
    assert tested.targets.tolist() == [2, 0, 1, 2, 0, 1, 2]


def test_altered_labels_of_flowers_are_refused(flowers: Path) -> None:
    savemat(flowers / "flowers-102/imagelabels.mat", {"labels": [np.ones(12)]})
    with pytest.raises(UserError, match="flowers102 not found or altered"):
        load(config(Source.flowers102, flowers, 3), PLAIN, BudgetConfig(), 0, "cpu")


def test_flowers_are_fetched_through_torchvision_once(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site, target = flowers / "flowers-102", tmp_path / "machine"
    with tarfile.open(site / "102flowers.tgz", "w:gz") as tar:
        tar.add(site / "jpg", "jpg")
    Flowers102._file_dict["image"] = ("102flowers.tgz", calculate_md5(site / "102flowers.tgz"))
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        monkeypatch.setattr(Flowers102, "_download_url_prefix", f"http://127.0.0.1:{server.server_port}/")
        assert main(["flowers102", "--root", str(target)]) == 0
        server.shutdown()
    assert not (target / ".fetch-flowers102").exists()
    assert load(config(Source.flowers102, target, 3), PLAIN, BudgetConfig(), 0, "cpu").test.size == 7
    assert main(["flowers102", "--root", str(target)]) == 0  # the server is gone: nothing is fetched again
    capsys.readouterr()
    assert main(["flowers102", "--root", str(tmp_path / "elsewhere")]) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert not (tmp_path / "elsewhere/flowers-102").exists()


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    base = tmp_path / "oxford-iiit-pet"
    (base / "annotations").mkdir(parents=True)
    names = [f"{breed}_{n}" for breed in ("Abyssinian", "beagle") for n in range(1, 5)]
    for seed, name in enumerate(names):
        photograph(base / "images" / f"{name}.jpg", seed)
    lines = [f"{name} {1 + i // 4} 1 1\n" for i, name in enumerate(names)]
    (base / "annotations/trainval.txt").write_text("".join(lines[:3] + lines[4:6]))
    (base / "annotations/test.txt").write_text("".join(lines[3:4] + lines[6:]))
    return tmp_path


def test_pets(pets: Path) -> None:
    data = load(config(Source.pets, pets, 2), PLAIN, BudgetConfig(), 0, "cpu")
    assert data.train.gather(torch.arange(5), 0).targets.tolist() == [0, 0, 0, 1, 1]
    (tested,) = data.test.batches(100)
    assert tested.targets.tolist() == [0, 1, 1]


def test_a_missing_pet_is_named(pets: Path) -> None:
    (pets / "oxford-iiit-pet/images/beagle_2.jpg").unlink()
    with pytest.raises(UserError, match=r"beagle_2\.jpg is missing"):
        load(config(Source.pets, pets, 2), PLAIN, BudgetConfig(), 0, "cpu")


@pytest.mark.parametrize("source", [Source.flowers102, Source.pets])
def test_absent_sets_say_where_they_were_sought(source: Source, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"sam-repro fetch {source.value}") as caught:
        load(config(source, tmp_path, 3), PLAIN, BudgetConfig(), 0, "cpu")
    assert str(tmp_path) in str(caught.value)
