"""The loss of a step is divided by what its examples weigh, however they are split: lines of 4 to 13 characters."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from commands import ROOT
from rig import CPU, Rig, config, rigged, weights
from torch import Tensor, nn

from sam_repro.engine.ranks import Ranks
from sam_repro.engine.task import cut, weight


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "elsewhere"))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "nextchar"]:
        del sys.modules[name]


def rig(*overrides: str) -> Rig:
    from nextchar.task import NextCharacter

    c = config("loop.batch_size=192", "budget.train_images=96", "base_optimizer.lr=0.5", *overrides)
    task = NextCharacter(c, CPU)
    torch.manual_seed(3)
    net = task.build().double()
    net[1] = nn.Identity()  # dropout draws by the forward pass
    return rigged(c, net, task, Ranks(0, 1, CPU))


def trained(*overrides: str) -> tuple[Tensor, list[float]]:
    s = rig(*overrides)
    losses = [float(s(ids, 0, step).loss) for step, ids in enumerate(s.data.batches(0, 192, True)[:3])]
    return weights(s.state.model), losses


def test_a_step_is_the_mean_over_its_characters() -> None:
    s = rig("method=plain")
    ids = s.data.batches(0, 192, True)[0]
    batch = s.data.gather(ids, 0)
    with torch.no_grad():
        each = s.task.losses(s.state.model(*s.task.inputs(batch)), batch)
    characters = float(batch.known.sum())  # type: ignore[attr-defined]
    assert weight(s.data, ids) == characters != len(ids)
    assert float(s(ids, 0, 0).loss) == pytest.approx(float(each.sum()) / characters, rel=1e-6)


@pytest.mark.parametrize("method", ["plain", "asam", "sam_fraction", "sam_db", "sam_full", "lpf_sgd"])
def test_micro_batches_of_any_weight_are_one_batch(method: str) -> None:
    quiet = ["method.gamma=1e-12", "method.gamma_end=null"] if method == "lpf_sgd" else []
    whole, losses = trained(f"method={method}", *quiet)
    pieces, others = trained(f"method={method}", *quiet, "loop.micro_batch=31")
    torch.testing.assert_close(pieces, whole, rtol=1e-11, atol=1e-13)
    assert others == pytest.approx(losses, rel=1e-6)


def test_shards_are_weighed_by_their_own_characters() -> None:
    """Without an ascent shards of other weights add up to the batch; their plain mean would not."""
    whole, losses = trained("method=plain")
    shards, others = trained("method=plain", "method.m=48")
    torch.testing.assert_close(shards, whole, rtol=1e-11, atol=1e-13)
    assert others == pytest.approx(losses, rel=1e-6)


def test_padding_changes_nothing() -> None:
    """The same lines beside a much longer one, which weighs nothing here."""
    s = rig("method=plain")
    ids = s.data.batches(0, 192, True)[0]
    batch = s.data.gather(ids, 0)
    more = nn.functional.pad(batch.text, (0, 40))  # type: ignore[attr-defined]
    known = nn.functional.pad(batch.known, (0, 40))  # type: ignore[attr-defined]
    padded = replace(batch, text=more, known=known)  # type: ignore[type-var]
    losses = [s.task.losses(s.state.model(*s.task.inputs(b)), b) for b in (batch, padded)]
    torch.testing.assert_close(losses[1], losses[0], rtol=0, atol=1e-12)


def test_a_cut_keeps_to_the_weight_and_leaves_none_out() -> None:
    s = rig("method=plain")
    ids = s.data.order(0)
    pieces = cut(s.data, ids, 31.0)
    assert torch.cat([ids[piece] for piece in pieces]).equal(ids)
    assert all(weight(s.data, ids[piece]) <= 31 for piece in pieces)
    assert [weight(s.data, ids[piece]) > 0 for piece in cut(s.data, ids[:3], 1.0)] == [True] * 3
    assert cut(s.data, ids[:0], 31.0) == []
