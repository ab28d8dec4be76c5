"""Mixup and CutMix: against timm's formulas, their distributions, and their purity."""

import numpy as np
import pytest
import torch
from scipy import stats
from timm.data.mixup import mixup_target

from sam_repro.config.schema import AugmentConfig
from sam_repro.data.memory import MemoryTrain
from sam_repro.data.mixing import Recipe, blend, draw, soften
from sam_repro.data.on_device import Normalise, OnDevice

CPU = torch.device("cpu")
MIXUP = AugmentConfig(crop=0, flip=False, mixup=0.8)
CUTMIX = AugmentConfig(crop=0, flip=False, cutmix=1.0)


def recipe(augment: AugmentConfig, n: int = 20_000) -> Recipe:
    return draw(torch.arange(n), augment, seed=0, epoch=0, height=32, width=32)


def area(r: Recipe) -> torch.Tensor:
    return (r.box[:, 1] - r.box[:, 0]) * (r.box[:, 3] - r.box[:, 2])


def test_mixup_share_is_beta_distributed() -> None:
    r = recipe(MIXUP)
    assert stats.kstest(r.share.numpy(), stats.beta(0.8, 0.8).cdf).pvalue > 1e-3
    assert int(area(r).max()) == 0
    assert torch.equal(r.share, r.blend)


def test_cutmix_box_is_the_authors() -> None:
    r = recipe(CUTMIX)
    # The formula of their `rand_bbox`, from the same centre: the box is clipped, and lam follows the clipped area.
    assert torch.equal(r.share, (1 - area(r) / 1024).float())
    assert bool((r.blend == 1).all())
    assert int(r.box.min()) == 0
    assert int(r.box.max()) == 32
    # Boxes that touch no border were not clipped: their side is even and at most 32 * sqrt(1 - lam).
    inner = r.box[(r.box[:, 0] > 0) & (r.box[:, 1] < 32)]
    assert bool(((inner[:, 1] - inner[:, 0]) % 2 == 0).all())
    # The centre is uniform and lam was Beta(1, 1): the mean share of area that is cut, by simulation of their code.
    random = np.random.default_rng(0)
    side = (32 * np.sqrt(1 - random.beta(1, 1, 100_000))).astype(int)
    centres = random.integers(0, 32, (2, 100_000))
    low, high = np.clip(centres - side // 2, 0, 32), np.clip(centres + side // 2, 0, 32)
    theirs = np.prod(high - low, axis=0)
    assert stats.ks_2samp(area(r).numpy(), theirs).pvalue > 1e-3


@pytest.mark.parametrize("probability", [0.3, 1.0])
def test_probability_and_choice_between_both(probability: float) -> None:
    r = recipe(AugmentConfig(mixup=1.0, cutmix=1.0, mix_probability=probability))
    blended = (r.blend < 1).sum()
    cut = (area(r) > 0).sum()
    assert stats.binomtest(int(blended), 20_000, probability / 2).pvalue > 1e-3
    # A few boxes are empty: both sides below two pixels, which is 1 - lam < (2 / 32)^2.
    assert stats.binomtest(int(cut), 20_000, probability / 2 * (1 - (2 / 32) ** 2)).pvalue > 1e-3


def test_targets_are_timms() -> None:
    targets, lam = torch.tensor([3, 1, 2, 0]), 0.7
    same = Recipe(torch.full((4,), lam), torch.full((4,), lam), torch.zeros(4, 4, dtype=torch.int64))
    ours = soften(targets, targets.flip(0), same, classes=5)
    torch.testing.assert_close(ours, mixup_target(targets, 5, lam=lam))


def test_blend_takes_the_partner_inside_of_the_box() -> None:
    own, other = torch.zeros(2, 3, 6, 6), torch.ones(2, 3, 6, 6)
    r = Recipe(torch.tensor([0.8, 0.25]), torch.tensor([1.0, 0.25]), torch.tensor([[1, 3, 2, 6], [0, 0, 0, 0]]))
    mixed = blend(own, other, r)
    expected = torch.zeros(3, 6, 6)
    expected[:, 1:3, 2:6] = 1
    assert torch.equal(mixed[0], expected)
    assert bool((mixed[1] == 0.75).all())


def test_a_mixed_sample_is_the_same_in_any_company() -> None:
    augment = AugmentConfig(crop=2, flip=True, cutout=4, mixup=0.5, cutmix=1.0, mix_probability=0.8)
    images = torch.randint(0, 256, (60, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(60) % 10
    data = MemoryTrain(images, labels, OnDevice(augment, Normalise([0.5] * 3, [0.5] * 3, CPU), 3, 10), CPU)
    order = data.order(1)
    whole = data.gather(order, 1)
    assert whole.targets.shape == (60, 10)
    torch.testing.assert_close(whole.targets.sum(1), torch.ones(60))
    assert bool((whole.targets.gather(1, labels[order][:, None]) > 0).float().mean() > 0.9)
    parts = [data.gather(order[rank::3], 1) for rank in range(3)]
    for rank, part in enumerate(parts):
        assert torch.equal(part.images, whole.images[rank::3])
        assert torch.equal(part.targets, whole.targets[rank::3])
    plain = MemoryTrain(
        images, labels, OnDevice(AugmentConfig(crop=2, flip=True, cutout=4), data.on_device.normalise, 3, 10), CPU
    ).gather(order, 1)
    unmixed = whole.targets.max(1).values == 1
    assert 0 < int(unmixed.sum()) < 60
    same_class = whole.targets.argmax(1) == plain.targets
    assert bool(same_class[unmixed].all())
