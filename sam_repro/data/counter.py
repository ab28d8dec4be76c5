"""Randomness as a pure function: a counter-based hash instead of a generator with a state.

`scrambled` is the finaliser of splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
The random number of sample `id` of the draw `k` is scrambled(k + id * GOLDEN), the id-th output of a splitmix64
generator whose state started at `k`. Nothing is drawn in order, so nothing has to be saved for a resume, and it does
not matter which process asks for which sample, or in what company. Everything here is on the host: for a few hundred
ids that takes less than the launches of some fifty kernels.
"""

from __future__ import annotations

from enum import IntEnum

import torch
from torch import Tensor

_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


class Draw(IntEnum):
    """What a random number is for. The values are part of what a seed means: append, never renumber."""

    order = 1
    other = 2
    crop_y = 3
    crop_x = 4
    flip = 5
    cutout_apply = 6
    cutout_y = 7
    cutout_x = 8
    noise_choice = 9
    noise_label = 10
    subset = 11
    validation = 12
    transform = 13
    partner = 14
    mixing_apply = 15
    mixing_kind = 16
    mixing_share = 17
    mixing_y = 18
    mixing_x = 19


def _signed(word: int) -> int:
    """A 64-bit word as the int64 with the same bits, torch having no arithmetic on uint64."""
    return word - (1 << 64) if word >> 63 else word


def scrambled_int(word: int) -> int:
    word &= _WORD
    word = ((word ^ (word >> 30)) * _FIRST) & _WORD
    word = ((word ^ (word >> 27)) * _SECOND) & _WORD
    return word ^ (word >> 31)


def key(*parts: int) -> int:
    """One 64-bit key of several integers; the order of the parts matters."""
    state = 0
    for part in parts:
        state = scrambled_int((state ^ scrambled_int(part + _GOLDEN)) + _GOLDEN)
    return state


def scrambled(words: Tensor) -> Tensor:
    """`scrambled_int` of every element. torch shifts arithmetically, so the bits shifted in are masked off."""
    words = (words ^ ((words >> 30) & (_WORD >> 30))) * _signed(_FIRST)
    words = (words ^ ((words >> 27) & (_WORD >> 27))) * _signed(_SECOND)
    return words ^ ((words >> 31) & (_WORD >> 31))


def hashes(ids: Tensor, *keys: int) -> Tensor:
    """[n] for one key, [n, k] for k keys: 64 random bits for each id of each draw."""
    counters = ids * _signed(_GOLDEN)
    if len(keys) == 1:
        return scrambled(counters + _signed(keys[0]))
    return scrambled(counters[:, None] + torch.tensor([_signed(k) for k in keys]))


def integers(ids: Tensor, keys: list[int], bounds: list[int]) -> Tensor:
    """[n, k] integers, column j uniform over 0 .. bounds[j] - 1 (bounds below 2^31: the bias is below bound / 2^31)."""
    words = hashes(ids, *keys).reshape(len(ids), len(keys))
    return ((words >> 33) & 0x7FFFFFFF) * torch.tensor(bounds) >> 31


def uniform(ids: Tensor, *keys: int) -> Tensor:
    """Uniform float64 numbers in [0, 1) with 53 bits."""
    return ((hashes(ids, *keys) >> 11) & (_WORD >> 11)).double() * 2.0**-53


def permutation(size: int, draw: int) -> Tensor:
    """A random order of 0 .. size - 1: the same on every machine and version of torch."""
    return torch.argsort(hashes(torch.arange(size), draw), stable=True)
