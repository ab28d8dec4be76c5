"""Streaming through worker processes: the same images as without them, broken files, and a quiet global generator."""

from pathlib import Path

import psutil
import pytest
import torch
from image_folders import photograph
from torchvision.transforms import v2

from sam_repro.config.schema import AugmentConfig, BudgetConfig, Policy
from sam_repro.data import Data, load, workers
from sam_repro.data.counter import Draw, hashes, key
from sam_repro.data.declared import DatasetConfig, Fit, Source
from sam_repro.data.pictures import FilePictures
from sam_repro.data.stream import StreamTrain, neighbours
from sam_repro.data.workers import worker_count
from sam_repro.errors import UserError

UNIT = {"mean": [0.0] * 3, "std": [1 / 255] * 3}
STRONG = AugmentConfig(crop=0, flip=True, resized_crop=0.1, policy=Policy.randaugment)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for half, n in (("train", 12), ("test", 5)):
        for label, name in enumerate(("ape", "bird")):
            for i in range(n):
                photograph(tmp_path / half / name / f"{i:02}.png", seed=label * 100 + i + (50 if half == "test" else 0))
    return tmp_path


def streaming(root: Path, augment: AugmentConfig = STRONG, workers: int = 2, seed: int = 0, **fields: object) -> Data:
    settings = {"classes": 2, "image_size": 16, "stream": True, "workers": workers, **UNIT, **fields}
    return load(DatasetConfig(Source.folder, str(root), **settings), augment, BudgetConfig(), seed, "cpu")


