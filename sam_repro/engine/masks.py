"""The seeds of dropout and its like: a function of the place in the training, so that a resumed run draws the same."""

from __future__ import annotations

import torch

_WORD = (1 << 64) - 1
_PRIMES = 11400714785074694791, 14029467366897019727, 2870177450012600261


def seed_masks(*place: int, device: torch.device) -> None:
    seed = mask_seed(*place)
    # `torch.manual_seed` asks for every kind of device there could be: a tenth of a millisecond a pass.
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)


def mask_seed(*place: int) -> int:
    """63 bits of these numbers, none negative: xxHash as CPython 3.8 to 3.14 hash a tuple, written out to stay."""
    first, second, fifth = _PRIMES
    state = fifth
    for number in place:
        state = (state + number % ((1 << 61) - 1) * second) & _WORD
        state = ((state << 31) | (state >> 33)) & _WORD
        state = state * first & _WORD
    return (state + (len(place) ^ fifth ^ 3527539) & _WORD) % (1 << 63)
