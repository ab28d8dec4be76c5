"""Running statistics of batch norm: one update a step, from the pass that the policy names."""

from __future__ import annotations

import pytest
import torch
from rig import Net, buffers, config, net, stepper, train, weights
from torch.nn.modules.batchnorm import _BatchNorm


def after(*overrides: str, steps: int = 1) -> Net:
    n = net()
    train(stepper(config(*overrides), n), steps)
    return n


def test_trap_statistics_come_from_the_first_pass_only() -> None:
    """A SAM step moves them exactly as a plain step does, whatever the radius."""
    plain, sam = after("method=plain"), after("method=sam", "method.rho=0.5")
    assert torch.equal(buffers(plain), buffers(sam))
    assert not torch.equal(weights(plain), weights(sam))
    assert sam.norm.num_batches_tracked == 1


def test_trap_statistics_are_not_frozen_after_many_steps() -> None:
    one, five = after("method=sam"), after("method=sam", steps=5)
    assert five.norm.num_batches_tracked == 5
    assert not torch.equal(one.norm.running_mean, five.norm.running_mean)
    assert five.norm.momentum == 0.1
    assert five.norm.track_running_stats


def test_last_and_both_are_selectable() -> None:
    first, last, both = (
        after("method=sam", "method.rho=0.5", f"loop.batchnorm={p}") for p in ("first", "last", "both")
    )
    assert last.norm.num_batches_tracked == 1
    assert both.norm.num_batches_tracked == 2
    # One update by s is r + 0.1 (s - r). From the two single updates follows the double one.
    start = net().norm.running_mean
    s1, s2 = ((x.norm.running_mean - 0.9 * start) / 0.1 for x in (first, last))
    torch.testing.assert_close(
        both.norm.running_mean, 0.9 * (0.9 * start + 0.1 * s1) + 0.1 * s2, rtol=1e-12, atol=1e-14
    )
    assert not torch.allclose(s1, s2)


def test_micro_batches_make_one_update_by_their_mean() -> None:
    n = net()
    s = stepper(config("method=sam", "loop.micro_batch=4"), n)
    s(s.data.order(0)[:16], 0, 0)
    images = s.data.gather(s.data.order(0)[:16], 0).images.double()
    activations = net().conv(images)
    mean = torch.stack([a.mean((0, 2, 3)) for a in activations.split(4)]).mean(0)
    torch.testing.assert_close(n.norm.running_mean, 0.1 * mean, rtol=1e-12, atol=1e-14)
    assert n.norm.num_batches_tracked == 1


def test_full_gradient_passes_do_not_count() -> None:
    """SAM-full sees the whole training set each step; the statistics still come from one pass over the batch."""
    full, sam = after("method=sam_full"), after("method=sam", "loop.batchnorm=last")
    assert full.norm.num_batches_tracked == 1
    assert not torch.equal(buffers(full), buffers(sam))


def test_statistics_are_whole_after_a_pass_that_raised() -> None:
    n = net()
    s = stepper(config("method=sam"), n)
    n.linear.register_forward_hook(lambda *_: (_ for _ in ()).throw(RuntimeError("broken")))
    with pytest.raises(RuntimeError, match="broken"):
        train(s, 1)
    assert all(m.track_running_stats for m in n.modules() if isinstance(m, _BatchNorm))
