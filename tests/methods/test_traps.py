"""The traps that broke public implementations, as far as they are the methods' to avoid."""

import io
import math

import pytest
import torch
from problem import Data, Loop, net
from test_references import CASES, LR, LR_MIN, RATES
from torch import nn

from sam_repro.methods import Moment, Overflow, build
from sam_repro.methods.draws import generator
from sam_repro.methods.factory import read
from sam_repro.methods.leaves import leaves
from sam_repro.methods.radii.follow_lr import FollowLr
from sam_repro.methods.starts.kernel_noise import KernelNoise

EVERY = [case for case in CASES if case != "plain"]


def moment(t):
    return Moment(step=t, progress=t / 5, lr=RATES[t], lr_min=LR_MIN, lr_max=LR)


def bits(model):
    return [p.detach().clone() for p in model.parameters()]


def same(a, b):
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def flattened(state):
    """A state dict as a list of tensors and numbers that can be compared to the bit."""
    if isinstance(state, dict):
        return [x for key in sorted(state, key=str) for x in [torch.tensor(hash(key) % 997), *flattened(state[key])]]
    return [state.detach().clone() if isinstance(state, torch.Tensor) else torch.tensor(state)]


class Trainer:
    def __init__(self, case, seed=5, **how):
        name, fields, _, _ = CASES[case]
        self.model = net()
        self.loop = Loop(self.model, Data())
        self.method = build(name, self.model, seed=seed, **how, **fields)
        self.optimizer = torch.optim.SGD(self.model.parameters(), LR, momentum=0.9, weight_decay=0.01)

    def step(self, t, grad_fn=None):
        self.loop.t = t
        loss = self.method.estimate(grad_fn or self.loop, at=moment(t))
        self.optimizer.step()
        return loss


class Failing:
    """A grad_fn that fails after the n-th pass has filled the gradients."""

    def __init__(self, loop, n, error):
        self.loop, self.n, self.error = loop, n, error

    def __call__(self, wanted):
        loss = self.loop(wanted)
        if wanted.index == self.n:
            raise self.error("injected")
        return loss


# ---------------------------------------------------------------- restore


@pytest.mark.parametrize("swap", [True, False])
@pytest.mark.parametrize("case", EVERY)
def test_restore_is_bit_exact_after_every_step(case, swap):
    trainer = Trainer(case, swap=swap)
    for t in range(3):
        before = bits(trainer.model)
        trainer.loop.t = t
        trainer.method.estimate(trainer.loop, at=moment(t))
        assert same(before, bits(trainer.model))
        trainer.optimizer.step()


