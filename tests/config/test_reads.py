"""Fields that a configuration does not read: refused where they are said, and never part of a run's id."""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from commands import ROOT
from omegaconf import OmegaConf

from sam_repro.config.compose import compose
from sam_repro.config.compose_many import compose_all
from sam_repro.config.identity import NOT_SCIENCE, run_id
from sam_repro.config.reads import ALWAYS, READ_BY, unread
from sam_repro.config.schema import BaseOptimizerConfig, Config, Optimizer
from sam_repro.errors import UserError

# What is said, and what the refusal must name beside the field.
UNREAD = {
    ("base_optimizer=adam", "base_optimizer.momentum=0.9"): "by adam: sgd and rmsprop read it",
    ("base_optimizer=adamw", "base_optimizer.nesterov=false"): "by adamw: sgd reads it",
    ("base_optimizer.beta1=0.9",): "by sgd: adam and adamw read it",
    ("base_optimizer=adam", "base_optimizer.alpha=0.99"): "rmsprop reads it",
    ("base_optimizer.eps=1e-8",): "rmsprop and adam and adamw",
    ("base_optimizer.weight_decay=0", "base_optimizer.decay_norm_and_bias=false"): "weight_decay above 0",
    ("augment=basic_cutout", "augment.mix_probability=0.5"): "augment.mixup or augment.cutmix",
    ("augment.randaugment_magnitude=9",): "augment.policy=randaugment",
    ("augment.policy=autoaugment_cifar", "augment.randaugment_ops=3"): "augment.policy=randaugment",
    ("augment.cutout_probability=0.5",): "augment.cutout above 0",
    ("schedule.warmup_start=0.1",): "schedule.warmup_epochs above 0",
    ("schedule=constant", "schedule.final=0.1"): "schedule.decay other than constant",
    ("schedule=constant", "schedule.per=epoch"): "a rate that changes",
    ("dataset.validation=0.2",): "dataset.evaluate_on=validation",
    ("dataset.label_noise.seed=1",): "dataset.label_noise.rate above 0",
    ("dataset.label_noise.include_true=true",): "dataset.label_noise.rate above 0",
    ("dataset.crop_share=0.875",): "dataset.stream=true",
    ("dataset=flowers102", "dataset.crop_share=0.875"): "dataset.fit=crop",
    ("dataset.fit=squash",): "image files",
    ("method=plain", "loop.batchnorm=both"): "several passes",
    ("method=sam", "loop.masks=independent"): "dropout",
    ("method=sam", "model=timm", "model.name=vit_tiny_patch16_224", "loop.masks=independent"): "dropout",
    ("method=lpf_sgd", "loop.batchnorm=both"): "several passes",
}  # fmt: skip
READ = [
    ("base_optimizer=rmsprop", "base_optimizer.eps=1e-6", "base_optimizer.momentum=0.5"),
    ("augment=inception_mixup_randaugment", "augment.mix_probability=0.5", "dataset=imagenet"),
    ("augment.policy=randaugment", "dataset.crop_share=0.875"),
    ("schedule=warmup_linear", "schedule.warmup_start=0.1", "schedule.final=0.1", "schedule.per=epoch"),
    ("method=gsam", "schedule=constant", "schedule.warmup_epochs=5", "schedule.final=0.1"),
    ("dataset.evaluate_on=validation", "dataset.validation=0.2"),
    ("dataset.evaluate_on=both", "dataset.validation=0.2"),
    ("dataset.label_noise.rate=0.4", "dataset.label_noise.seed=1", "dataset.label_noise.include_true=true"),
    ("dataset=folder", "dataset.classes=3", "dataset.crop_share=0.875"),
    ("method=lpf_sgd", "method.split=false", "loop.batchnorm=both"),
    ("method=sam", "model=wrn_16_8", "model.dropout=0.1", "loop.masks=independent"),
    ("method=sam", "model=timm", "model.name=convnext_tiny", "loop.masks=independent"),
]


@pytest.mark.parametrize("overrides", UNREAD, ids=" ".join)
def test_a_field_that_is_not_read_is_refused_with_the_reason(overrides: tuple[str, ...]) -> None:
    with pytest.raises(UserError) as caught:
        compose(overrides)
    key, message = overrides[-1].partition("=")[0], str(caught.value)
    assert message.startswith(f"{key} is not read ")
    assert UNREAD[overrides] in message
    assert "leave it out" in message
    assert str(compose_all([overrides])[overrides]) == message


