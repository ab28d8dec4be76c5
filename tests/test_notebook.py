"""What a notebook sees of runs: those that ended, failed or train, and the weights that they kept."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from commands import TINY, Cli
from report.samples import epochs, made, write_run

import sam_repro
from sam_repro.config.compose import compose
from sam_repro.errors import UserError
from sam_repro.runs import compare, ledger
from sam_repro.runs.compare import collect, labels
from sam_repro.runs.lease import Watch
from sam_repro.runs.outcome import objective
from sam_repro.runs.run import Run


def test_runs_of_every_state_in_one_frame(tmp_path: Path) -> None:
    sam = made(tmp_path, "method=sam", "seed=1", top=70.0)
    slow = made(tmp_path, "method=sam", "seed=1", "base_optimizer.lr=0.01")
    made(tmp_path, "method=asam")
    unfinished = replace(compose(["method=fsam"]), results_dir=str(tmp_path))
    for seed, state in ((7, "failed"), (8, "")):
        run = Run.of(replace(unfinished, seed=seed))
        write_run(run.path, replace(unfinished, seed=seed), epochs(30.0, seed)[:3])
        run.done.unlink()
        lease = Watch().acquire(run)
        assert lease is not None
        if state:
            lease.end(state, "out of memory")
    (tmp_path / "runs" / "empty").mkdir()
    frame = sam_repro.load_runs(tmp_path)
    assert list(frame["method"]) == ["sam", "sam", "asam", *frame["method"][3:]]
    assert sorted(frame["status"]) == ["done", "done", "done", "failed", "missing", "running"]
    first = frame[frame["run"] == sam.id].iloc[0]
    assert (first["test_accuracy_best"], first["test_accuracy_best_epoch"], first["base_optimizer.lr"]) == (
        70.0,
        11,
        0.1,
    )
    assert first["seconds"] == 60.0
    assert frame[frame["status"] == "failed"].iloc[0]["note"] == "out of memory"
    assert "base_optimizer.momentum" not in frame.columns, "in which they do not differ"
    assert list(sam_repro.load_runs(tmp_path, **{"base_optimizer.lr": 0.01})["run"]) == [slow.id]
    assert list(sam_repro.load_runs(tmp_path, method="sam", status="done")["seed"]) == [1, 1]
    assert list(sam_repro.load_runs(tmp_path, dataset="cifar10")) == []
    with pytest.raises(UserError, match="Did you mean 'method'"):
        sam_repro.load_runs(tmp_path, methd="sam")


@pytest.mark.slow
def test_three_statistics_of_a_run_that_judges_on_both_splits(cli: Cli, tmp_path: Path) -> None:
    """About 10 s. It trains as with the validation split alone, and has that run's values on it."""
    both, held = (
        cli(*TINY, f"dataset.evaluate_on={split}", f"results_dir={split}") for split in ("both", "validation")
    )
    assert both.returncode == held.returncode == 0, both.stderr + held.stderr
    (one,), (other,) = (list(collect(tmp_path / split)) for split in ("both", "validation"))
    assert one.run.id != other.run.id
    assert one.run.weights.read_bytes() == other.run.weights.read_bytes()
    mine, its = sam_repro.open_run(one.run.path).curves, sam_repro.open_run(other.run.path).curves
    assert list(mine["validation_accuracy"]) == list(its["test_accuracy"])
    assert list(mine["validation_loss"]) == list(its["test_loss"])
    values = one.results["test_accuracy"]
    epoch = int(mine["epoch"][mine["validation_accuracy"].idxmax()])
    assert values["picked_epoch"] == one.results["validation_accuracy"]["best_epoch"] == epoch
    assert values["picked"] == mine["test_accuracy"][epoch - 1]
    assert "picked" not in other.results["test_accuracy"]
    assert f"picked on validation (epoch {epoch})" in both.stdout
    assert objective(one.run) == mine["validation_accuracy"].iloc[-1]


