"""`python -m sam_repro.evaluate` on stand-ins in the published layouts, from a trained run to the ledger."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.resources import files as resources
from pathlib import Path

import pytest
import torch
from commands import TINY, Cli
from image_folders import jpeg, photograph, write
from omegaconf import OmegaConf
from safetensors.torch import save_file

from sam_repro import models
from sam_repro.config.compose import compose
from sam_repro.config.identity import as_values, run_id
from sam_repro.config.overrides import quoted
from sam_repro.config.schema import Config
from sam_repro.data import imagenet
from sam_repro.data.declared import DatasetConfig, Fit, Source
from sam_repro.data.evaluation_sets import evaluation_sets
from sam_repro.data.imagenet import CORRUPTIONS, SEVERITIES, _timm_list, wnids
from sam_repro.engine.ranks import Ranks
from sam_repro.evaluate import data_of, main, stored
from sam_repro.leased import forget
from sam_repro.models.catalog import Architecture, ModelConfig
from sam_repro.runs import ledger
from sam_repro.runs.entry import entry_of
from sam_repro.runs.evaluations import keep
from sam_repro.runs.faults import usable
from sam_repro.runs.run import Run
from sam_repro.trained import trained

TINY_IMAGENET = ["dataset=imagenet", "dataset.image_size=8", "dataset.workers=0"]
# AlexNet's error on each corruption in percent, as printed in table 1 of Hendrycks and Dietterich 2019, in its order.
ALEXNET = (88.6, 89.4, 92.3, 82.0, 82.6, 78.6, 79.8, 86.7, 82.7, 81.9, 56.5, 85.3, 64.6, 71.8, 60.7)


def evaluate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sam_repro.evaluate", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture
def stand_ins(tmp_path: Path) -> Path:
    """A class's images are all of one grey, the same in training and in every test set."""
    root = tmp_path / "data"
    for number, wnid in enumerate(wnids()):
        grey = jpeg(number % 256)
        write(root / f"imagenet/train/{wnid}/{wnid}_1.JPEG", grey)
        write(root / f"imagenet/val/{wnid}/ILSVRC2012_val_{number + 1:08d}.JPEG", grey)
        write(root / f"imagenetv2-matched-frequency-format-val/{number}/0a1b.jpeg", grey)
        write(root / f"imagenet-c/fog/1/{wnid}/ILSVRC2012_val_00000001.JPEG", grey)
    for index in (int(i) for i in _timm_list("imagenet_r_indices.txt")):
        write(root / f"imagenet-r/{wnids()[index]}/art_0.jpg", jpeg(index % 256))
    for corruption in CORRUPTIONS:
        (root / "imagenet-c" / corruption).mkdir(exist_ok=True)
        for severity in SEVERITIES:
            if (corruption, severity) != ("fog", 1):
                (root / "imagenet-c" / corruption / str(severity)).symlink_to(root / "imagenet-c/fog/1")
    return root


def always(weights: Path, answer: int) -> None:
    """Let the model give one answer to everything: right for one image a class in a thousand, one in 200 for -R."""
    from safetensors.torch import load_file

    tensors = load_file(weights)
    bias = next(name for name, t in tensors.items() if t.shape == (1000,))
    tensors[bias.replace("bias", "weight")].zero_()
    tensors[bias].zero_()[answer] = 1.0
    save_file(tensors, weights)


@pytest.mark.slow
def test_all_five_test_sets_reach_the_ledger(tmp_path: Path, cli: Cli, stand_ins: Path) -> None:
    tiny = [a for a in TINY if not a.startswith("budget")]
    done = cli(*tiny, *TINY_IMAGENET, "budget=smoke", timeout=300)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "results" / "runs").iterdir()
    answer = 39  # the common iguana, one of ImageNet-R's classes
    assert str(answer) in _timm_list("imagenet_r_indices.txt")
    always(run / "weights.safetensors", answer)
    done = evaluate(tmp_path, f"run={run.name[:6]}", "on=[imagenet,real,v2,r,c]")
    assert done.returncode == 0, done.stderr
    found = json.loads((run / "evaluations.json").read_text())
    assert set(found) == {
        "imagenet_accuracy", "imagenet_real_accuracy", "imagenet_v2_accuracy", "imagenet_r_accuracy",
        "imagenet_c_accuracy", "imagenet_c_mce",
    }  # fmt: skip
    assert found["imagenet_accuracy"] == found["imagenet_v2_accuracy"] == pytest.approx(100 / 1000)
    assert found["imagenet_c_accuracy"] == pytest.approx(100 / 1000)
    assert found["imagenet_r_accuracy"] == pytest.approx(100 / 200)
    # Of the first thousand validation images 943 have a right label in real.json, and 5 are iguanas to it.
    real = json.loads((resources("timm.data") / "_info" / "imagenet_real_labels.json").read_text())[:1000]
    assert (sum(answer in right for right in real), sum(bool(right) for right in real)) == (5, 943)
    assert found["imagenet_real_accuracy"] == pytest.approx(100 * 5 / 943)
    # 99.9 % wrong on every corruption and severity.
    assert found["imagenet_c_mce"] == pytest.approx(sum(100 * 99.9 / error for error in ALEXNET) / 15, abs=0.05)
    assert found["imagenet_c_mce"] == pytest.approx(129.2158, abs=1e-4)
    last = json.loads((tmp_path / "results" / "ledger.jsonl").read_text().splitlines()[-1])
    assert last["run_id"] == run.name
    assert last["metrics"]["imagenet_real_accuracy"]["last"] == found["imagenet_real_accuracy"]
    assert "test_accuracy" in last["metrics"]


