"""What a step asks of a GPU: small nets are bound by launches, not by arithmetic, so that more of them are red."""

from __future__ import annotations

import pytest
from launches import METHODS, MODELS, PAGE, launches, table

RENEW = "python tests/renew.py launches"


@pytest.mark.parametrize("method", ["SGD", "SAM"])
def test_a_step_of_resnet_20_launches_what_is_stated(method: str) -> None:
    (row,) = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ResNet-20 |")]
    stated = int(row.split("|")[2 + list(METHODS).index(method)])
    assert launches(MODELS["ResNet-20"], METHODS[method]).total() == stated, RENEW


@pytest.mark.slow
def test_every_step_launches_what_is_stated() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), RENEW


def test_norms_and_statistics_are_a_call_however_many_tensors() -> None:
    """A logged step of SAM on 29 tensors and 9 batch norms, in two micro-batches and clipped."""
    calls = launches("resnet8", "sam", "loop.micro_batch=8", "loop.clip_norm=1", log=True)
    each = {name.removeprefix("aten::_foreach_"): n for name, n in calls.items() if "_foreach_" in name}
    assert each == {"clone": 5, "copy_": 6, "add_": 2, "div_": 1, "mul_": 2, "norm": 5}
    assert calls["aten::linalg_vector_norm"] == 1  # of the norms
    assert calls["aten::_fused_sgd_"] == 1