@pytest.mark.parametrize("swap", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_restore_also_when_a_pass_raises(case, swap):
    raised = 0
    for n in range(4):  # no method of the cases makes more passes
        trainer = Trainer(case, swap=swap)
        trainer.step(0)
        trainer.step(1)
        before, state = bits(trainer.model), flattened(trainer.method.state_dict())
        trainer.loop.seen.clear()
        try:
            trainer.method.estimate(Failing(trainer.loop, n, RuntimeError), at=moment(2))
        except RuntimeError:
            raised += 1
            assert same(state, flattened(trainer.method.state_dict()))
        assert same(before, bits(trainer.model))
    assert raised == len(trainer.loop.seen)


@pytest.mark.parametrize("swap", [True, False])
def test_restore_a_parameter_whose_gradient_is_none_in_a_pass(swap):
    model = nn.ModuleDict({"a": nn.Linear(4, 3), "b": nn.Linear(4, 3)})
    x = torch.randn(5, 4)
    for used in (["a", "b"], ["a"]), (["a"], ["a", "b"]), (["a"], ["b"]):
        for fields in (
            {}, {"descent": "gsam", "alpha": 0.5}, {"direction": "minus_ema"}, {"geometry": "elementwise"},
            {"start": "kernel_noise", "gamma": 0.1, "direction": "noise_plus_gradient"},
            {"every": 2, "between": "reuse"}, {"direction": "residual"},
        ):  # fmt: skip
            method = build("sam", model, swap=swap, rho=0.3, **fields)
            before = bits(model)

            def grad_fn(wanted, used=used):
                loss = sum(model[name](x).square().mean() for name in used[min(wanted.index, 1)])
                loss.backward()
                return loss.detach()

            method.estimate(grad_fn)
            assert same(before, bits(model))
            assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_zero_gradient_gives_zero_perturbation():
    model = nn.Linear(3, 2)
    for case in EVERY:
        name, fields, _, _ = CASES[case]
        for foreach in (False, True):
            method = build(name, model, foreach=foreach, **fields)

            def grad_fn(wanted):
                assert all(p.isfinite().all() for p in model.parameters())
                loss = (model.weight.sum() + model.bias.sum()) * 0.0
                loss.backward()
                return loss.detach()

            method.estimate(grad_fn, at=moment(2))
            assert all((p.grad == 0).all() for p in model.parameters())


# ---------------------------------------------------------------- the memory that is swapped


def test_no_swap_where_memory_is_shared():
    """Flat buffers and tied memory: the views stay views, and all of them see the perturbed weights."""
    flat, flat_grad = torch.randn(20), torch.zeros(20)
    model = nn.Linear(4, 5, bias=False)
    model.weight.data = flat.view(5, 4)
    model.weight.grad = flat_grad.view(5, 4)
    before, seen = flat.clone(), []

    def grad_fn(wanted):
        seen.append(flat.clone())
        loss = model(torch.ones(2, 4)).square().mean()
        loss.backward()
        return loss.detach()

    build("sam", model, rho=0.5).estimate(grad_fn)
    assert torch.equal(flat, before)
    assert (seen[1] - before).norm().item() == pytest.approx(0.5, rel=1e-5)
    assert model.weight.grad.data_ptr() == flat_grad.data_ptr()
    assert flat_grad.norm() > 0


def test_no_swap_with_a_bucket_of_one_parameter(tmp_path):
    """DDP's view covers that bucket whole, so sizes do not tell: the bucket must not become the weight."""
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    try:
        torch.manual_seed(0)
        inner = nn.Linear(4, 1, bias=False)
        alone = nn.Linear(4, 1, bias=False)
        alone.load_state_dict(inner.state_dict())
        ddp = nn.parallel.DistributedDataParallel(inner, gradient_as_bucket_view=True)
        x = torch.randn(8, 4)
        for model, module in ((ddp, inner), (alone, alone)):
            method, optimizer = build("sam", module, rho=0.5), torch.optim.SGD(module.parameters(), 0.1)

            def closure(model=model):
                loss = model(x).exp().mean()
                loss.backward()
                return loss

            for _ in range(4):
                method.estimate(closure)
                optimizer.step()
        assert torch.allclose(inner.weight, alone.weight, rtol=1e-6)
        del ddp
    finally:
        dist.destroy_process_group()


def test_autocast_does_not_reuse_the_weights_of_the_first_pass():
    """Its cache of low-precision weights outlives a pass where one autocast surrounds both."""
    torch.manual_seed(0)
    model, x = nn.Linear(16, 8), torch.randn(4, 16)
    outputs = []

    def closure():
        out = model(x)
        outputs.append(out.detach().clone())
        loss = out.float().square().mean()
        loss.backward()
        return loss

    with torch.autocast("cpu", dtype=torch.bfloat16):
        build("sam", model, rho=5.0).estimate(closure)
        after = model(x)
    assert not torch.equal(outputs[0], outputs[1])
    assert torch.equal(outputs[0], after.detach())


# ---------------------------------------------------------------- AMP fp16


@pytest.mark.parametrize("case", CASES)
def test_amp_fp16_overflow_in_each_pass_undoes_the_step(case):
    clean, hurt = Trainer(case), Trainer(case)
    for t in range(4):
        clean.step(t)
        clean.method.end_step()
    for t in range(4):
        n = 0
        while True:
            before, state = bits(hurt.model), flattened(hurt.method.state_dict())
            hurt.loop.t = t
            hurt.loop.seen.clear()
            try:
                hurt.method.estimate(Failing(hurt.loop, n, Overflow), at=moment(t))
            except Overflow:
                hurt.method.end_step(skipped=True)
                assert same(before, bits(hurt.model))
                assert same(state, flattened(hurt.method.state_dict()))
                n += 1
            else:
                hurt.optimizer.step()
                hurt.method.end_step()
                break
        assert n >= 1
    assert same(bits(clean.model), bits(hurt.model))


def test_amp_fp16_an_overflow_in_one_shard_undoes_the_others_too():
    model = net()
    loop, method = Loop(model, Data()), build("fsam", model, rho=0.2)
    for shard in (0, 1):
        method.estimate(loop, shard=shard)
    method.end_step()
    state = flattened(method.state_dict())
    loop.t = 1
    method.estimate(loop, shard=0)
    with pytest.raises(Overflow):
        method.estimate(Failing(loop, 1, Overflow), shard=1)
    method.end_step(skipped=True)
    assert same(state, flattened(method.state_dict()))


@pytest.mark.parametrize("case", CASES)
def test_scale_of_g_does_not_change_with_the_loss_scale(case):
    """The scaler's powers of two leave every bit of a step as it is without a scaler."""
    plain, scaled = Trainer(case), Trainer(case)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)

    def grad_fn(wanted):
        """As `Loop`, with the scaled loss: the gradients are linear in it."""
        loss = scaled.loop.loss(wanted)
        scaler.scale(loss).backward()
        return loss.detach()

    for t in range(4):
        plain.step(t)
        scaled.loop.t = t
        scaled.method.estimate(grad_fn, at=moment(t), scaler=scaler)
        scaler.step(scaled.optimizer)
        scaler.update()
    assert same(bits(plain.model), bits(scaled.model))