def test_labels_say_what_differs(tmp_path: Path) -> None:
    for overrides in (
        ["method=sam"],
        ["method=sam", "base_optimizer.lr=0.01"],
        ["method=asam"],
        ["method=asam", "seed=1"],
    ):
        made(tmp_path, *overrides)
    found = labels(collect(tmp_path))
    assert len(set(found)) == 4
    assert found[1].startswith("sam")
    assert "lr=0.01" in found[1]
    assert found[3].endswith("seed=1")


def test_what_goes_with_the_data_needs_no_words_and_two_seeds_are_told_apart(tmp_path: Path) -> None:
    noisy = ["dataset.label_noise.rate=0.4", "dataset.label_noise.seed=3", "seed=1"]
    for overrides in (["dataset=synthetic"], ["dataset=cifar10"], ["dataset=cifar10", *noisy]):
        made(tmp_path, *overrides)
    plain, clean, wrong = labels(collect(tmp_path))
    assert "mean=" not in plain + clean + wrong
    assert plain.endswith("dataset.name=synthetic, seed=0")
    assert {"rate=0.0", "dataset.name=cifar10", "dataset.label_noise.seed=0", "seed=0"} < set(clean.split(", "))
    assert {"rate=0.4", "dataset.name=cifar10", "dataset.label_noise.seed=3", "seed=1"} < set(wrong.split(", "))


def test_a_line_from_before_lines_had_a_method_gets_it_from_its_overrides(tmp_path: Path) -> None:
    run = made(tmp_path, "+experiment=demo", "method=sam_demo")
    line = json.loads((tmp_path / ledger.FILE).read_text())
    del line["method"], line["described"]
    # Lines of other recipes and seeds, whose methods are one composition.
    others = [line | {"run_id": f"{i:012x}", "overrides": [*line["overrides"], f"seed={i}"]} for i in range(3)]
    (tmp_path / ledger.FILE).write_text("".join(json.dumps(each) + "\n" for each in (line, *others)))
    compare._method_of.cache_clear()
    frame = sam_repro.load_runs(tmp_path)
    assert compare._method_of.cache_info().misses == 1
    assert list(frame["method"]) == 4 * [compose(["method=sam_demo"]).method.name]
    assert run.id in list(frame["run"])


def test_kept_weights_are_those_of_their_epochs_and_change_nothing(tmp_path: Path, cli: Cli) -> None:
    import torch

    words = [*TINY, "dataset.evaluate_on=both", "dataset.validation=0.3", "seed=4"]  # best in epoch 2, picked in 1
    plain = cli(*words, "results_dir=plain")
    keeping = cli(*words, "results_dir=keeping", "loop.keep_best=true", "loop.keep_every=1")
    assert (plain.returncode, keeping.returncode) == (0, 0), keeping.stderr
    (one,), (other,) = (list((tmp_path / name / "runs").iterdir()) for name in ("plain", "keeping"))
    assert one.name == other.name
    assert (one / "weights.safetensors").read_bytes() == (other / "weights.safetensors").read_bytes()
    run = sam_repro.open_run(other.name[:6], tmp_path / "keeping")
    assert list(run.curves["epoch"]) == [1, 2]
    last, best = run.model("last").state_dict(), run.model("best").state_dict()
    picked, of_picked = run.model("picked").state_dict(), run.summary["picked"]["epoch"]
    for found, epoch in ((last, 2), (best, run.summary["best"]["epoch"]), (picked, of_picked)):
        kept = run.model(epoch).state_dict()
        assert all(torch.equal(found[name], tensor) for name, tensor in kept.items())
    assert not all(torch.equal(last[name], tensor) for name, tensor in run.model(1).state_dict().items())
    with pytest.raises(UserError, match="keep_best=true keeps them"):
        sam_repro.open_run(one).model("best")
    with pytest.raises(UserError, match=r"keep_best=true keeps them where dataset\.evaluate_on=both"):
        sam_repro.open_run(one).model("picked")


def test_importing_the_package_brings_neither_torch_nor_pandas() -> None:
    code = "import sys, sam_repro; assert not {'torch', 'pandas', 'hydra'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
