"""profile=official changes the method and the recipe, gives way to what the user says, and is never silently empty."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sam_repro.config.compose import compose
from sam_repro.config.identity import run_id
from sam_repro.config.profile import DEPARTURES
from sam_repro.config.schema import BatchNorm, Loss, Unit
from sam_repro.errors import UserError


@pytest.mark.parametrize(
    "overrides",
    [
        ["method=sam"],
        ["method=looksam"],
        ["+experiment=rsam_cifar10_resnet18", "method=sam"],
        ["+experiment=rsam_cifar10_resnet18"],
        ["+experiment=rsam_cifar100_resnet18"],
        ["+experiment=asam_cifar10_resnet20", "schedule=cosine", "method=sam"],
    ],
)
def test_where_it_changes_nothing_it_is_refused(overrides: list[str]) -> None:
    with pytest.raises(UserError, match=r"^profile=official changes nothing for method=\w+ with schedule=\w+: "):
        compose([*overrides, "profile=official"])


@pytest.mark.parametrize("file", sorted((DEPARTURES / "recipe" / "official").glob("*.yaml")), ids=lambda f: f.stem)
def test_a_recipes_departure_changes_its_recipe(file: Path) -> None:
    said = [f"schedule={file.stem}", "method=sam"]
    assert run_id(compose([*said, "profile=official", *_readable(file)])) != run_id(compose([*said, *_readable(file)]))


def _readable(file: Path) -> list[str]:
    """What the recipes have that the default run lacks, so that every departure is read."""
    departs = yaml.safe_load(file.read_text())
    cutout = ["augment.cutout=16"] if "cutout_probability" in departs.get("augment", {}) else []
    return cutout + (["base_optimizer=adam"] if "base_optimizer" in departs else [])


@pytest.mark.parametrize(
    "file", sorted((DEPARTURES / "exception" / "official").glob("*/*.yaml")), ids=lambda f: f"{f.parent.name}/{f.stem}"
)
def test_an_exception_is_one_to_its_recipe(file: Path) -> None:
    assert (DEPARTURES / "recipe" / "official" / f"{file.parent.name}.yaml").exists()
    compose([f"schedule={file.parent.name}", f"method={file.stem}", "profile=official"])


def test_a_method_of_one_pass_takes_the_recipe_without_what_two_passes_are_asked() -> None:
    experiment = ["+experiment=asam_cifar10_resnet20", "method=plain", "profile=official"]
    config = compose(experiment)
    assert (config.schedule.per, config.loop.drop_last) == (Unit.epoch, False)
    with pytest.raises(UserError, match=r"loop\.batchnorm is not read here"):
        compose([*experiment, "loop.batchnorm=both"])


def test_what_the_user_says_goes_before_it() -> None:
    said = ["loop.batchnorm=last", "method.eta=0.02"]
    config = compose(["+experiment=asam_cifar10_resnet20", "profile=official", *said])
    assert (config.loop.batchnorm, config.method.eta) == (BatchNorm.last, 0.02)
    vit = ["+experiment=rsam_imagenet_vit_b16", "profile=official"]
    assert compose(vit).loop.loss is Loss.sigmoid
    assert compose([*vit, "loop.loss=softmax"]).loop.loss is Loss.softmax