def finished(results: Path, *overrides: str) -> Path:
    """The folder and the ledger's line of a run that nobody trained."""
    config = compose([*TINY, *(overrides or TINY_IMAGENET), f"results_dir={results}"])
    folder = results / "runs" / run_id(config)
    write(folder / "config.yaml", OmegaConf.to_yaml(OmegaConf.create(as_values(config))).encode())
    model = models.build(config.model, config.dataset.classes, config.dataset.image_size)
    save_file(model.state_dict(), folder / "weights.safetensors")
    write(folder / "DONE", b"")
    summary = {"status": "done", "passes": 1.0, "wall_seconds": 1.0}
    ledger.append(results, entry_of(Run.of(config), config, [], summary, {"hardware": {}, "packages": {}, "git": None}))
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return finished(tmp_path / "results")


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    for number in range(1000):
        write(tmp_path / f"data/{imagenet.V2}/{number}/0a1b.jpeg")
    return tmp_path / "data"


def judged(run: Path, *arguments: str) -> int:
    return main([f"run={run.name}", f"results_dir={run.parents[1]}", *arguments])


def refused(run: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that is said; nothing is written."""
    line, files = (run.parents[1] / "ledger.jsonl").read_bytes(), sorted(run.iterdir())
    assert judged(run, *arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert (run.parents[1] / "ledger.jsonl").read_bytes() == line
    assert sorted(run.iterdir()) == files
    return said.err


def newest(run: Path) -> dict[str, float]:
    """Metrics of the run's line."""
    (entry,), problems = usable(ledger.read(run.parents[1])[0])
    assert not problems
    assert entry["run_id"] == run.name
    return {name: metric["best"] or 0.0 for name, metric in entry["metrics"].items()}


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("run=nope",), "names no run"),
        (("on=[imagenett]",), "Did you mean 'imagenet'"),
        (("on=[v2]", "dataset.root=nowhere"), "imagenetv2"),
        (("rum=x",), "Did you mean 'run'"),
        (("runtime.device=tpu",), "cpu"),
        (("dataset.workers=two",), "dataset.workers: Value 'two'"),
        (("dataset.workers=-1",), "dataset.workers must be at least 0"),
        (("dataset.skip_unreadable=1.5",), "dataset.skip_unreadable: Value '1.5'"),
        (("dataset.skip_unreadable=-1",), "dataset.skip_unreadable must be at least 0"),
        (("dataset.root=null",), "dataset.root"),
    ],
)
def test_mistakes_are_one_line(
    run: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], part: str
) -> None:
    assert part in refused(run, capsys, *arguments)


@pytest.mark.parametrize("overrides", [["dataset.name=embedded"], [*TINY_IMAGENET, "dataset.classes=10"]])
@pytest.mark.parametrize("name", ["imagenet", "r"])
def test_a_run_on_another_data_set_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], overrides: list[str], name: str
) -> None:
    run = finished(tmp_path / "results", *overrides)
    said = refused(run, capsys, f"on=[{name}]")
    assert "with 10 classes" in said
    assert "dataset=imagenet" in said


def test_a_folder_of_ones_own_is_counted_where_it_is(tmp_path: Path) -> None:
    for half in ("train", "test"):
        for number in range(10):
            write(tmp_path / "pics" / half / f"class {number}/1.jpg", jpeg(number))
    config = compose(["dataset=cifar10", f"dataset.root={quoted(str(tmp_path / 'pics'))}"])
    found = data_of("folder", config)
    assert (found.name, found.root, found.classes) == (Source.folder, str(tmp_path / "pics"), 10)


