"""Every method that ships, by its generic file: those whose names carry no data set."""

from __future__ import annotations

import pytest

from sam_repro import CONFIGS

DATA = ("_cifar100", "_imagenet", "_pyramidnet", "_transfer", "_demo", "_vit")
METHODS = sorted(f.stem for f in (CONFIGS / "method").glob("*.yaml") if not f.stem.endswith(DATA))
# Of these every axis shows what it does to a step; the others are combinations of the same, and take their turn in the
# slow suite.
QUICK = ("plain", "sam", "asam", "fsam", "rsam", "gsam", "looksam", "esam", "lpf_sgd", "sam_db", "sam_noise", "sam_on")
EACH = [m if m in QUICK else pytest.param(m, marks=pytest.mark.slow) for m in METHODS]
# What a method needs on the rig's batches of 16.
NEEDS = {"sam_larger": ["method.ascent_batch=32"]}


def of(method: str) -> list[str]:
    return [f"method={method}", *NEEDS.get(method, [])]
