"""Translation through the engine: every method, shards and micro-batches in tokens, ranks, resume, evaluation."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import ROOT, command
from every import METHODS
from rig import CPU, Rig, config, rigged, weights
from safetensors.torch import load_file

from sam_repro.config.schema import Config
from sam_repro.engine.ranks import Ranks
from sam_repro.record.metrics import read, without_times
from sam_repro.runs.run import stored_runs

QUICK = ("plain", "asam", "gsam", "esam")
EACH = [m if m in QUICK else pytest.param(m, marks=pytest.mark.slow) for m in METHODS]
ELSEWHERE = ROOT / "tests" / "elsewhere"
WORDS = ["loop.batch_size=160", "loop.eval_batch=200", "base_optimizer.lr=0.05", "track=none",
         "augment.label_smoothing=0.1", "runtime.precision=fp32", "runtime.threads=1"]  # fmt: skip


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ELSEWHERE))


def rig_of(folder: Path, *words: str) -> Rig:
    from smallmt.task import Small

    c: Config = config(*WORDS, *words)
    c = replace(c, dataset=replace(c.dataset, root=str(folder)))
    task = Small(c, CPU)
    torch.manual_seed(0)
    return rigged(c, task.build().double(), task, Ranks(0, 1, CPU))


def trained(s: Rig, steps: int = 3) -> torch.Tensor:
    batches = s.task.train.batches(0, s.config.loop.batch_size, False)
    for step in range(steps):
        assert torch.isfinite(s(batches[step], 0, step).loss)
    return weights(s.state.model)


@pytest.mark.parametrize("method", EACH)
def test_every_method_takes_its_steps_and_again_the_same(method: str, tmp_path: Path) -> None:
    needs = ["method.ascent_batch=320"] if method == "sam_larger" else []
    words = [f"method={method}", *needs]
    found = trained(rig_of(tmp_path, *words))
    assert torch.isfinite(found).all()
    assert torch.equal(found, trained(rig_of(tmp_path, *words)))
    assert not torch.equal(found, weights(rig_of(tmp_path, *words).state.model))


@pytest.mark.parametrize("words", [[], ["method.m=80"]])
def test_micro_batches_are_weighted_by_their_tokens(words: list[str], tmp_path: Path) -> None:
    whole = trained(rig_of(tmp_path, "method=asam", *words))
    parts = trained(rig_of(tmp_path, "method=asam", "loop.micro_batch=24", *words))
    torch.testing.assert_close(parts, whole, rtol=0, atol=1e-11)


def test_a_step_is_the_gradient_of_the_mean_over_its_tokens(tmp_path: Path) -> None:
    s = rig_of(tmp_path, "method=plain", "base_optimizer.momentum=0", "base_optimizer.weight_decay=0")
    ids = s.task.train.batches(0, 160, False)[0]
    before = weights(s.state.model)
    batch = s.task.train.gather(ids, 0)
    tokens = int((batch.target_out != 1).sum())
    loss = s.task.losses(s.state.model(*s.task.inputs(batch)), batch).sum() / tokens
    gradients = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, list(s.state.model.parameters()))])
    outcome = s(ids, 0, 0)
    torch.testing.assert_close(weights(s.state.model), before - outcome.lr * gradients, rtol=0, atol=1e-12)
    torch.testing.assert_close(outcome.loss.double(), loss.detach(), rtol=0, atol=1e-6)


def test_sums_of_ranks_are_those_of_one(tmp_path: Path) -> None:
    task = rig_of(tmp_path).task
    model = task.build().eval()

    def sums(rank: int, ranks: int) -> torch.Tensor:
        each = [task.judge(model, model, batch) for batch in task.test.batches(60, rank, ranks)]
        return torch.stack(each).sum(0)

    with torch.no_grad():
        one, two = sums(0, 1), sums(0, 2) + sums(1, 2)
    torch.testing.assert_close(two, one, rtol=1e-6, atol=0)
    assert len(one) == task.judged
    scores = task.scores(one.tolist())
    assert set(scores) == {metric.name for metric in task.metrics if metric.name.startswith("test")}
    assert task.facts["signatures"]["bleu"].endswith("version:2.6.0")


def test_both_translates_the_validation_set_too(tmp_path: Path) -> None:
    """Each sentence against its own references, though both sets share one list of them."""
    test, valid, both = (
        rig_of(tmp_path, f"dataset.evaluate_on={split}").task for split in ("test", "validation", "both")
    )
    model = test.build().eval()

    def sums(task: Any, held: Any) -> torch.Tensor:
        return torch.stack([task.judge(model, model, batch) for batch in held.batches(60)]).sum(0)

    with torch.no_grad():
        torch.testing.assert_close(sums(both, both.test), sums(test, test.test), rtol=0, atol=0)
        torch.testing.assert_close(sums(both, both.validation), sums(valid, valid.test), rtol=0, atol=0)
    assert test.validation is valid.validation is None


def start(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    path = os.pathsep.join([str(ELSEWHERE), str(ROOT)])
    return subprocess.run(
        command(*WORDS, f"dataset.root={folder / 'text'}", "schedule.epochs=2", *words), cwd=folder,
        env=os.environ | {"PYTHONPATH": path} | env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.mark.slow
def test_a_run_is_resumed_to_the_bit_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    """About 15 s."""
    words = ["task=smallmt.task:Dropped", "method=sam"]
    done = start(tmp_path / "whole", *words)
    assert done.returncode == 0, done.stderr
    stopped = start(tmp_path / "parts", *words, STOP_AT_PASS="15")
    assert stopped.returncode == 75, stopped.stderr
    again = start(tmp_path / "parts", *words)
    assert again.returncode == 0, again.stderr
    (whole,), (parts,) = (stored_runs(tmp_path / name / "results") for name in ("whole", "parts"))
    assert whole.id == parts.id
    assert whole.weights.read_bytes() == parts.weights.read_bytes()
    assert [without_times(r) for r in read(parts.path)] == [without_times(r) for r in read(whole.path)]


@pytest.mark.slow
@pytest.mark.parametrize(("word", "one_id"), [("method.m=80", True), ("loop.micro_batch=40", False)])
def test_two_ranks_are_one_process(word: str, one_id: bool, tmp_path: Path) -> None:
    """About 15 s each. Without method.m the id can't know: if this task drew masks, they would be others."""
    found = []
    for ranks in ("1", "2"):
        done = start(tmp_path / ranks, "task=smallmt.task:Small", "method=sam", f"runtime.ranks={ranks}", word)
        assert done.returncode == 0, done.stderr
        (run,) = stored_runs(tmp_path / ranks / "results")
        found.append(run)
    assert (found[0].id == found[1].id) is one_id
    one, two = (load_file(run.weights) for run in found)
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_it_trains_in_half_precision(precision: str, tmp_path: Path) -> None:
    """About 7 s each."""
    words = ["task=smallmt.task:Dropped", "method=asam", f"runtime.precision={precision}"]
    done = start(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    (run,) = stored_runs(tmp_path / "results")
    losses = [record["train_loss"] for record in read(run.path) if record["kind"] == "epoch"]
    assert losses[1] < losses[0]


@pytest.mark.slow
def test_a_finished_run_translates_a_file_line_for_line(tmp_path: Path) -> None:
    """About 10 s."""
    done = start(tmp_path, "task=smallmt.task:Small", "method=plain")
    assert done.returncode == 0, done.stderr
    (run,) = stored_runs(tmp_path / "results")
    text = tmp_path / "text.de"
    text.write_text("Der Hund ruft Lu .\n\nOft sieht Lu die Katze .\u2028 !\n")

    def evaluate(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command("evaluate", f"run={run.id}", *words), cwd=tmp_path, capture_output=True, text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ELSEWHERE), str(ROOT)])},
        )  # fmt: skip

    before = sorted(path.name for path in run.path.iterdir())
    told = evaluate(f"translate={text}")
    assert told.returncode == 0, told.stderr
    lines = told.stdout.removesuffix("\n").split("\n")
    assert len(lines) == 3
    assert lines[1] == ""
    assert "2 of 2 sentences" in told.stderr
    assert sorted(path.name for path in run.path.iterdir()) == before
    text.write_bytes(b"ein\n\xff\n")
    for words, said in ((f"translate={text}", "text.de line 2 is no UTF-8"), ("translate=none", "no such file")):
        told = evaluate(words)
        assert told.returncode == 2
        assert said in told.stderr