@pytest.mark.parametrize("fit", list(Fit))
def test_imagenet_c_is_shown_as_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fit: Fit) -> None:
    """224 pixels in, the same 224 pixels out, though a validation image would be enlarged and cropped."""
    monkeypatch.setattr(imagenet, "wnids", lambda: ("n1", "n2"))
    for number, wnid in enumerate(imagenet.wnids()):
        photograph(tmp_path / f"imagenet-c/gaussian_noise/1/{wnid}/a.png", number, 224, 224)
    data = DatasetConfig(
        Source.imagenet, str(tmp_path), 1000, 224, [0.0] * 3, [1 / 255] * 3, workers=0, fit=fit, crop_share=0.875
    )
    test = next(evaluation_sets("c", data, "cpu"))
    (batch,) = test.data.batches(2)
    half = imagenet.find_c(str(tmp_path), "gaussian_noise", 1)
    published = torch.stack([half[0].read(i) for i in range(2)])
    assert torch.equal(batch.images.round().byte(), published)


def test_an_unreadable_image_may_be_left_out(run: Path, v2: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = write(v2 / imagenet.V2 / "17/0a1b.jpeg", jpeg()[:100])
    asked = ("on=[v2]", f"dataset.root={v2}")
    said = refused(run, capsys, *asked)
    assert str(broken) in said
    assert "dataset.skip_unreadable=" in said
    assert judged(run, *asked, "dataset.skip_unreadable=1", "dataset.workers=null") == 0
    assert f"warning: {broken}" in capsys.readouterr().err


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def of_another_model(file: Path) -> None:
    save_file({"head.weight": torch.zeros(2)}, file)


@pytest.mark.parametrize("damage", [Path.unlink, cut, of_another_model, lambda file: file.write_bytes(b"")])
def test_bad_weights_are_named(run: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], object]) -> None:
    damage(run / "weights.safetensors")
    said = refused(run, capsys)
    assert str(run / "weights.safetensors") in said
    assert "force=true" in said


@pytest.mark.parametrize(
    "content",
    [None, b"dataset: {name: [", b"- a\n- list", b"text", b"\xff\xfe\x00", b"datasett: {}", b"seed: many", b"seed: -1"],
)
def test_a_bad_configuration_is_named(run: Path, capsys: pytest.CaptureFixture[str], content: bytes | None) -> None:
    file = run / "config.yaml"
    file.unlink() if content is None else file.write_bytes(content)
    assert str(file) in refused(run, capsys)


@pytest.mark.parametrize(
    "start",
    [
        ModelConfig(width=4, weights="gone.safetensors"),
        ModelConfig(Architecture.timm, "resnet10t", None, None, None, pretrained=True),
    ],
)
def test_the_weights_that_a_run_started_from_are_not_needed(
    run: Path, monkeypatch: pytest.MonkeyPatch, start: ModelConfig
) -> None:
    def download(*_: object) -> None:
        raise AssertionError("downloads")

    monkeypatch.setattr("sam_repro.models.third_party._downloaded", download)
    own = models.build(replace(start, pretrained=False, weights=None), 1000, 8).state_dict()
    save_file(own, run / "weights.safetensors")
    config: Config = replace(stored(Run(run)), model=start)
    ours = trained(config, Run(run).weights).state_dict()
    assert all(torch.equal(ours[name], tensor) for name, tensor in own.items())


def test_a_run_without_a_line_in_the_ledger_is_told(run: Path, v2: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run.parents[1] / "ledger.jsonl").write_text('{"version": 1, "run_id": "another", "finished": "2026"}\n')
    assert judged(run, "on=[v2]", f"dataset.root={v2}") == 0
    said = capsys.readouterr()
    assert "imagenet_v2_accuracy" in said.out
    (warning,) = [line for line in said.err.splitlines() if line.startswith("warning")]
    assert f"no line of run {run.name}" in warning
    assert "start the run once more: that writes its line again" in warning
    assert "imagenet_v2_accuracy" in json.loads((run / "evaluations.json").read_text())
    assert [entry["run_id"] for entry in ledger.read(run.parents[1])[0]] == ["another"]


def test_evaluations_that_end_together_lose_nothing(run: Path) -> None:
    names = [f"metric_{number}" for number in range(80)]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda name: keep(Run(run), {name: 1.0}), names))
    assert set(newest(run)) == set(names)
    assert set(json.loads((run / "evaluations.json").read_text())) == set(names)


def test_a_clock_that_is_behind_hides_no_evaluation(run: Path) -> None:
    (entry,), _ = ledger.read(run.parents[1])
    ledger.append(run.parents[1], {**entry, "finished": "2999-01-01T00:00:00.000000+00:00"})
    assert keep(Run(run), {"imagenet_accuracy": 50.0})
    assert newest(run) == {"imagenet_accuracy": 50.0}


def test_training_again_forgets_the_evaluations_of_the_old_weights(run: Path) -> None:
    keep(Run(run), {"imagenet_accuracy": 50.0})
    forget(Run(run), Ranks(0, 1, torch.device("cpu")))
    assert [file.name for file in run.iterdir()] == ["config.yaml"]
