"""The learning rate, step by step, against the formulas."""

from __future__ import annotations

import math

import pytest
import torch
from rig import config, net, stepper

from sam_repro.config.budget import epochs, warmup_epochs, warmup_steps
from sam_repro.config.compose import compose
from sam_repro.config.schema import Decay, ScheduleConfig, Unit
from sam_repro.engine.schedule import Schedule


def schedule(decay: Decay, **kwargs: object) -> Schedule:
    warmup = kwargs.pop("warmup_epochs", 0.0)
    return Schedule(ScheduleConfig(decay=decay, **kwargs), 0.1, 10, 20, warmup)  # type: ignore[arg-type]


def test_cosine_by_step_and_by_epoch() -> None:
    by_step, by_epoch = schedule(Decay.cosine), schedule(Decay.cosine, per=Unit.epoch)
    for step in (0, 7, 100, 199):
        assert by_step.lr(step) == pytest.approx(0.05 * (1 + math.cos(math.pi * step / 200)), rel=1e-12)
        assert by_epoch.lr(step) == pytest.approx(0.05 * (1 + math.cos(math.pi * (step // 10) / 20)), rel=1e-12)
    assert by_step.lr(200) == pytest.approx(0, abs=1e-12)


def test_warmup_then_linear_cosine_or_inverse_root() -> None:
    for decay in (Decay.linear, Decay.cosine, Decay.inverse_sqrt):
        s = schedule(decay, warmup_epochs=5.0, warmup_start=0.1, final=0.01)
        assert s.lr(0) == pytest.approx(0.01)
        assert s.lr(25) == pytest.approx(0.1 * (0.1 + 0.9 * 0.5))
        assert s.lr(50) == pytest.approx(0.1)
        assert all(s.lr(i) >= s.lr(i + 1) for i in range(50, 199))
    assert schedule(Decay.linear, warmup_epochs=5.0).lr(125) == pytest.approx(0.05)
    assert schedule(Decay.cosine, warmup_epochs=5.0, final=0.2).lr(200) == pytest.approx(0.02)
    assert schedule(Decay.inverse_sqrt, warmup_epochs=5.0).lr(200) == pytest.approx(0.1 * math.sqrt(50 / 200))


def test_trap_the_scheduler_drives_the_base_optimizer() -> None:
    """A step is as long as the schedule says: the base optimizer's own groups get the rate, every step."""
    s = stepper(config("method=sam", "base_optimizer=sgd_plain", "schedule=cosine"), net())
    for step in (0, 7, 30):
        outcome = s(torch.arange(16), 0, step)
        assert [g["lr"] for g in s.optimizer.param_groups] == [outcome.lr] == [s.schedule.lr(step)]


def test_constant_and_the_moment() -> None:
    s = schedule(Decay.constant)
    assert {s.lr(i) for i in range(200)} == {0.1}
    moment = schedule(Decay.cosine, final=0.1).at(100)
    assert (moment.step, moment.progress, moment.lr_max, moment.lr_min) == (100, 0.5, 0.1, pytest.approx(0.01))


def test_a_warmup_by_epoch_loses_no_epoch_to_a_rate_of_zero() -> None:
    s = schedule(Decay.cosine, warmup_epochs=5.0, per=Unit.epoch)
    assert [s.lr(10 * epoch) for epoch in range(6)] == pytest.approx([0.02, 0.04, 0.06, 0.08, 0.1, 0.1])
    assert s.lr(9) == s.lr(0)


def test_a_budget_scales_epochs_and_warmup_alike() -> None:
    c = compose(["schedule=warmup_cosine", "schedule.epochs=100", "schedule.warmup_epochs=10", "budget.epochs=0.1"])
    assert epochs(c) == 10
    assert warmup_epochs(c) == 1.0


def test_plain_runs_may_have_their_own_epochs_and_smoke_caps_the_batch() -> None:
    for method, expected in (("plain", 400), ("sam", 200), ("asam", 200)):
        assert epochs(compose([f"method={method}", "schedule=asam_cifar"])) == expected
    c = compose(["budget=smoke", "loop.batch_size=4096", "loop.micro_batch=512", "method.m=64"])
    assert (c.loop.batch_size, c.loop.micro_batch, c.method.m) == (8, 8, 1)


def test_a_moment_says_whether_the_rate_warms_up() -> None:
    for per in Unit:
        s = Schedule(ScheduleConfig(per=per), 1.0, 10, 4, warmup_epochs=2.0)
        assert [s.at(step).warms_up for step in (0, 19, 20, 39)] == [True, True, False, False], per
    assert not Schedule(ScheduleConfig(), 1.0, 10, 4).at(0).warms_up


def test_a_warmup_in_steps_is_as_long_as_the_recipe_says_and_scales_with_the_run() -> None:
    """fairseq's inverse_sqrt: peak min(t / w, sqrt(w / t)) after t of w steps of warm-up."""
    c = compose(["schedule=asam_iwslt14", "base_optimizer.lr=5e-4"])
    s = Schedule(c.schedule, 5e-4, 1100, epochs(c), warmup_epochs(c), warmup_steps(c))
    for step in (0, 1000, 4000, 16_000, 49_000):
        assert s.lr(step) == pytest.approx(5e-4 * min(step / 4000, math.sqrt(4000 / max(1, step)))), step
    assert s.at(3999).warms_up
    assert not s.at(4000).warms_up
    assert warmup_steps(compose(["schedule=asam_iwslt14", "schedule.epochs=40", "budget.epochs=0.1"])) == 400
    assert warmup_steps(compose([])) is None
