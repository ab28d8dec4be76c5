"""The in-memory input against a slow reference that treats one image at a time, and the purity of its randomness."""

import pytest
import torch
from scipy import stats
from torch import Tensor

from sam_repro.config.schema import AugmentConfig
from sam_repro.data.counter import Draw, integers, key
from sam_repro.data.memory import MemoryEval, MemoryTrain
from sam_repro.data.on_device import Normalise, OnDevice

CPU = torch.device("cpu")
MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]
CUTOUT = AugmentConfig(crop=4, flip=True, cutout=7, cutout_probability=0.6)


def images(n: int, size: int = 12) -> Tensor:
    return torch.randint(0, 256, (n, 3, size, size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def train(pixels: Tensor, augment: AugmentConfig, seed: int = 3) -> MemoryTrain:
    return MemoryTrain(
        pixels, torch.arange(len(pixels)) % 10, OnDevice(augment, Normalise(MEAN, STD, CPU), seed, 10), CPU
    )


def one_number(seed: int, epoch: int, draw: Draw, sample: int, bound: int) -> int:
    return int(integers(torch.tensor([sample]), [key(seed, epoch, draw)], [bound])[0, 0])


def slowly(picture: Tensor, augment: AugmentConfig, seed: int, epoch: int, sample: int) -> Tensor:
    """Pixel by pixel: pad, crop, mirror, normalise, blank."""
    _, height, width = picture.shape
    pad = augment.crop
    top = one_number(seed, epoch, Draw.crop_y, sample, 2 * pad + 1) - pad
    left = one_number(seed, epoch, Draw.crop_x, sample, 2 * pad + 1) - pad
    mirrored = augment.flip and one_number(seed, epoch, Draw.flip, sample, 2) == 1
    cut = augment.cutout > 0 and one_number(seed, epoch, Draw.cutout_apply, sample, 1 << 24) < round(
        augment.cutout_probability * (1 << 24)
    )
    cut_y = one_number(seed, epoch, Draw.cutout_y, sample, height)
    cut_x = one_number(seed, epoch, Draw.cutout_x, sample, width)
    half = augment.cutout // 2
    result = torch.empty(3, height, width)
    for channel in range(3):
        shift = torch.tensor(255.0 * MEAN[channel])
        scale = torch.tensor(1.0 / (255.0 * STD[channel]))
        for y in range(height):
            for x in range(width):
                from_y, from_x = y + top, (width - 1 - x if mirrored else x) + left
                inside = 0 <= from_y < height and 0 <= from_x < width
                value = float(picture[channel, from_y, from_x]) if inside else 0.0
                blank = cut and cut_y - half <= y < cut_y + half and cut_x - half <= x < cut_x + half
                result[channel, y, x] = 0.0 if blank else (torch.tensor(value) - shift) * scale
    return result


@pytest.mark.parametrize(
    "augment",
    [
        AugmentConfig(crop=0, flip=False),
        AugmentConfig(crop=2, flip=False),
        AugmentConfig(crop=0, flip=True),
        CUTOUT,
        AugmentConfig(crop=0, flip=False, cutout=20),  # larger than the image
    ],
)
def test_equals_the_slow_reference_exactly(augment: AugmentConfig) -> None:
    pixels = images(12)
    batch = train(pixels, augment).gather(torch.arange(12), epoch=5)
    for sample in range(12):
        assert torch.equal(batch.images[sample], slowly(pixels[sample], augment, 3, 5, sample)), sample


def test_normalisation_is_the_usual_one() -> None:
    pixels = images(4)
    batch = train(pixels, AugmentConfig(crop=0, flip=False)).gather(torch.arange(4), 0)
    usual = (pixels.float() / 255 - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
    torch.testing.assert_close(batch.images, usual)
    assert batch.images.dtype == torch.float32
    assert batch.targets.tolist() == [0, 1, 2, 3]


def test_a_sample_is_the_same_in_any_company_and_on_any_rank() -> None:
    data = train(images(100), CUTOUT)
    order = data.order(2)
    whole = data.gather(order, 2)
    for ranks in (2, 3):
        for rank in range(ranks):
            part = data.gather(order[rank::ranks], 2)
            assert torch.equal(part.images, whole.images[rank::ranks])
            assert torch.equal(part.targets, whole.targets[rank::ranks])
            assert torch.equal(part.ids, order[rank::ranks])
    singles = [data.gather(order[i : i + 1], 2).images for i in range(100)]
    assert torch.equal(torch.cat(singles), whole.images)
    streamed = [batch.images for batch in data.gather_each(order.split(32), 2)]
    assert torch.equal(torch.cat(streamed), whole.images)


def test_pure_function_of_seed_and_epoch() -> None:
    pixels, ids = images(64), torch.arange(64)
    data = train(pixels, CUTOUT, seed=1)
    first = data.gather(ids, 0).images
    data.order(7), data.other(7, 3, 10), data.gather(ids.flip(0), 9)  # whatever was asked in between
    assert torch.equal(data.gather(ids, 0).images, first)
    assert torch.equal(train(pixels, CUTOUT, seed=1).gather(ids, 0).images, first)
    assert not torch.equal(data.gather(ids, 1).images, first)
    assert not torch.equal(train(pixels, CUTOUT, seed=2).gather(ids, 0).images, first)
    assert torch.equal(data.order(0), train(pixels, CUTOUT, seed=1).order(0))
    assert not torch.equal(data.order(0), data.order(1))


def test_other_batches() -> None:
    data = train(images(50), CUTOUT)
    first = [data.other(0, step, 20) for step in range(5)]
    assert all(len(set(ids.tolist())) == 20 for ids in first)
    assert torch.equal(torch.cat(first[:2])[:40].unique(), torch.cat(first[:2]).sort().values)  # no repeats before 50
    fresh = train(images(50), CUTOUT)
    assert torch.equal(fresh.other(0, 3, 20), first[3])  # as after a resume
    assert not torch.equal(data.other(1, 0, 20), first[0])
    assert not torch.equal(first[0], data.order(0)[:20])


def test_every_crop_and_flip_is_equally_likely() -> None:
    # A picture whose pixels tell their own place: the first two pixels of the result give crop and flip away.
    n, pad, size = 40_000, 1, 4
    place = (torch.arange(size * size, dtype=torch.uint8) + 1).reshape(1, 1, size, size).expand(n, 3, size, size)
    on_device = OnDevice(AugmentConfig(crop=pad), Normalise([0.0] * 3, [1 / 255] * 3, CPU), 0, 10)
    data = MemoryTrain(place, torch.zeros(n, dtype=torch.int64), on_device, CPU)
    seen = data.gather(torch.arange(n), 0).images[:, 0].reshape(n, -1)
    kinds, counts = seen.unique(dim=0, return_counts=True)
    assert len(kinds) == 3 * 3 * 2
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_cutout_crosses_the_border_and_obeys_its_probability() -> None:
    n, side, size = 20_000, 8, 16
    augment = AugmentConfig(crop=0, flip=False, cutout=side, cutout_probability=0.5)
    grey = torch.full((n, 3, size, size), 255, dtype=torch.uint8)
    on_device = OnDevice(augment, Normalise([0.0] * 3, [1.0] * 3, CPU), 0, 10)
    data = MemoryTrain(grey, torch.zeros(n, dtype=torch.int64), on_device, CPU)
    blank = data.gather(torch.arange(n), 0).images[:, 0] == 0
    area = blank.sum((1, 2))
    assert stats.binomtest(int((area > 0).sum()), n, 0.5).pvalue > 1e-3
    assert int(area.max()) == side * side
    assert int(area[area > 0].min()) == (side // 2) ** 2  # a quarter is left where the centre is in a corner
    # Centres 0 .. side/2 of each axis blank the first corner, centres size - side/2 + 1 .. size - 1 the last one.
    for corner, centres in ((0, side // 2 + 1), (-1, side // 2)):
        chance = 0.5 * centres**2 / size**2
        assert stats.binomtest(int(blank[:, corner, corner].sum()), n, chance).pvalue > 1e-3
    # A blanked square is blank in all channels.
    assert torch.equal(data.gather(torch.arange(n), 0).images[:, 2] == 0, blank)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_evaluation_sees_every_sample_once(ranks: int) -> None:
    pixels = images(25)
    data = MemoryEval(pixels, torch.arange(25), Normalise(MEAN, STD, CPU), CPU)
    batches = [batch for rank in range(ranks) for batch in data.batches(4, rank, ranks)]
    ids = torch.cat([batch.ids for batch in batches])
    assert sorted(ids.tolist()) == list(range(25))
    assert torch.equal(torch.cat([batch.targets for batch in batches]), ids)
    expected = Normalise(MEAN, STD, CPU)(pixels)
    assert torch.equal(torch.cat([batch.images for batch in batches]), expected[ids])


def test_a_rank_without_samples_has_no_batches() -> None:
    data = MemoryEval(images(2), torch.arange(2), Normalise(MEAN, STD, CPU), CPU)
    assert list(data.batches(8, rank=3, ranks=4)) == []