@pytest.mark.parametrize("overrides", UNREAD, ids=" ".join)
def test_null_takes_back_what_is_said(overrides: tuple[str, ...]) -> None:
    key = overrides[-1].partition("=")[0]
    assert run_id(compose([*overrides, f"{key}=null"])) == run_id(compose(overrides[:-1]))


@pytest.mark.parametrize("overrides", READ, ids=" ".join)
def test_the_same_fields_are_taken_where_they_are_read(overrides: tuple[str, ...]) -> None:
    assert compose(overrides) == compose_all([overrides])[overrides]


def test_a_field_unsaid_has_the_value_that_the_schema_declares() -> None:
    config = compose([])
    assert config.base_optimizer == replace(BaseOptimizerConfig(), lr=0.1)
    assert run_id(compose(["base_optimizer.momentum=0.9", "base_optimizer.nesterov=false"])) == run_id(config)


def leaves(node: Any, prefix: str = "") -> set[str]:
    found = set[str]()
    for field in fields(node):
        value, key = getattr(node, field.name), prefix + field.name
        found |= leaves(value, f"{key}.") if is_dataclass(value) else {key}
    return found


def test_whatever_is_part_of_an_id_says_what_reads_it() -> None:
    """A new field fails here until `reads` has it. Models and methods declare theirs in their own rooms."""
    exempt = {key for key in NOT_SCIENCE if key.count(".") or key in leaves(Config())}
    elsewhere = {key for key in leaves(Config()) if key.startswith(("model.", "method.", "track."))}
    assert leaves(Config()) - elsewhere - exempt == ALWAYS | READ_BY.keys()
    assert not ALWAYS & READ_BY.keys()


def test_a_field_that_is_not_read_is_no_part_of_the_id() -> None:
    """However the configuration came to be: a record of an older run may hold such values."""
    adam = compose(["base_optimizer=adam"])
    other = replace(adam, base_optimizer=replace(adam.base_optimizer, momentum=0.5, nesterov=True, alpha=0.1))
    assert run_id(other) == run_id(adam)
    assert {"base_optimizer.momentum", "base_optimizer.nesterov", "base_optimizer.alpha"} <= unread(adam).keys()
    sgd = replace(other, base_optimizer=replace(other.base_optimizer, name=Optimizer.sgd))
    assert run_id(sgd) != run_id(compose(["base_optimizer.lr=1e-3", "base_optimizer.weight_decay=1e-4"]))


def test_the_ids_of_the_ledger_are_made_of_their_configurations() -> None:
    lines = [json.loads(line) for line in Path(ROOT, "results", "ledger.jsonl").read_text().splitlines()]
    assert lines
    schema = OmegaConf.structured(Config)
    for line in lines:
        config = OmegaConf.to_object(OmegaConf.merge(schema, line["config"]))
        assert isinstance(config, Config)
        assert run_id(config) == line["run_id"]


NONSENSE = {
    ("base_optimizer.lr=0",): "base_optimizer.lr must be positive",
    ("augment.crop=32",): "augment.crop is 32 and must be below dataset.image_size=32",
    ("augment.cutout=64",): "augment.cutout is 64",
    ("augment.cutout=15",): "augment.cutout must be even",
    ("augment=basic_cutout", "augment.cutout_probability=0"): "augment.cutout_probability must be above 0",
    ("augment.mixup=1", "augment.mix_probability=0"): "augment.mix_probability must be above 0",
    ("method=gsam", "schedule=constant"): "method.radius is follow_lr, which needs a learning rate that moves",
    ("schedule.final=1",): "schedule.final must be at least 0 and below 1",
    ("schedule.warmup_epochs=2", "schedule.warmup_start=1"): "schedule.warmup_start must be at least 0 and below 1",
}  # fmt: skip


@pytest.mark.parametrize("overrides", NONSENSE, ids=" ".join)
def test_what_would_train_nonsense_is_refused(overrides: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match=re.escape(NONSENSE[overrides])):
        compose(overrides)
