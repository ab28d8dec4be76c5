"""What must be set before CUDA starts is, wherever a device is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from commands import TINY

from sam_repro.config.compose import compose
from sam_repro.engine.setup import prepare
from sam_repro.evaluate import evaluations
from sam_repro.runs.run import Run
from sam_repro.train import train

NAMES = ("NCCL_NVLS_ENABLE", "NCCL_COLLNET_ENABLE", "CUBLAS_WORKSPACE_CONFIG")
WANTED = ("0", "0", ":4096:8")


class Asked(BaseException):
    """The first question about CUDA ends the test; it carries what stood in the environment."""


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in NAMES:
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)
    yield
    prepare(compose(["runtime.threads=1"]).runtime, 0, 1)


@pytest.fixture
def asked(clean: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def first() -> bool:
        raise Asked(tuple(os.environ.get(name) for name in NAMES))

    monkeypatch.setattr(torch.cuda, "is_available", first)


def test_bitwise_training_has_told_nccl_and_cublas_before_cuda_starts(tmp_path: Path, asked: None) -> None:
    config = compose([*TINY, "runtime.determinism=bitwise", f"results_dir={tmp_path}"])
    with pytest.raises(Asked) as found:
        train(Run.of(config), config)
    assert found.value.args[0] == WANTED


def test_an_evaluation_too(tmp_path: Path, asked: None) -> None:
    config = compose([*TINY, "runtime.determinism=bitwise", f"results_dir={tmp_path}"])
    with pytest.raises(Asked) as found:
        evaluations(config, Run.of(config), ["embedded"])
    assert found.value.args[0] == WANTED


def test_a_setting_of_the_users_that_is_not_fixed_gives_way(clean: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from sam_repro.engine.setup import before_cuda

    monkeypatch.setenv("NCCL_NVLS_ENABLE", "1")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    before_cuda(compose(["runtime.determinism=seeded"]).runtime)
    assert os.environ["NCCL_NVLS_ENABLE"] == "1"
    before_cuda(compose(["runtime.determinism=bitwise"]).runtime)
    assert [os.environ[name] for name in NAMES] == ["0", "0", ":16:8"]


@pytest.mark.parametrize("determinism", ["off", "seeded", "bitwise"])
def test_an_evaluation_prepares_the_device_as_training_does(
    tmp_path: Path, clean: None, monkeypatch: pytest.MonkeyPatch, determinism: str
) -> None:
    """TF32 rounds an fp32 model's products to ten bits; the run's own evaluations did not, unless it was `off`."""
    config = compose([*TINY, f"runtime.determinism={determinism}", f"results_dir={tmp_path}"])
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = determinism != "off"

    def weights(*_: object) -> None:
        raise Asked(
            torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.benchmark,
            torch.are_deterministic_algorithms_enabled(),
        )  # fmt: skip

    monkeypatch.setattr("safetensors.torch.load_file", weights)
    with pytest.raises(Asked) as found:
        evaluations(config, Run.of(config), ["embedded"])
    off = determinism == "off"
    assert found.value.args == (off, off, off, determinism == "bitwise")
