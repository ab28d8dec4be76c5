"""Label noise and class-balanced subsets."""

import pytest
import torch
from scipy import stats

from sam_repro.data.declared import LabelNoise
from sam_repro.data.noise import corrupt
from sam_repro.data.subset import balanced, split


def labels(n: int = 10_000, classes: int = 10) -> torch.Tensor:
    return torch.arange(n) % classes


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.4, 0.8, 1.0])
def test_noise_without_the_true_class(rate: float) -> None:
    noisy, facts = corrupt(labels(), 10, LabelNoise(rate=rate))
    assert int((noisy != labels()).sum()) == round(rate * 10_000)
    assert facts == {"requested": rate, "redrawn": round(rate * 10_000), "realised": rate}


def test_noise_with_the_true_class() -> None:
    noisy, facts = corrupt(labels(), 10, LabelNoise(rate=0.5, include_true=True))
    assert facts["redrawn"] == 5000
    wrong = int((noisy != labels()).sum())
    assert facts["realised"] == wrong / 10_000
    assert stats.binomtest(wrong, 5000, 0.9).pvalue > 1e-3


@pytest.mark.parametrize("include_true", [False, True])
def test_noise_is_symmetric(include_true: bool) -> None:
    clean = labels(100_000)
    noisy, _ = corrupt(clean, 10, LabelNoise(rate=1.0, include_true=include_true))
    table = (clean * 10 + noisy).bincount(minlength=100).reshape(10, 10)
    off_diagonal = table[~torch.eye(10, dtype=torch.bool)]
    assert stats.chisquare(off_diagonal.numpy()).pvalue > 1e-3
    assert bool((table.diagonal() > 0).all()) is include_true


def test_noise_depends_on_its_own_seed_only() -> None:
    first, _ = corrupt(labels(), 10, LabelNoise(rate=0.4, seed=1))
    torch.manual_seed(99)
    again, _ = corrupt(labels(), 10, LabelNoise(rate=0.4, seed=1))
    other, _ = corrupt(labels(), 10, LabelNoise(rate=0.4, seed=2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_higher_rate_corrupts_a_superset() -> None:
    low, _ = corrupt(labels(), 10, LabelNoise(rate=0.2))
    high, _ = corrupt(labels(), 10, LabelNoise(rate=0.6))
    touched = low != labels()
    assert torch.equal(low[touched], high[touched])


def test_subsets_are_balanced_and_nested() -> None:
    small, large = balanced(labels(), 100), balanced(labels(), 1005)
    assert labels()[small].bincount().tolist() == [10] * 10
    assert sorted(labels()[large].bincount().tolist()) == [100] * 5 + [101] * 5
    assert set(small.tolist()) < set(large.tolist())
    assert torch.equal(small, small.sort().values)
    assert torch.equal(balanced(labels(), 100), small)
    assert torch.equal(balanced(labels(), 10_000), torch.arange(10_000))


def test_subset_of_an_unbalanced_set_takes_what_there_is() -> None:
    few = torch.tensor([0] * 3 + [1] * 50 + [2] * 50)
    assert few[balanced(few, 43)].bincount().tolist() == [3, 20, 20]


def test_split_is_stratified_and_disjoint() -> None:
    uneven = torch.tensor([0] * 100 + [1] * 300)
    rest, held = split(uneven, 0.1)
    assert uneven[held].bincount().tolist() == [10, 30]
    assert sorted(rest.tolist() + held.tolist()) == list(range(400))
    # Not simply the first or last of each class.
    assert held[:10].tolist() not in (list(range(10)), list(range(90, 100)))
