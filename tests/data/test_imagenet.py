"""ImageNet and the test sets made for it, as small stand-ins in the published layouts, whole and broken."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from image_folders import jpeg, write

from sam_repro.config.schema import AugmentConfig, BudgetConfig
from sam_repro.data import imagenet, load
from sam_repro.data.declared import DatasetConfig, Source
from sam_repro.data.evaluation_sets import ALEXNET_ERRORS, corruption_scores, evaluation_sets
from sam_repro.data.folder import LabelledFiles
from sam_repro.errors import UserError

WNIDS = imagenet.wnids()
R_CLASSES = [int(i) for i in imagenet._timm_list("imagenet_r_indices.txt")]


def config(root: Path, **fields: object) -> DatasetConfig:
    settings = {"classes": 1000, "image_size": 8, "stream": True, "workers": 0, "crop_share": 0.875, **fields}
    return DatasetConfig(Source.imagenet, str(root), **settings)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One image a class; validation image n is in class (7 n) mod 1000: official numbers are in no order."""
    root = tmp_path_factory.mktemp("imagenet")
    for number, wnid in enumerate(WNIDS):
        write(root / f"imagenet/train/{wnid}/{wnid}_{number}.JPEG")
        write(root / f"imagenetv2-matched-frequency-format-val/{number}/0a1b.jpeg", jpeg(number % 251))
    for n in range(1, 1001):
        write(root / f"imagenet/val/{WNIDS[7 * n % 1000]}/ILSVRC2012_val_{n:08d}.JPEG")
    for index in R_CLASSES:
        write(root / f"imagenet-r/{WNIDS[index]}/art_0.jpg")
    for wnid in WNIDS:
        write(root / f"imagenet-c/fog/3/{wnid}/ILSVRC2012_val_00000001.JPEG")
    return root


def folders_of(half: LabelledFiles) -> list[str]:
    return [half[0].path(i).parent.name for i in range(len(half[0]))]


def test_the_lists_of_timm() -> None:
    assert len(WNIDS) == 1000
    assert list(WNIDS) == sorted(WNIDS)
    assert (WNIDS[0], WNIDS[-1]) == ("n01440764", "n15075141")
    assert len(R_CLASSES) == 200
    assert list(imagenet._timm_list("imagenet_r_synsets.txt")) == [WNIDS[i] for i in R_CLASSES]


def test_training(whole: Path) -> None:
    augment = AugmentConfig(crop=0, flip=True, resized_crop=0.08)
    data = load(config(whole), augment, BudgetConfig(train_images=30, test_images=30), 0, "cpu")
    assert data.train.gather(torch.arange(4), 0).images.shape == (4, 3, 8, 8)
    assert data.facts["train_images"] == 30
    train, val = imagenet.find_imagenet(str(whole))
    assert train[1].tolist() == val[1].tolist() == list(range(1000))
    assert folders_of(train) == list(WNIDS)
    # The root may be the folder itself.
    assert len(imagenet.find_imagenet(str(whole / "imagenet"))[0][0]) == 1000


def test_v2_folders_are_numbers_not_strings(whole: Path) -> None:
    half = imagenet.find_v2(str(whole))
    assert half[1].tolist() == list(range(1000))
    assert folders_of(half) == [str(n) for n in range(1000)]
    (one,) = evaluation_sets("v2", config(whole, mean=[0.0] * 3, std=[1 / 255] * 3), "cpu")
    batch = next(iter(one.data.batches(64)))
    assert batch.targets[10] == 10
    torch.testing.assert_close(batch.images.mean((1, 2, 3))[10], torch.tensor(10.0), atol=2, rtol=0)


def test_r_restricts_the_outputs(whole: Path) -> None:
    (one,) = evaluation_sets("r", config(whole), "cpu")
    assert one.data.size == 200
    assert one.columns is not None
    outputs = torch.zeros(2, 1000)
    forbidden = next(i for i in range(1000) if i not in R_CLASSES)
    outputs[:, forbidden] = 9.0  # wins over all, but is no class of ImageNet-R
    outputs[0, R_CLASSES[5]], outputs[1, R_CLASSES[6]] = 1.0, 1.0
    assert one.correct(outputs, torch.tensor([5, 5])).tolist() == [True, False]
    labels = torch.cat([batch.targets for batch in one.data.batches(64)])
    assert labels.tolist() == list(range(200))


def test_real_has_several_right_labels(whole: Path) -> None:
    reassessed = [[7 * n % 1000] for n in range(1, 1001)]
    reassessed[0] = [7, 500]
    reassessed[1] = []
    half = imagenet.find_real(str(whole), reassessed)
    names = [half[0].path(i).name for i in range(len(half[0]))]
    assert len(names) == 999
    assert "ILSVRC2012_val_00000002.JPEG" not in names
    first = names.index("ILSVRC2012_val_00000001.JPEG")
    assert half[1][first].nonzero().flatten().tolist() == [7, 500]
    assert all(half[1][i][WNIDS.index(folder)] == 1 for i, folder in enumerate(folders_of(half)))
    (one,) = evaluation_sets("imagenet", config(whole), "cpu")
    outputs = torch.nn.functional.one_hot(torch.tensor([7, 500, 8]), 1000).float()
    assert one.correct(outputs, half[1][first].expand(3, -1)).tolist() == [True, True, False]


