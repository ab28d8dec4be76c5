"""A run that starts from a file of weights is known by what was in the file when the run was made."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf

from sam_repro.config.compose import compose
from sam_repro.config.identity import as_values, run_id
from sam_repro.config.schema import Config
from sam_repro.errors import UserError
from sam_repro.models import build


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "start.pth"
    save(file, 0)
    return file


def save(file: Path, seed: int) -> None:
    torch.manual_seed(seed)
    torch.save(build(compose([]).model, 10, 32).state_dict(), file)


def test_the_id_is_that_of_the_bytes_and_not_of_the_place(file: Path, tmp_path: Path) -> None:
    config = compose([f"model.weights={file}"])
    assert config.model.weights_sha256 == sha256(file.read_bytes()).hexdigest()
    moved = file.rename(tmp_path / "elsewhere.pth")
    assert run_id(compose([f"model.weights={moved}"])) == run_id(config)
    save(moved, 1)
    assert run_id(compose([f"model.weights={moved}"])) != run_id(config)


def test_a_file_that_is_gone_or_replaced_changes_no_id_of_a_run_that_exists(file: Path) -> None:
    config = compose([f"model.weights={file}"])
    name, stored = run_id(config), OmegaConf.create(as_values(config))
    save(file, 1)
    assert run_id(config) == name
    file.unlink()
    assert run_id(config) == name
    restored = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Config), stored))
    assert isinstance(restored, Config)
    assert run_id(restored) == name


def test_a_file_replaced_since_the_run_was_made_is_noticed(file: Path) -> None:
    config = compose([f"model.weights={file}"])
    build(config.model, 10, 32)
    save(file, 1)
    with pytest.raises(UserError, match=r"^model\.weights=\S+ is not the file that the run was made with"):
        build(config.model, 10, 32)
    build(replace(config.model, weights_sha256=None), 10, 32)


def test_a_digest_without_a_file_is_refused() -> None:
    with pytest.raises(UserError, match=r"^model\.weights_sha256 goes with model\.weights"):
        compose(["model.weights_sha256=0a"])
