"""Every method that ships."""

from __future__ import annotations

import pytest

from sam_repro.methods.factory import names

METHODS = names()
# Of these every axis shows what it does to a step; the others are combinations of the same, and take their turn in the
# slow suite.
QUICK = ("plain", "sam", "asam", "fsam", "rsam", "gsam", "looksam", "esam", "lpf_sgd", "sam_db", "sam_noise", "sam_on")
EACH = [m if m in QUICK else pytest.param(m, marks=pytest.mark.slow) for m in METHODS]
# What a method needs on the rig's batches of 16.
NEEDS = {"sam_larger": ["method.ascent_batch=32"]}


def of(method: str) -> list[str]:
    return [f"method={method}", *NEEDS.get(method, [])]