def test_real_labels_of_timm_cover_the_validation_set(whole: Path) -> None:
    # The published real.json begins [[], [970, 795], [230, 231], [809], ...
    half = imagenet.find_real(str(whole))
    right = {half[0].path(i).name: half[1][i].nonzero().flatten().tolist() for i in range(len(half[0]))}
    assert "ILSVRC2012_val_00000001.JPEG" not in right
    assert right["ILSVRC2012_val_00000002.JPEG"] == [795, 970]
    assert right["ILSVRC2012_val_00000003.JPEG"] == [230, 231]
    assert right["ILSVRC2012_val_00000004.JPEG"] == [809]


def test_c_is_read_set_by_set(whole: Path) -> None:
    assert folders_of(imagenet.find_c(str(whole), "fog", 3)) == list(WNIDS)
    assert len(imagenet.find_c(str(whole / "imagenet-c"), "fog", 3)[0]) == 1000  # the root may be its own folder
    with pytest.raises(UserError, match="imagenet-c/gaussian_noise/1 not found"):
        next(evaluation_sets("c", config(whole), "cpu"))


def test_c_has_75_sets_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imagenet, "wnids", lambda: ("n1", "n2"))  # 150,000 folders would be slow
    for corruption in imagenet.CORRUPTIONS:
        for severity in range(1, 6):
            for wnid in ("n1", "n2"):
                write(tmp_path / f"imagenet-c/{corruption}/{severity}/{wnid}/a.JPEG")
    sets = list(evaluation_sets("c", config(tmp_path), "cpu"))
    assert len(sets) == 75
    assert [s.name for s in sets[:6]] == [f"c/gaussian_noise/{i}" for i in range(1, 6)] + ["c/shot_noise/1"]
    assert all(s.data.size == 2 for s in sets)


def test_corruption_scores() -> None:
    as_alexnet = {f"c/{c}/{s}": 1 - ALEXNET_ERRORS[c] for c in imagenet.CORRUPTIONS for s in imagenet.SEVERITIES}
    scores = corruption_scores(as_alexnet)
    assert scores["mCE"] == pytest.approx(1.0)
    assert scores["mean_accuracy"] == pytest.approx(1 - sum(ALEXNET_ERRORS.values()) / 15)
    as_alexnet["c/fog/1"] += 0.5
    better = corruption_scores(as_alexnet)
    assert better["mCE"] == pytest.approx(1 - 0.1 / ALEXNET_ERRORS["fog"] / 15)
    assert better["mean_accuracy"] == pytest.approx(scores["mean_accuracy"] + 0.5 / 75)


@pytest.mark.parametrize(
    ("folder", "find"),
    [
        ("imagenet/val", imagenet.find_validation),
        ("imagenetv2-matched-frequency-format-val", imagenet.find_v2),
        ("imagenet-r", imagenet.find_r),
        ("imagenet-c/fog/3", lambda root: imagenet.find_c(root, "fog", 3)),
    ],
)
def test_a_lacking_or_strange_class_is_named(
    whole: Path, tmp_path: Path, folder: str, find: Callable[[str], object]
) -> None:
    copy = tmp_path / folder
    for name in os.listdir(whole / folder):
        (copy / name).mkdir(parents=True)
    lacking = sorted(copy.iterdir())[17].name
    shutil.rmtree(copy / lacking)
    with pytest.raises(UserError, match=rf"1 lack \({lacking}, ...\)"):
        find(str(tmp_path))
    (copy / "n99999999").mkdir()
    with pytest.raises(UserError, match="1 are unknown"):
        find(str(tmp_path))
    shutil.rmtree(copy)
    with pytest.raises(UserError, match="not found; looked in"):
        find(str(tmp_path))


def test_an_empty_class_and_a_foreign_name_are_refused(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "imagenet/val", tmp_path / "val")
    image = next((tmp_path / "val" / WNIDS[3]).iterdir())
    image.rename(image.with_name("picture.JPEG"))
    with pytest.raises(UserError, match=r"picture\.JPEG is no validation image"):
        imagenet.find_real(str(tmp_path))
    (tmp_path / "val" / WNIDS[3] / "picture.JPEG").unlink()
    with pytest.raises(UserError, match=f"{WNIDS[3]} has no images"):
        imagenet.find_validation(str(tmp_path))


def test_a_broken_test_image_is_named_and_left_out(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "imagenet-r", tmp_path / "imagenet-r")
    broken = next((tmp_path / "imagenet-r" / WNIDS[R_CLASSES[0]]).iterdir())
    broken.write_bytes(jpeg()[:100])
    (one,) = evaluation_sets("r", config(tmp_path), "cpu")
    with pytest.raises(UserError, match=str(broken)):
        list(one.data.batches(50))
    (one,) = evaluation_sets("r", config(tmp_path, skip_unreadable=1), "cpu")
    assert sum(len(batch.ids) for batch in one.data.batches(50)) == 199


def test_unknown_set(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="imagenet, real, v2, r, c"):
        next(evaluation_sets("a", config(tmp_path), "cpu"))
