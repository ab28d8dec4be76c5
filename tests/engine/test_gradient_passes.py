"""Accumulation, dropout masks, clipping and fp16: what `engine.gradient` does so that no method has to."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from every import EACH, METHODS, of
from rig import config, net, stepper, train, weights
from torch import Tensor, nn

from sam_repro.engine.masks import mask_seed


@pytest.mark.parametrize("method", EACH)
def test_trap_accumulation_covers_every_micro_batch_in_every_pass(method: str) -> None:
    whole, pieces = net(norm=False), net(norm=False)
    for n in (whole, pieces):
        n.norm = nn.GroupNorm(2, 6, dtype=torch.float64)  # it sees one sample at a time
    train(stepper(config(*of(method)), whole), 4)
    train(stepper(config(*of(method), "loop.micro_batch=5"), pieces), 4)
    torch.testing.assert_close(weights(pieces), weights(whole), rtol=1e-11, atol=1e-13)


def test_trap_dropout_draws_the_same_masks_in_both_passes() -> None:
    """With rho = 0 both passes are the same function of the same weights, so any difference is the masks'."""
    losses = {}
    with_dropout = ("model=wrn_16_8", "model.dropout=0.5")  # what the configuration says of the net below
    for masks in ("shared", "independent"):
        c = config("method=sam", "method.rho=0", *with_dropout, f"loop.masks={masks}")
        s = stepper(c, net(norm=False, dropout=0.5))
        outcome = s(s.data.order(0)[:16], 0, 0)
        losses[masks] = (outcome.loss.item(), outcome.descent_loss.item())
    assert losses["shared"][0] == losses["shared"][1]
    assert losses["independent"][0] != losses["independent"][1]


def test_masks_differ_between_steps_and_seeds() -> None:
    seen = set()
    for seed, step in ((0, 0), (0, 1), (1, 0)):
        s = stepper(config("method=plain", f"seed={seed}"), net(norm=False, dropout=0.5))
        seen.add(s(torch.arange(16), 0, step).loss.item())
    assert len(seen) == 3


def test_trap_clipping_touches_the_final_gradient_only() -> None:
    clipped, free = (stepper(config("method=fsam", "base_optimizer.weight_decay=0", *extra), net(norm=False))
                     for extra in (["loop.clip_norm=0.01"], []))  # fmt: skip
    before = weights(net(norm=False))
    for s in (clipped, free):
        train(s, 1)
    change = weights_of(clipped) - before
    torch.testing.assert_close(change.norm().item(), 0.1 * 0.01, rtol=1e-4, atol=0)
    assert same_state(clipped.method.state_dict(), free.method.state_dict()), "the average saw a clipped gradient"


def weights_of(s: object) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in s.parameters])  # type: ignore[attr-defined]


def same_state(a: object, b: object) -> bool:
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same_state(a[k], b[k]) for k in a)
    return a == b


class Overflowing(nn.Module):
    """The net, whose output overflows in the chosen forward passes."""

    def __init__(self, inner: nn.Module, passes: set[int]) -> None:
        super().__init__()
        self.inner, self.passes, self.count = inner, passes, 0

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        out: Tensor = self.inner(x)
        return out * (1e30 if self.count in self.passes else 1.0)


FP16 = ("runtime.precision=fp16",)


def forwards_of_a_step(method: str) -> int:
    n = Overflowing(net(torch.float32), set())
    s = stepper(config(*of(method), *FP16), n)
    s(s.data.order(0)[:16], 0, 0)
    return n.count


@pytest.mark.parametrize("method", EACH)
def test_trap_fp16_overflow_in_any_pass_skips_the_step_with_weights_and_state_bit_equal(method: str) -> None:
    count = forwards_of_a_step(method)
    for where in range(1, count + 1):
        n = Overflowing(net(torch.float32), {count + where})
        s = stepper(config(*of(method), *FP16), n)
        train(s, 1)
        before, state, scale = weights(n), copy.deepcopy(s.method.state_dict()), s.scale.scale
        statistics = s.statistics.copy()
        if n.count != count:  # a method with a cadence has cheaper steps between
            n.passes = {n.count + 1}
        outcome = s(s.data.order(0)[16:32], 0, 1)
        if not outcome.skipped:
            assert n.count < count + where, "the pass did overflow"
            continue
        assert torch.equal(weights(n), before)
        assert same_state(state, s.method.state_dict())
        assert all(torch.equal(a, b) for a, b in zip(statistics, s.statistics.copy(), strict=True))
        assert s.scale.scale == scale / 2
        n.passes = set()
        assert not s(s.data.order(0)[32:48], 0, 2).skipped
        assert torch.isfinite(weights(n)).all()


@pytest.mark.parametrize("method", EACH)
def test_every_method_trains_in_bf16(method: str) -> None:
    n = net(torch.float32)
    before = weights(n)
    train(stepper(config(*of(method), "runtime.precision=bf16", "runtime.channels_last=true"), n), 2)
    assert torch.isfinite(weights(n)).all()
    assert not torch.equal(weights(n), before)


