"""A published run: its folder says what it is to a registry, and is judged and opened as a run is."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import torch
from commands import TINY
from report.samples import ENV, epochs, write_run
from safetensors.torch import load_file, save_file

from sam_repro import evaluate, models, open_run
from sam_repro.config.compose import compose
from sam_repro.runs import ledger
from sam_repro.runs.__main__ import main
from sam_repro.runs.entry import entry_of
from sam_repro.runs.faults import usable
from sam_repro.runs.run import Run
from sam_repro.runs.verify import check


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A finished run that nobody trained, with weights."""
    words = [*TINY, "method=sam", f"results_dir={tmp_path}/results", "dataset.root=/home/somebody/data"]
    config = compose(words)
    made = Run.of(config, words)
    records = epochs(60.0, config.seed)
    summary = write_run(made.path, config, records)
    model = models.build(config.model, config.dataset.classes, config.dataset.image_size)
    save_file(model.state_dict(), made.weights)
    ledger.append(made.results, entry_of(made, config, records, summary, ENV))
    return made


def published(run: Run, out: Path) -> Path:
    assert main(["publish", run.id[:6], f"out={out}", f"results_dir={run.results}"]) == 0
    return out


def test_the_ledger_says_which_weights(run: Run) -> None:
    (entry,), _ = usable(ledger.read(run.results)[0])
    assert entry["weights_sha256"] == hashlib.sha256(run.weights.read_bytes()).hexdigest()
    assert not any(finding.wrong for finding in check([entry], run.results))
    tensors = load_file(run.weights)
    save_file({name: tensor + 1 for name, tensor in tensors.items()}, run.weights)
    assert [finding.text for finding in check([entry], run.results) if finding.wrong] == [
        f"run {run.id}: its weights.safetensors is not what its line tells of"
    ]


def test_a_registry_reads_its_card(run: Run, tmp_path: Path) -> None:
    from huggingface_hub import ModelCard

    out = published(run, tmp_path / "out")
    card = ModelCard.load(out / "README.md")
    results = card.data.eval_results
    assert card.data.model_name == f"sam-embedded-{run.id}"
    assert {result.dataset_type for result in results} == {"embedded"}
    values = {(result.metric_type, result.metric_name): result.metric_value for result in results}
    last = epochs(60.0, 0)[-1]["test_accuracy"]
    assert values["accuracy", "test accuracy, last epoch"] == pytest.approx(last)
    assert any("best epoch (11)" in name for _, name in values)
    assert hashlib.sha256(run.weights.read_bytes()).hexdigest() in card.text


def test_nothing_of_it_says_where(run: Run, tmp_path: Path) -> None:
    out = published(run, tmp_path / "out")
    assert {file.name for file in out.iterdir()} == {
        "README.md", "config.yaml", "metrics.jsonl", "summary.json", "weights.safetensors"
    }  # fmt: skip
    for file in out.iterdir():
        if file.suffix != ".safetensors":
            assert "somebody" not in file.read_text()
            assert str(tmp_path) not in file.read_text()


def test_it_opens_and_is_judged_as_a_run_is(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = published(run, tmp_path / "out")
    ours, theirs = open_run(out).model().state_dict(), load_file(run.weights)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    capsys.readouterr()
    assert evaluate.main([f"run={out}", "on=embedded", "runtime.device=cpu"]) == 0
    value = float(capsys.readouterr().out.split()[-1])
    assert json.loads((out / "evaluations.json").read_text())["embedded_accuracy"] == pytest.approx(value, abs=0.01)
    assert len(ledger.read(run.results)[0]) == 1, "the ledger knows the run, not its copy"
    assert evaluate.main([f"run={out}", "on=cifar100"]) == 2
    assert "100 classes" in capsys.readouterr().err


def test_a_run_of_its_own_is_judged_on_a_data_set_of_its_task(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate.main([f"run={run.id}", f"results_dir={run.results}", "runtime.device=cpu"]) == 0
    (entry,), _ = usable(ledger.read(run.results)[0])
    assert {"test_accuracy", "embedded_accuracy"} <= set(entry["metrics"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "out: name the folder"),
        (["out=results"], "is there already"),
        (["out=new", "method=asam"], "names no run"),
    ],
)
def test_mistakes_are_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    monkeypatch.chdir(run.results.parent)
    assert main(["publish", run.id, *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not Path("new").exists()


def test_other_weights_are_not_published(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run.weights.write_bytes(b"others")
    assert main(["publish", run.id, f"out={tmp_path / 'out'}", f"results_dir={run.results}"]) == 2
    assert "not what the run ended with" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
