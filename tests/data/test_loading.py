"""From files in the official layouts to a `Data`, and what the user is told when a file is missing or wrong."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from data_stand_ins import StandIns
from PIL import Image

from sam_repro.config.schema import AugmentConfig, BudgetConfig
from sam_repro.data import Data, load
from sam_repro.data.declared import DatasetConfig, LabelNoise, Source, Split
from sam_repro.data.layouts import EMBEDDED, EMBEDDED_SET, LAYOUTS, Layout
from sam_repro.errors import UserError

PLAIN = AugmentConfig(crop=0, flip=False)
UNIT = {"mean": [0.0] * 3, "std": [1 / 255] * 3}  # the normalised value is the byte


def run(config: DatasetConfig, layout: Layout | None = None, budget: BudgetConfig | None = None) -> Data:
    return load(config, PLAIN, budget or BudgetConfig(), 0, "cpu", layout)


def everything(data: Data) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    train = data.train.gather(torch.arange(data.train.size), 0)
    (test,) = data.test.batches(100_000)
    return train.images.round().byte(), train.targets, test.images.round().byte(), test.targets


def test_cifar10(stand_ins: StandIns) -> None:
    layout, rows = stand_ins.cifar10()
    data = run(DatasetConfig(Source.cifar10, str(stand_ins.root), **UNIT), layout)
    train, targets, test, test_targets = everything(data)
    expected = np.concatenate([rows[f"data_batch_{i}.bin"] for i in range(1, 6)])
    assert np.array_equal(train.numpy(), expected[:, 1:].reshape(-1, 3, 32, 32))
    assert np.array_equal(targets.numpy(), expected[:, 0])
    assert np.array_equal(test.numpy(), rows["test_batch.bin"][:, 1:].reshape(-1, 3, 32, 32))
    assert np.array_equal(test_targets.numpy(), rows["test_batch.bin"][:, 0])
    assert data.facts == {
        "source": "cifar10",
        "evaluated_on": "test",
        "train_images": 100,
        "test_images": 20,
        "classes": 10,
    }


def test_cifar100_uses_the_fine_label(stand_ins: StandIns) -> None:
    layout, rows = stand_ins.cifar100()
    data = run(DatasetConfig(Source.cifar100, str(stand_ins.root), classes=100, **UNIT), layout)
    train, targets, _, _ = everything(data)
    assert np.array_equal(targets.numpy(), rows["train.bin"][:, 1])
    assert np.array_equal(train.numpy(), rows["train.bin"][:, 2:].reshape(-1, 3, 32, 32))


def test_fashion_mnist_is_padded_and_grey(stand_ins: StandIns) -> None:
    layout, arrays = stand_ins.fashion()
    data = run(DatasetConfig(Source.fashion_mnist, str(stand_ins.root), **UNIT), layout)
    train, targets, _, test_targets = everything(data)
    assert train.shape == (60, 3, 32, 32)
    for channel in range(3):
        assert np.array_equal(train[:, channel, 2:30, 2:30].numpy(), arrays["train-images-idx3-ubyte.gz"])
    assert int(train[:, :, :2].max()) == int(train[..., 30:].max()) == 0
    assert np.array_equal(targets.numpy(), arrays["train-labels-idx1-ubyte.gz"])
    assert np.array_equal(test_targets.numpy(), arrays["t10k-labels-idx1-ubyte.gz"])


def test_the_embedded_set() -> None:
    data = run(DatasetConfig())
    _, targets, _, test_targets = everything(data)
    assert targets.bincount().tolist() == [1000] * 10
    assert test_targets.bincount().tolist() == [200] * 10
    assert sum(path.stat().st_size for path in EMBEDDED.iterdir()) < 6_000_000
    assert "MIT" in (EMBEDDED / "NOTICE").read_text()
    assert LAYOUTS[Source.embedded] is EMBEDDED_SET


def test_files_may_be_in_the_root_itself_or_under_the_variable(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, _ = stand_ins.cifar10()
    own_folder = str(stand_ins.root / layout.folder)
    assert run(DatasetConfig(Source.cifar10, own_folder), layout).train.size == 100
    monkeypatch.setenv("SAM_REPRO_DATA", str(stand_ins.root))
    assert run(DatasetConfig(Source.cifar10, "nowhere"), layout).train.size == 100


def refusal(config: DatasetConfig, layout: Layout | None = None) -> str:
    with pytest.raises(UserError) as caught:
        run(config, layout)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "fashion_mnist"])
def test_missing_data_says_what_where_and_how(name: str, tmp_path: Path) -> None:
    message = refusal(DatasetConfig(Source(name), str(tmp_path)))
    folder = LAYOUTS[Source(name)].folder
    assert str(tmp_path / folder) in message
    assert f"sam-repro fetch {name}" in message
    assert "dataset.root=" in message


def test_a_lacking_file_is_named(stand_ins: StandIns) -> None:
    layout, _ = stand_ins.cifar10()
    (stand_ins.root / layout.folder / "data_batch_3.bin").unlink()
    message = refusal(DatasetConfig(Source.cifar10, str(stand_ins.root)), layout)
    assert message.startswith("data_batch_3.bin of cifar10 not found")


def test_a_truncated_file_is_named_and_refused(stand_ins: StandIns) -> None:
    layout, _ = stand_ins.cifar10()
    path = stand_ins.root / layout.folder / "data_batch_2.bin"
    path.write_bytes(path.read_bytes()[:-1])
    message = refusal(DatasetConfig(Source.cifar10, str(stand_ins.root)), layout)
    assert str(path) in message
    assert f"{20 * 3073 - 1} bytes instead of {20 * 3073}" in message


@pytest.mark.parametrize("name", ["train.bin", "test.bin"])
def test_an_altered_file_is_named_and_refused(stand_ins: StandIns, name: str) -> None:
    layout, _ = stand_ins.cifar100()
    path = stand_ins.root / layout.folder / name
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)
    message = refusal(DatasetConfig(Source.cifar100, str(stand_ins.root), classes=100), layout)
    expected = next(file.md5 for file in layout.files if file.name == name)
    assert str(path) in message
    assert expected in message


@pytest.mark.parametrize("damage", ["truncated", "garbage", "trailing"])
def test_a_damaged_gz_is_named_and_refused(stand_ins: StandIns, damage: str) -> None:
    layout, _ = stand_ins.fashion()
    path = stand_ins.root / layout.folder / "train-images-idx3-ubyte.gz"
    content = path.read_bytes()
    path.write_bytes({"truncated": content[:-20], "garbage": b"no gzip", "trailing": content + b"x" * 9}[damage])
    assert str(path) in refusal(DatasetConfig(Source.fashion_mnist, str(stand_ins.root)), layout)


def test_another_compression_of_the_same_content_is_accepted(stand_ins: StandIns) -> None:
    layout, _ = stand_ins.fashion()
    path = stand_ins.root / layout.folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), 1))
    assert run(DatasetConfig(Source.fashion_mnist, str(stand_ins.root)), layout).train.size == 60


def test_wrong_number_of_classes_and_size(stand_ins: StandIns) -> None:
    layout, _ = stand_ins.cifar100()
    assert "dataset.classes=10" in refusal(DatasetConfig(Source.cifar100, str(stand_ins.root)), layout)
    for size in (28, 33):
        config = DatasetConfig(Source.cifar100, str(stand_ins.root), classes=100, image_size=size)
        assert f"dataset.image_size={size}" in refusal(config, layout)


def test_caps_take_the_smallest(stand_ins: StandIns) -> None:
    layout, _ = stand_ins.cifar10()
    config = DatasetConfig(Source.cifar10, str(stand_ins.root), train_images=50)
    data = run(config, layout, BudgetConfig(train_images=30, test_images=10))
    assert (data.train.size, data.test.size) == (30, 10)
    _, targets, _, test_targets = everything(data)
    assert targets.bincount().tolist() == [3] * 10
    assert test_targets.bincount().tolist() == [1] * 10
    assert run(config, layout, BudgetConfig(train_images=9999)).train.size == 50


def test_both_judges_on_the_test_set_and_on_the_held_out_part(stand_ins: StandIns) -> None:
    layout, _ = stand_ins.cifar10()
    found = {}
    for split in Split:
        config = DatasetConfig(Source.cifar10, str(stand_ins.root), evaluate_on=split, validation=0.2, **UNIT)
        found[split] = run(config, layout)
    test, held, both = (everything(found[split]) for split in (Split.test, Split.validation, Split.both))
    assert all(torch.equal(mine, its) for mine, its in zip(both[:2], held[:2], strict=True))
    assert all(torch.equal(mine, its) for mine, its in zip(both[2:], test[2:], strict=True))
    assert found[Split.both].validation is not None
    (picked,) = found[Split.both].validation.batches(100_000)
    assert torch.equal(picked.images.round().byte(), held[2])
    assert torch.equal(picked.targets, held[3])
    assert found[Split.test].validation is found[Split.validation].validation is None
    facts = found[Split.both].facts
    assert (facts["evaluated_on"], facts["test_images"], facts["validation_images"]) == ("both", 20, 20)


def test_an_empty_held_out_part_is_told_before_the_training() -> None:
    config = DatasetConfig(Source.synthetic, evaluate_on=Split.validation, validation=0.00001)
    with pytest.raises(UserError, match=r"evaluate_on=validation with dataset\.validation=1e-05 holds out none of the"):
        run(config)


def test_a_test_part_without_a_readable_image_is_told_before_the_training(tmp_path: Path) -> None:
    for part, name in (("train", "a"), ("train", "b"), ("test", "a"), ("test", "b")):
        (tmp_path / part / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / part / name / "0.png")
        if part == "test":
            (tmp_path / part / name / "0.png").write_bytes(b"no image")
    config = DatasetConfig(Source.folder, str(tmp_path), classes=2, image_size=8, skip_unreadable=2, **UNIT)
    with pytest.raises(UserError, match=r"no image to evaluate on: dataset\.skip_unreadable"):
        run(config)


def test_validation_is_held_out_and_clean(stand_ins: StandIns) -> None:
    layout, rows = stand_ins.cifar10()
    config = DatasetConfig(Source.cifar10, str(stand_ins.root), evaluate_on=Split.validation, validation=0.2, **UNIT)
    config.label_noise = LabelNoise(rate=0.5)
    data = run(config, layout)
    train, targets, held, held_targets = everything(data)
    assert (len(train), len(held)) == (80, 20)
    assert held_targets.bincount().tolist() == [2] * 10
    true = {row[1:].tobytes(): row[0] for i in range(1, 6) for row in rows[f"data_batch_{i}.bin"]}
    assert all(true[image.numpy().tobytes()] == label for image, label in zip(held, held_targets, strict=True))
    wrong = sum(true[image.numpy().tobytes()] != label for image, label in zip(train, targets, strict=True))
    assert wrong == 40
    assert data.facts["label_noise"] == {"requested": 0.5, "redrawn": 40, "realised": 0.5}
    seen = {image.numpy().tobytes() for image in train}
    assert not any(image.numpy().tobytes() in seen for image in held)
    # A smaller training part leaves the held-out part as it is.
    _, _, same, _ = everything(run(config, layout, BudgetConfig(train_images=10)))
    assert torch.equal(same, held)