def epoch_of(data: Data, epoch: int, size: int = 5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    batches = list(data.train.gather_each(data.train.order(epoch).split(size), epoch))
    return tuple(torch.cat([getattr(b, f) for b in batches]) for f in ("images", "targets", "ids"))  # type: ignore[return-value]


def test_workers_and_batches_change_nothing(root: Path) -> None:
    data = streaming(root)
    images, targets, ids = epoch_of(data, 3)
    assert torch.equal(ids, data.train.order(3))
    assert torch.equal(targets, ids // 12)
    for helpers, size in ((0, 5), (1, 24), (2, 7)):
        again, _, _ = epoch_of(streaming(root, workers=helpers), 3, size)
        assert torch.equal(again, images)
    # Sharded over two ranks, resumed in the middle, or one by one.
    batch = data.train.gather(ids[1::2], 3)
    assert torch.equal(batch.images, images[1::2])
    rest = list(data.train.gather_each(ids.split(5)[3:], 3))
    assert torch.equal(torch.cat([b.images for b in rest]), images[15:])
    assert not torch.equal(epoch_of(data, 4)[0], images)
    assert not torch.equal(epoch_of(streaming(root, seed=1), 3)[0], images)


def pids() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


def test_workers_are_started_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = pids()
    data, alone = streaming(root), streaming(root, workers=0)
    epoch_of(data, 0)
    started = pids() - others
    assert len(started) == 2
    list(data.test.batches(4))
    next(data.train.gather_each(data.train.order(1).split(5), 1))  # left in the middle
    assert torch.equal(epoch_of(data, 2)[0], epoch_of(alone, 2)[0])
    assert pids() - others == started

    def within_an_epoch(epoch: int) -> None:
        """Other samples while an epoch's batches run ahead, as methods that pass over them want."""
        assert not list(data.train.gather_each([], epoch))
        batches = data.train.gather_each(data.train.order(epoch).split(8), epoch)
        next(batches)
        other = torch.tensor([3, 20, 7])
        assert torch.equal(data.train.gather(other, epoch).images, alone.train.gather(other, epoch).images)
        assert sum(len(batch.ids) for batch in data.train.gather_each(data.train.order(epoch).split(6), epoch)) == 24
        assert torch.equal(next(batches).ids, data.train.order(epoch)[8:16])

    within_an_epoch(3)
    both = pids() - others
    assert started < both
    assert len(both) == 4

    def no(*_: object) -> None:
        raise AssertionError("decoded in the main process")

    monkeypatch.setattr(FilePictures, "read", no)
    monkeypatch.setattr(alone.train, "gather", data.train.gather)
    within_an_epoch(4)
    assert pids() - others == both


def test_workers_end_with_the_data(root: Path) -> None:
    others, data = pids(), streaming(root)
    epoch_of(data, 0)
    assert pids() - others
    del data
    assert not pids() - others


def test_the_transform_is_torchvisions(root: Path) -> None:
    augment = AugmentConfig(crop=0, flip=True, resized_crop=0.08)
    data = streaming(root, augment, workers=0)
    batch = data.train.gather(torch.arange(4), 2)
    train = data.train
    assert isinstance(train, StreamTrain)
    theirs = v2.Compose([v2.RandomResizedCrop(16, scale=(0.08, 1.0), antialias=True), v2.RandomHorizontalFlip()])
    for index in range(4):
        torch.manual_seed(int(hashes(torch.tensor([index]), key(0, 2, Draw.transform))))
        assert torch.equal(batch.images[index].round().byte(), theirs(train.pictures.read(index)))


@pytest.mark.parametrize("workers", [0, 2])
def test_the_global_generator_is_left_alone(root: Path, workers: int) -> None:
    data = streaming(root, workers=workers)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    epoch_of(data, 0)
    list(data.test.batches(4))
    data.train.gather(torch.arange(3), 0)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("fit", Fit)
def test_evaluation_preprocessing(root: Path, fit: Fit) -> None:
    data = streaming(root, fit=fit, crop_share=0.8)
    batches = list(data.test.batches(3))
    assert torch.cat([b.ids for b in batches]).tolist() == list(range(10))
    assert torch.cat([b.targets for b in batches]).tolist() == [0] * 5 + [1] * 5
    picture = data.test.pictures.read(9)  # type: ignore[attr-defined]
    theirs = v2.Resize((16, 16)) if fit is Fit.squash else v2.Compose([v2.Resize(20), v2.CenterCrop(16)])
    assert torch.equal(batches[-1].images[-1].round().byte(), theirs(picture))


def test_evaluation_ranks_share_the_work(root: Path) -> None:
    data = streaming(root)
    ids = [b.ids for rank in range(3) for b in data.test.batches(2, rank, 3)]
    assert sorted(torch.cat(ids).tolist()) == list(range(10))


def break_two(root: Path) -> list[Path]:
    broken = [root / "train/ape/03.png", root / "test/bird/04.png"]
    broken[0].write_bytes(broken[0].read_bytes()[:200])
    broken[1].write_bytes(b"")
    return broken


@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_image_ends_the_run_by_name(root: Path, workers: int) -> None:
    train, test = break_two(root)
    data = streaming(root, workers=workers)
    with pytest.raises(UserError, match=str(train)):
        epoch_of(data, 0)
    with pytest.raises(UserError, match=str(test)):
        list(data.test.batches(4))


def test_broken_images_are_named_and_left_out_up_to_a_number(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, test = break_two(root)
    data = streaming(root, skip_unreadable=2)
    images, targets, ids = epoch_of(data, 0)
    # In training the next readable image takes its place, with its own label and augmentation.
    asked = data.train.order(0)
    assert torch.equal(ids, torch.where(asked == 3, 4, asked))
    assert torch.equal(targets, ids // 12)
    assert torch.equal(images[asked == 3], images[asked == 4])
    assert torch.cat([b.ids for b in data.test.batches(4)]).tolist() == list(range(9))
    epoch_of(data, 1)
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == 2  # each once, whatever the number of epochs
    assert str(train) in warnings[0]
    assert str(test) in warnings[1]
    assert [complaint.split()[0] for complaint in data.facts["unreadable"]] == [str(train), str(test)]
    (root / "train/bird/00.png").write_bytes(b"no image")
    with pytest.raises(UserError, match="skip_unreadable"):
        epoch_of(data, 2)


def test_a_batch_of_broken_test_images_is_left_out(root: Path) -> None:
    for path in (root / "test/ape").iterdir():
        path.write_bytes(b"")
    data = streaming(root, skip_unreadable=5)
    assert [b.ids.tolist() for b in data.test.batches(5)] == [[5, 6, 7, 8, 9]]


def test_in_memory_folders_leave_them_out_too(root: Path) -> None:
    break_two(root)
    data = streaming(root, AugmentConfig(crop=0, flip=False), stream=False, skip_unreadable=2)
    assert (data.train.size, data.test.size) == (23, 9)
    assert data.train.gather(torch.arange(23), 0).targets.bincount().tolist() == [11, 12]


def test_memory_images_with_a_policy_are_streamed() -> None:
    augment = AugmentConfig(crop=4, flip=True, policy=Policy.autoaugment_cifar, cutmix=1.0, mix_probability=0.5)
    budget = BudgetConfig(train_images=40, test_images=20)
    data = load(DatasetConfig(workers=2), augment, budget, 0, "cpu")
    assert isinstance(data.train, StreamTrain)
    images, targets, _ = epoch_of(data, 0, size=20)
    assert images.shape == (40, 3, 32, 32)
    assert targets.shape == (40, 10)
    assert torch.equal(epoch_of(data, 0, size=20)[0], images)
    plain = load(DatasetConfig(workers=0), AugmentConfig(crop=0, flip=False), budget, 0, "cpu")
    (one,), (two,) = data.test.batches(20), plain.test.batches(20)
    assert torch.equal(one.images, two.images)


def test_workers_that_are_not_forked_decode_the_same(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a platform's Python may start them."""
    alone = epoch_of(streaming(root, workers=0), 1)
    monkeypatch.setattr(workers, "START", "spawn")
    assert torch.equal(epoch_of(streaming(root, workers=1), 1)[0], alone[0])


def test_mixed_samples_are_the_same_however_a_batch_is_split() -> None:
    data = load(
        DatasetConfig(stream=True, workers=0), AugmentConfig(mixup=0.5), BudgetConfig(train_images=40), 0, "cpu"
    )
    ids = data.train.order(0)[:16]
    whole, parts = data.train.gather(ids, 0), [data.train.gather(part, 0) for part in ids.split(4)]
    assert torch.equal(whole.images, torch.cat([part.images for part in parts]))
    assert torch.equal(whole.targets, torch.cat([part.targets for part in parts]))
    assert (whole.targets.max(dim=1).values < 1).any()


def test_everybody_has_a_partner() -> None:
    assert neighbours(6).tolist() == [1, 0, 3, 2, 5, 4]
    assert neighbours(5).tolist() == [1, 0, 3, 2, 3]
    assert neighbours(1).tolist() == [0]


def test_resized_crop_needs_a_stream() -> None:
    with pytest.raises(UserError, match=r"dataset\.stream=true"):
        load(DatasetConfig(), AugmentConfig(resized_crop=0.1), BudgetConfig(), 0, "cpu")


def test_small_images_are_enlarged_by_a_stream() -> None:
    data = load(DatasetConfig(stream=True, image_size=48, workers=0), AugmentConfig(crop=0), BudgetConfig(), 0, "cpu")
    assert data.train.gather(torch.arange(2), 0).images.shape == (2, 3, 48, 48)


def test_worker_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert worker_count(0) == 0
    assert worker_count(7) == 7
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
    assert worker_count(None) == 1


def test_synthetic_data_keeps_the_recipes_shape() -> None:
    config = DatasetConfig(Source.synthetic, classes=1000, image_size=24)
    data = load(config, AugmentConfig(), BudgetConfig(train_images=1500, test_images=100), 0, "cpu")
    assert (data.train.size, data.test.size, data.classes) == (1500, 100, 1000)
    batch = data.train.gather(torch.arange(1500), 0)
    assert batch.images.shape == (1500, 3, 24, 24)
    assert int(batch.targets.max()) == 999
