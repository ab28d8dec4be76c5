"""A version of a mechanism is part of the ids of the runs that use it, and of no others."""

from __future__ import annotations

import pytest

from sam_repro.config import identity
from sam_repro.config.compose import compose
from sam_repro.config.identity import MECHANISMS, run_id

VIT = ["model=vit_s16", "dataset.image_size=224"]
USERS = {"kernels": ["method=rsam", *VIT], "parts": ["method=lpf_sgd"]}
OTHERS = {
    "kernels": [["method=rsam"], ["method=asam_filter"], ["method=sam", *VIT], ["method=gsam", *VIT]],
    "parts": [["method=plain"], ["method=rsam"], ["method=lpf_sgd", "method.split=false"]],
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_an_id_counts_the_versions_of_what_its_run_uses(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    user, others = compose(USERS[name]), [compose(words) for words in OTHERS[name]]
    before = [run_id(config) for config in (user, *others)]
    monkeypatch.delitem(identity.MECHANISMS, name)
    after = [run_id(config) for config in (user, *others)]
    assert after[0] != before[0]
    assert after[1:] == before[1:]