@pytest.mark.parametrize("n", [0, 1])
def test_amp_fp16_the_users_scaler_skips_the_step_and_lowers_its_scale(n):
    model = net()
    loop, method = Loop(model, Data()), build("fsam", model, rho=0.2)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8, growth_interval=1000)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def grad_fn(wanted, bad=None):
        losses = loop.losses(loop.data.ids("batch", loop.t))
        scaler.scale(losses.mean()).backward()
        if wanted.index == bad:
            model[0].weight.grad.view(-1)[3] = math.inf
        return losses.mean().detach()

    for t, bad in enumerate([None, n, None]):
        before, state = bits(model), flattened(method.state_dict())
        loss = method.estimate(lambda wanted, bad=bad: grad_fn(wanted, bad), scaler=scaler)
        scaler.step(optimizer)
        scaler.update()
        assert loss.isfinite()
        if t == 1:
            assert same(before, bits(model))
            assert same(state, flattened(method.state_dict()))
            assert scaler.get_scale() == 2.0**7
        else:
            assert not same(before, bits(model))


# ---------------------------------------------------------------- the rest of the table


@pytest.mark.parametrize("case", CASES)
def test_checkpoint_state_round_trip_is_bit_exact(case):
    whole = Trainer(case)
    for t in range(5):
        whole.step(t)
    first = Trainer(case)
    for t in range(3):
        first.step(t)
    file = io.BytesIO()
    torch.save((first.method.state_dict(), first.model.state_dict(), first.optimizer.state_dict()), file)
    file.seek(0)
    method_state, weights, optimizer_state = torch.load(file, weights_only=True)
    second = Trainer(case)
    second.model.load_state_dict(weights)
    second.optimizer.load_state_dict(optimizer_state)
    second.method.load_state_dict(method_state)
    assert same(flattened(first.method.state_dict()), flattened(second.method.state_dict()))
    for t in (3, 4):
        second.step(t)
    assert same(bits(whole.model), bits(second.model))


def test_checkpoint_holds_every_shard_and_the_own_step_count():
    def run(model, method, steps):
        loop, optimizer = Loop(model, Data()), torch.optim.SGD(model.parameters(), 0.1)
        for t in steps:
            loop.t = t
            for shard in (0, 3):
                method.estimate(loop, shard=shard)
            method.end_step()
            optimizer.step()

    for fields in ({}, {"m": 12, "ema_shared": True, "ema_order": "subtract_first", "ema_start": "first"}):
        a = net()
        first = build("fsam", a, rho=0.2, every=2, **fields)
        run(a, first, range(3))
        b = net()
        b.load_state_dict(a.state_dict())
        second = build("fsam", b, rho=0.2, every=2, **fields)
        second.load_state_dict(first.state_dict())
        run(a, first, (3, 4))
        run(b, second, (3, 4))
        assert same(bits(a), bits(b))


def test_gradient_clipping_of_the_final_gradient_leaves_the_average_alone():
    free, clipped = net(), net()
    averages = []
    for model in (free, clipped):
        method, loop = build("fsam", model, rho=0.2), Loop(model, Data())
        method.estimate(loop)
        if model is clipped:
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        averages.append(flattened(method.state_dict()))
    assert same(*averages)


