"""The arithmetic of a plan's estimates, on cases small enough to do by hand."""

import pytest

from sam_repro.config.compose import compose
from sam_repro.config.schema import Config
from sam_repro.errors import UserError
from sam_repro.models.cost import lookup
from sam_repro.tables.cost import cost, train_images

CIFAR = ("dataset=cifar10", "model=resnet20", "schedule.epochs=3", "schedule.plain_epochs=null", "loop.batch_size=100")


def config(*overrides: str) -> Config:
    return compose([*CIFAR, *overrides])


@pytest.mark.parametrize(
    ("overrides", "passes"),
    [
        (("method=plain",), 1),
        (("method=sam",), 2),
        (("method=asam",), 2),
        (("method=lpf_sgd",), 8),
        (("method=sam_full",), 501),
        (("method=sam", "method.fraction=0.5"), 1.5),
    ],
    ids=str,
)
def test_passes(overrides: tuple[str, ...], passes: float) -> None:
    found = cost(config(*overrides))
    assert found.steps == 3 * 500
    assert found.passes == pytest.approx(1500 * passes)


def test_flops_are_six_a_multiply_add_a_pass_an_image() -> None:
    c = config("method=sam")
    model = lookup(c.model, 10, 32)
    assert model is not None
    assert cost(c).flops == pytest.approx(1500 * 2 * 100 * 6 * model.macs)


def test_hours_follow_the_device_and_the_precision() -> None:
    wide = compose(["dataset=cifar10", "model=wrn_28_10", "loop.batch_size=128", "method=sam"])
    half, single = (
        cost(wide),
        cost(
            compose(
                ["dataset=cifar10", "model=wrn_28_10", "loop.batch_size=128", "method=sam", "runtime.precision=fp32"]
            )
        ),
    )
    hours = {device: half.hours(device) for device in ("a100", "h100", "cpu")}
    assert hours["h100"] < hours["a100"] < hours["cpu"]
    assert single.hours("a100") == pytest.approx(hours["a100"] * 312 / 19.5)
    with pytest.raises(UserError, match="a1000"):
        half.hours("a1000")


def test_small_nets_are_bound_by_launches() -> None:
    """Half the batch takes as many FLOPs in all, in twice as many passes: twice the time where launches decide."""
    narrow, wide = cost(config("method=sam")), cost(config("method=sam", "loop.batch_size=50"))
    assert wide.flops == pytest.approx(narrow.flops)
    assert wide.hours("a100") == pytest.approx(2 * narrow.hours("a100"))


def test_images_after_subset_validation_and_budget() -> None:
    assert train_images(config()) == 50_000
    assert train_images(config("dataset.train_images=10000")) == 10_000
    assert train_images(config("dataset.evaluate_on=validation", "dataset.validation=0.2")) == 40_000
    assert train_images(config("budget=mini")) == 10_000


def test_smoke_budget_is_two_steps() -> None:
    assert cost(config("budget=smoke", "method=sam")).steps == 2


def test_memory_grows_with_what_is_kept() -> None:
    need = {name: cost(config(f"method={name}")).memory_gb for name in ("plain", "sam", "fsam")}
    assert need["plain"] < need["sam"] < need["fsam"]
    assert cost(config("method=sam", "loop.micro_batch=10")).memory_gb < need["sam"]
