"""Batches by length: every pair once, a function of (seed, epoch), little padding."""

import numpy as np
import pytest

from sam_repro.tasks.translation.batches import Epochs, block, in_order
from sam_repro.tasks.translation.bpe import EOS, PAD
from sam_repro.tasks.translation.corpus import Pairs, Side


def lengths_of(size: int) -> tuple[np.ndarray, np.ndarray]:
    """As in the field's corpora: log-normal, the target's a fifth around the source's."""
    dice = np.random.default_rng(0)
    source = np.clip(np.exp(dice.normal(3.0, 0.6, size)), 1, 200).astype(int)
    return source, np.clip(source * np.exp(dice.normal(0.04, 0.22, size)), 1, 200).astype(int)


def corpus(size: int) -> Pairs:
    dice = np.random.default_rng(1)
    return Pairs(*(Side.of([[*dice.integers(4, 90, n), EOS] for n in lengths]) for lengths in lengths_of(size)))


def test_an_epoch_has_every_pair_once_and_no_batch_too_many_tokens() -> None:
    pairs = corpus(3000)
    epochs = Epochs(pairs, 1024, seed=0)
    batches = epochs(0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(3000))
    for ids in batches:
        b = block(pairs, ids)
        assert max(b.source.size, b.target_out.size) <= 1024 or len(ids) == 1


def test_batches_are_a_function_of_seed_and_epoch() -> None:
    pairs = corpus(2000)
    lists = [[b.tolist() for b in Epochs(pairs, 512, seed)(epoch)] for seed, epoch in ((0, 0), (0, 0), (0, 1), (1, 0))]
    assert lists[0] == lists[1]
    assert lists[0] != lists[2] != lists[3] != lists[0]
    assert len({len(batches) for batches in lists}) == 1
    assert {frozenset(b) for b in lists[0]} != {frozenset(b) for b in lists[2]}, "company changes, not only the order"


def test_padding_is_at_most_a_twentieth() -> None:
    """Of as many pairs as IWSLT'14 has, in batches of as many tokens as its recipe."""
    source, target = lengths_of(160_000)
    pairs = Pairs(*(Side(np.zeros(0), np.cumsum([0, *lengths])) for lengths in (source, target)))
    slots = sum(len(ids) * int(source[ids].max() + target[ids].max()) for ids in Epochs(pairs, 4096, seed=0)(0))
    assert 1 - (source.sum() + target.sum()) / slots <= 0.05


def test_no_batch_is_a_leftover() -> None:
    """Every rank and every shard of a step wants a part of each batch."""
    pairs = corpus(5000)
    for ids in Epochs(pairs, 2048, seed=0)(0):
        longest = max(int(side.lengths[ids].max()) for side in (pairs.source, pairs.target))
        assert len(ids) * longest >= 2048 / 4


def test_halves_of_a_batch_are_alike() -> None:
    """Two ranks that share batches have as much to do."""
    pairs = corpus(2000)
    halves = [np.array_split(pairs.target.lengths[ids], 2) for ids in Epochs(pairs, 2048, seed=0)(0)]
    first, second = (sum(int(half[i].sum()) for half in halves) for i in range(2))
    assert first == pytest.approx(second, rel=0.05)


def test_a_block_is_shifted_and_padded_at_the_end() -> None:
    pairs = Pairs(Side.of([[5, 6, EOS], [7, EOS]]), Side.of([[8, EOS], [9, 10, EOS]]))
    b = block(pairs, np.array([0, 1]))
    assert b.source.tolist() == [[5, 6, EOS], [7, EOS, PAD]]
    assert b.target_out.tolist() == [[8, EOS, PAD], [9, 10, EOS]]
    assert b.target_in.tolist() == [[EOS, 8, PAD], [EOS, 9, 10]]
    assert b.tokens == 5
    assert b.padding == pytest.approx(2 / 12)


def test_sentences_to_decode_come_longest_first() -> None:
    lengths = np.array([3, 9, 1, 5])
    assert [ids.tolist() for ids in in_order(lengths, 10)] == [[1], [3, 0], [2]]
