"""Shipped models by their id, composed as a run composes them: the schema's defaults under the file."""

from collections.abc import Callable

import pytest
from omegaconf import OmegaConf

from sam_repro import CONFIGS
from sam_repro.models.catalog import ModelConfig

Shipped = Callable[..., ModelConfig]


@pytest.fixture(scope="session")
def shipped() -> Shipped:
    def load(model: str, /, **changes: object) -> ModelConfig:
        file = OmegaConf.load(CONFIGS / "model" / f"{model}.yaml")
        merged = OmegaConf.merge(OmegaConf.structured(ModelConfig), file, OmegaConf.create(dict(changes)))
        config = OmegaConf.to_object(merged)
        assert isinstance(config, ModelConfig)
        return config

    return load
