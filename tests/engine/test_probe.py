"""The probe of a step's perturbation: it finds what there is, and changes nothing."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from commands import TINY, Cli
from every import METHODS, of
from rig import Rig, buffers, config, net, stepper, train, weights
from test_gradient_passes import Overflowing, same_state
from torch import Tensor

from sam_repro.engine.probe import NAMES, means
from sam_repro.record.metrics import read


def found(s: Rig, steps: int = 1) -> dict[str, float]:
    """Of the last of these steps."""
    return dict(means(train(s, steps, probe=True)[-1].probed))


QUICK = [["method=sam", "loop.batchnorm=last"], ["method=fsam", "runtime.precision=fp16"], ["method=looksam"]]
SLOW = [[*of(method), f"runtime.precision={precision}"] for method in METHODS for precision in ("fp32", "fp16")]


@pytest.mark.parametrize("words", [*QUICK, *(pytest.param(words, marks=pytest.mark.slow) for words in SLOW)], ids=str)
def test_a_probed_training_is_the_same_to_the_bit(words: list[str]) -> None:
    ends = []
    for probe in (False, True):
        n = net(torch.float32, dropout=0.3)
        s = stepper(config(*words, "loop.micro_batch=12"), n)
        outcomes = train(s, 3, probe)
        gradients = dict(enumerate(p.grad for p in s.parameters))
        momenta = s.optimizer.state_dict()["state"]
        state = {0: s.method.state_dict(), 1: momenta, 2: gradients, 3: s.scale.state_dict()}
        ends.append(([*(o.loss for o in outcomes), weights(n), buffers(n), torch.get_rng_state()], state))
        assert [bool(o.probed) for o in outcomes] == [probe] * 3
    (plain, before), (probed, after) = ends
    assert all(torch.equal(a, b) for a, b in zip(plain, probed, strict=True))
    assert same_state(before, after)


def by_hand(s: Rig, ids: Tensor) -> Tensor:
    """The mean gradient of these examples of the first epoch, by one backward pass."""
    batch = s.data.gather(ids, 0)
    loss = s.task.losses(s.state.model(*s.task.inputs(batch)), batch).mean()
    return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, s.parameters)])


def angle(a: Tensor, b: Tensor) -> float:
    return float(torch.nn.functional.cosine_similarity(a, b, dim=0))


@pytest.mark.parametrize("m", [None, 8])
def test_the_cosines_are_those_by_hand(m: int | None) -> None:
    s = stepper(config("method=sam", f"method.m={'null' if m is None else m}", "augment=none"), net(norm=False))
    full, ids = by_hand(s, s.data.order(0)), s.data.order(0)[:16]
    shards = [by_hand(s, part) for part in ids.split(m or 16)]
    seen = found(s)
    cosine = sum(angle(g, full) for g in shards) / len(shards)
    assert seen["ascent_cosine"] == pytest.approx(cosine, rel=1e-6)
    assert seen["gradient_cosine"] == pytest.approx(cosine, rel=1e-6)
    left = sum(math.sqrt(1 - angle(g, full) ** 2) for g in shards) / len(shards)
    assert seen["noise_cosine"] == pytest.approx(left, rel=1e-6)


def test_a_perturbation_is_what_its_method_says() -> None:
    seen = {m: found(stepper(config(*of(m)), net()), 2) for m in ("plain", "sam", "fsam", "sam_full", "sam_noise")}
    assert list(seen["plain"]) == ["gradient_cosine"], "it perturbs nothing"
    assert seen["sam_full"]["ascent_cosine"] == pytest.approx(1)
    assert seen["sam_full"]["noise_cosine"] == pytest.approx(0, abs=1e-6)
    assert seen["sam_noise"]["ascent_cosine"] == pytest.approx(0, abs=1e-6)
    assert seen["sam_noise"]["noise_cosine"] == pytest.approx(1)
    assert 0 < seen["fsam"]["ascent_cosine"] < seen["sam"]["ascent_cosine"] < 1
    whole = found(stepper(config("method=sam", "loop.batch_size=64"), net()))
    assert whole == {name: pytest.approx(1) for name in NAMES[:2]}, "a batch of all data has no noise"


@pytest.mark.parametrize("overflows", [1, 5])  # in the full gradient, in the batch's
def test_a_gradient_that_overflows_is_no_probe_and_no_skipped_step(overflows: int) -> None:
    n = Overflowing(net(torch.float32), {overflows})
    s = stepper(config("method=sam", "runtime.precision=fp16"), n)
    (outcome,) = train(s, 1, probe=True)
    assert (outcome.skipped, means(outcome.probed)) == (False, {})
    assert n.count > overflows
    assert found(s)["ascent_cosine"] < 1


def test_a_run_records_it_and_is_the_same_run_with_the_same_weights(tmp_path: Path, cli: Cli) -> None:
    words = [*TINY, "method=fsam", "track.every=1"]
    plain = cli(*words, "results_dir=plain")
    probed = cli(*words, "results_dir=probed", "loop.probe_steps=2")
    assert (plain.returncode, probed.returncode) == (0, 0), (plain.stderr, probed.stderr)
    (one,), (other,) = ((tmp_path / name / "runs").iterdir() for name in ("plain", "probed"))
    assert one.name == other.name
    assert (one / "weights.safetensors").read_bytes() == (other / "weights.safetensors").read_bytes()
    before, after = list(read(one)), list(read(other))
    times = {"time", "seconds", "images_per_s"}
    for a, b in zip(before, after, strict=True):
        cosines = {name: b.pop(name) for name in NAMES if name in b}
        assert set(cosines) == (set(NAMES) if b["kind"] == "epoch" else set())
        assert all(-1 <= value <= 1 for value in cosines.values())
        assert {k: v for k, v in a.items() if k not in times} == {k: v for k, v in b.items() if k not in times}
    summaries = [json.loads((run / "summary.json").read_text()) for run in (one, other)]
    assert summaries[0]["passes"] == summaries[1]["passes"], "they are the method's"