@pytest.mark.slow
def test_every_method_trains_compiled() -> None:
    """The compiled forward is the same function, whatever the method does to weights and memory between passes."""
    n = net(torch.float32)
    start = copy.deepcopy(n.state_dict())
    compiled = torch.compile(n)
    plain: Callable[[Tensor], Tensor] = n
    for method in METHODS:
        results = []
        for forward in (plain, compiled):
            n.load_state_dict(start)
            s = stepper(config(*of(method)), n, forward=forward)
            train(s, 3)
            results.append(weights(n))
        torch.testing.assert_close(results[1], results[0], rtol=1e-3, atol=1e-4, msg=method)


def test_fp16_trains_as_fp32_does() -> None:
    results = []
    for precision in ("fp32", "fp16"):
        n = net(torch.float32, norm=False)
        train(stepper(config("method=sam", f"runtime.precision={precision}"), n), 8)
        results.append(weights(n))
    torch.testing.assert_close(results[1], results[0], rtol=0.05, atol=2e-3)


def test_the_loss_scale_grows_again() -> None:
    from sam_repro.engine.precision import LossScale

    scale = LossScale(True, scale=8.0, patience=3)
    for overflowed in (True, False, False, False):
        scale.update(overflowed)
    assert scale.scale == 8.0
    again = LossScale(True)
    again.load_state_dict(scale.state_dict())
    assert again.state_dict() == scale.state_dict()


@pytest.mark.parametrize("m", ["null", "4"])
def test_a_skipped_step_reports_the_loss_that_it_had(m: str) -> None:
    """Of the shards that it came to: the gradient overflowed, the loss did not."""
    overrides = config("method=sam", f"method.m={m}", *FP16)
    s = stepper(overrides, net(torch.float32))
    s.scale.scale = 1e38
    outcome = s(s.data.order(0)[:16], 0, 0)
    size = 16 if m == "null" else 4
    alone = config("method=sam", f"method.m={m}", *FP16, f"loop.batch_size={size}")
    good = stepper(alone, net(torch.float32))(s.data.order(0)[:size], 0, 0)
    assert outcome.skipped
    assert not good.skipped
    torch.testing.assert_close(outcome.loss, good.loss, rtol=1e-3, atol=0)
    assert torch.equal(outcome.descent_loss, outcome.loss)
    assert outcome.passes == 1


def test_the_seeds_of_masks_are_pinned() -> None:
    """Other values would be other masks under the same ids. They are what CPython's hash of a tuple gave."""
    assert mask_seed(0, 0, 0, 0, 0, 0) == 690013071067780523
    assert mask_seed(3, 17, 2, 0, 1, 1) == 1185569620867856373
    assert mask_seed(2**62, 1, 0, 0, 0, 0) == 8042207784743535709


LPF = ("method=lpf_sgd", "method.draws=5", "method.gamma_end=null")


def test_parts_of_a_batch_with_tiny_noise_are_the_plain_step() -> None:
    """Sixteen samples in five parts, which are not of one size: loss, right answers, gradient and weights."""
    split, plain = net(norm=False), net(norm=False)
    lpf, sgd = stepper(config(*LPF, "method.gamma=1e-12"), split), stepper(config("method=plain"), plain)
    for step in range(3):
        ids = lpf.data.order(0)[16 * step : 16 * step + 16]
        one, other = lpf(ids, 0, step), sgd(ids, 0, step)
        torch.testing.assert_close(one.loss, other.loss, rtol=1e-6, atol=0)
        assert one.counts == other.counts
        assert one.passes == 1
    torch.testing.assert_close(weights(split), weights(plain), rtol=1e-9, atol=1e-11)


def test_parts_of_a_batch_draw_their_own_masks_and_make_one_update_of_the_statistics() -> None:
    s = stepper(config(*LPF, "method.gamma=1e-12", "loop.micro_batch=2"), net(dropout=0.5))
    seen: list[Tensor] = []
    s.state.model.get_submodule("dropout").register_forward_hook(lambda _, x, y: seen.append((y == 0) & (x[0] != 0)))
    s(s.data.order(0)[:16], 0, 0)
    assert [len(mask) for mask in seen] == [2, 2, *[2, 1] * 4]
    whole = [mask for mask in seen if len(mask) == 2]
    assert not any(torch.equal(a, b) for i, a in enumerate(whole) for b in whole[:i])
    norm = s.state.model.get_submodule("norm")
    assert norm.num_batches_tracked == 1
    images = s.data.gather(s.data.order(0)[:16], 0).images.double()
    activations = net().conv(images)
    parts = [torch.stack([a.mean((0, 2, 3)) for a in part.split(2)]).mean(0) for part in activations.tensor_split(5)]
    torch.testing.assert_close(norm.running_mean, 0.1 * torch.stack(parts).mean(0), rtol=1e-9, atol=1e-11)


def test_more_parts_than_samples_leave_some_empty() -> None:
    n = net(norm=False)
    s = stepper(config(*LPF, "method.gamma=1e-12", "loop.batch_size=4"), n)
    outcome = s(s.data.order(0)[:4], 0, 0)
    plain = stepper(config("method=plain", "loop.batch_size=4"), net(norm=False))
    torch.testing.assert_close(outcome.loss, plain(plain.data.order(0)[:4], 0, 0).loss, rtol=1e-6, atol=0)
