"""The paths of a GPU run, on one that has no values (fake_gpu.py): a tensor on the wrong device is an error."""

from __future__ import annotations

import pytest
import torch
from every import METHODS, of
from fake_gpu import GPU, FakeGpu, fake_gpu
from rig import SAMPLES, Net, Rig, config, rigged, train

from sam_repro.config.schema import Config
from sam_repro.data.memory import MemoryEval, MemoryTrain
from sam_repro.data.on_device import Normalise, OnDevice
from sam_repro.data.pictures import ArrayPictures, Tally
from sam_repro.data.preprocess import evaluation, training
from sam_repro.data.sets import Data, EvalData, TrainData
from sam_repro.data.stream import StreamEval, StreamTrain
from sam_repro.data.workers import Pool
from sam_repro.engine.evaluate import evaluate
from sam_repro.engine.ranks import Ranks
from sam_repro.tasks.classification.task import Classification

ALONE = Ranks(0, 1, GPU)
IMAGES = torch.randint(0, 256, (SAMPLES, 3, 32, 32), dtype=torch.uint8)
LABELS = torch.arange(SAMPLES) % 10
EVERYTHING = ["augment.crop=4", "augment.flip=true", "augment.cutout=16"]
MIXING = [*EVERYTHING, "augment.mixup=0.2", "augment.cutmix=1.0"]


def task(c: Config, stream: bool = False) -> Classification:
    normalise = Normalise([0.5] * 3, [0.5] * 3, GPU)
    on_device = OnDevice(c.augment, normalise, 0, 10)
    train_set: TrainData = MemoryTrain(IMAGES, LABELS, on_device, GPU)
    held: EvalData = MemoryEval(IMAGES, LABELS, normalise, GPU)
    if stream:
        transform, pictures = training(c.dataset, on_device.augment), ArrayPictures(IMAGES)
        train_set = StreamTrain(pictures, LABELS, transform, on_device, Tally(False), Pool(0, GPU), GPU)
        held = StreamEval(pictures, LABELS, evaluation(c.dataset), normalise, Tally(False), Pool(0, GPU), GPU)
    return Classification(c, Data(train_set, held, 10, {}))


def on_gpu(c: Config, stream: bool = False) -> Rig:
    layout = torch.channels_last if c.runtime.channels_last else torch.contiguous_format
    return rigged(c, Net().to(memory_format=layout).to(GPU), task(c, stream), ALONE)


def trained(*overrides: str, stream: bool = False, steps: int = 2) -> FakeGpu:
    c = config(*overrides)
    with fake_gpu() as gpu:
        s = on_gpu(c, stream)
        gpu.forget()
        train(s, steps)
        for p in s.parameters:
            assert p.device == GPU
            assert p.grad is not None
            assert p.grad.device == GPU
    return gpu


@pytest.mark.parametrize("method", METHODS)
def test_every_method_steps_on_the_device_without_waiting_for_it(method: str) -> None:
    """A logged step fetches what it logs, later and all at once."""
    c = config(*of(method), *EVERYTHING, "runtime.precision=bf16", "runtime.channels_last=true")
    with fake_gpu() as gpu:
        s = on_gpu(c)
        train(s, 1)
        gpu.forget()
        s(s.data.order(0)[16:32], 0, 1, log=False)
    assert +gpu.waits == {}
    assert gpu.calls["aten::convolution"]
    # A norm is one call a kind of parameter, however many there are; an inner product is one a parameter.
    products = {"gsam": 1, "rgsam": 1, "sam_noise": 1}.get(method, 0)
    assert gpu.calls["aten::dot"] == products * len(s.parameters)
    assert gpu.calls["aten::_foreach_norm"] <= 3


@pytest.mark.parametrize(
    ("method", "passes"),
    [(["method=plain"], 1), (["method=sam", "method.m=8"], 4), (["method=lpf_sgd"], 8), (["method=sam_noise"], 3)],
)
def test_in_fp16_a_pass_waits_once(method: list[str], passes: int) -> None:
    c = config(*method, "runtime.precision=fp16", "loop.micro_batch=8")
    with fake_gpu() as gpu:
        s = on_gpu(c)
        train(s, 1)
        gpu.forget()
        out = s(s.data.order(0)[16:32], 0, 1, log=False)
    assert not out.skipped
    assert +gpu.waits == {"a value fetched": passes}


@pytest.mark.parametrize(
    "overrides",
    [
        ["method=fsam", "runtime.precision=fp16", "method.m=8", "loop.micro_batch=4"],
        ["method=asam", "runtime.precision=fp32", "loop.micro_batch=4", "loop.clip_norm=1", "loop.batchnorm=both"],
        ["method=gsam", "runtime.precision=fp16", "base_optimizer=adamw", "loop.batchnorm=last"],
        ["method=fsam", "method.m=8", "method.ema_shared=true", "method.ema_order=subtract_first"],
    ],
)
def test_every_precision_with_shards_micro_batches_and_other_optimizers(overrides: list[str]) -> None:
    trained(*overrides)


@pytest.mark.parametrize("augment", [EVERYTHING, MIXING], ids=["augmented", "mixed"])
@pytest.mark.parametrize("stream", [False, True], ids=["memory", "stream"])
def test_inputs_of_both_kinds_arrive_on_the_device(stream: bool, augment: list[str]) -> None:
    assert +trained("method=sam_db", *augment, "runtime.precision=bf16", stream=stream, steps=1).waits == {}


@pytest.mark.parametrize("stream", [False, True], ids=["memory", "stream"])
def test_an_evaluation_runs_on_the_device_and_fetches_its_sums_once(stream: bool) -> None:
    c = config("method=plain")
    with fake_gpu() as gpu:
        n, t = Net().to(GPU), task(c, stream)
        gpu.forget()
        found = evaluate(n, t, c, ALONE)
    assert set(found) == {"test_loss", "test_accuracy", "test_top5"}
    assert gpu.waits == {"values fetched": 1}


def test_a_tensor_that_was_left_on_the_host_is_an_error() -> None:
    c = config("method=sam")
    with fake_gpu():
        s = on_gpu(c)
        s.data.targets = LABELS  # type: ignore[attr-defined]
        with pytest.raises(RuntimeError, match="device"):
            train(s, 1)


def test_what_makes_the_host_wait_is_counted() -> None:
    with fake_gpu() as gpu:
        x = torch.zeros(3, device=GPU)
        gpu.forget()
        x.to(torch.float16).add_(torch.ones(3, device=GPU))
        torch.ones(3).pin_memory().to(GPU, non_blocking=True)
        assert not gpu.waits
        bool(x.sum() > 0)
        torch.tensor([1.0, 2.0], device=GPU)
        x.copy_(torch.ones(3))
        x.cpu()
        x.tolist()
    assert gpu.waits == {
        "a value fetched": 1,
        "a copy to the device": 2,
        "a copy from the device": 1,
        "values fetched": 1,
    }