def test_gradient_accumulation_both_passes_see_every_micro_batch():
    """Without batch norm, whose statistics are a micro-batch's: four quarters are the whole."""
    whole, parts = (
        nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, 5)).double() for _ in range(2)
    )
    parts.load_state_dict(whole.state_dict())
    data = Data()
    for model, chunks in ((whole, 1), (parts, 4)):
        method = build("fsam", model, rho=0.2)

        def closure(model=model, chunks=chunks):
            total = 0.0
            for ids in data.ids("batch", 0).chunk(chunks):
                loss = nn.functional.cross_entropy(model(data.images[ids]), data.targets[ids]) / chunks
                loss.backward()
                total += loss.detach()
            return total

        method.estimate(closure)
    for a, b in zip(whole.parameters(), parts.parameters(), strict=True):
        assert torch.allclose(a.grad, b.grad, rtol=1e-10, atol=1e-14)


def test_scheduler_of_the_base_optimizer_moves_the_radius():
    model = nn.Linear(3, 2)
    method, optimizer = build("gsam", model), torch.optim.SGD(model.parameters(), 0.4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)

    def closure():
        loss = model(torch.ones(1, 3)).square().mean()
        loss.backward()
        return loss

    radii = []
    for t in range(10):
        lr = optimizer.param_groups[0]["lr"]
        method.estimate(closure, at=Moment(step=t, lr=lr, lr_min=0.0, lr_max=0.4))
        radii.append(method.report["radius"])
        optimizer.step()
        scheduler.step()
    assert radii[0] == pytest.approx(0.6)
    assert radii == sorted(radii, reverse=True)
    assert radii[5] == pytest.approx(0.1 + 0.5 * 0.5)


def test_same_random_key_is_not_used_for_all_tensors():
    w = [(name, torch.ones(4, 3, requires_grad=True)) for name in ("one.weight", "other.weight")]
    a, b = KernelNoise().noise(leaves(w), 0.1, generator(torch.device("cpu"), 0, 0, 0, "noise0"))
    assert not torch.equal(a, b)


def test_same_random_key_is_not_used_for_steps_shards_draws_or_seeds():
    keys = [(0, 0, 0, "noise0"), (1, 0, 0, "noise0"), (0, 1, 0, "noise0"), (0, 0, 1, "noise0"), (0, 0, 0, "noise1")]
    draws = [torch.randn(8, generator=generator(torch.device("cpu"), *key)) for key in [*keys, (0, 0, 0, "mask")]]
    assert len({tuple(d.tolist()) for d in draws}) == len(draws)


def test_noise_is_of_the_size_of_its_kernel():
    torch.manual_seed(0)
    conv, bias = torch.randn(3, 40, 9, 9) * torch.tensor([0.1, 1.0, 10.0]).view(3, 1, 1, 1), torch.full((4000,), 0.5)
    own = leaves([("weight", conv.requires_grad_()), ("bias", bias.requires_grad_())])
    d0, d1 = KernelNoise().noise(own, 0.2, generator(torch.device("cpu"), 0))
    for noise, kernel in [*zip(d0, conv, strict=True), (d1, bias)]:
        assert noise.std().item() == pytest.approx(0.2 * kernel.norm().item(), rel=0.05)


def test_negative_rho_never_follows_from_a_warm_up():
    radius = FollowLr(rho=0.6, rho_min=0.1)
    for lr in (0.0, 0.001, 0.01):
        assert radius.at(Moment(lr=lr, lr_min=0.01, lr_max=0.1)) == 0.1
    assert radius.at(Moment(lr=0.1, lr_min=0.01, lr_max=0.1)) == pytest.approx(0.6)
    assert radius.at(Moment(lr=0.055, lr_min=0.01, lr_max=0.1)) == pytest.approx(0.35)


def test_the_released_radius_of_rsam_rises_from_zero_in_the_warm_up():
    """configs/departure/official/rsam.yaml: 1.25 half-way up to 2.5, where GSAM's line would say 1.995."""
    radius = read("rsam", "official").point.radius
    rates = {"lr_min": 3e-5, "lr_max": 3e-3}
    for share in (0.0, 0.1, 0.5, 1.0):
        at = Moment(lr=share * 3e-3, warms_up=True, **rates)
        assert radius.at(at) == pytest.approx(2.5 * share)
    assert radius.at(Moment(lr=1.5e-3, **rates)) == pytest.approx(1.995, abs=1e-3)
    assert radius.at(Moment(lr=3e-5, **rates)) == pytest.approx(1.5)
