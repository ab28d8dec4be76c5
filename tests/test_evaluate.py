"""`python -m sam_repro.evaluate` on stand-ins in the published layouts, from a trained run to the ledger."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import TINY, Cli
from image_folders import jpeg, write

from sam_repro.data.imagenet import CORRUPTIONS, SEVERITIES, _timm_list, wnids


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
    from safetensors.torch import load_file, save_file

    tensors = load_file(weights)
    bias = next(name for name, t in tensors.items() if t.shape == (1000,))
    tensors[bias.replace("bias", "weight")].zero_()
    tensors[bias].zero_()[answer] = 1.0
    save_file(tensors, weights)


@pytest.mark.slow
def test_all_five_test_sets_reach_the_ledger(tmp_path: Path, cli: Cli, stand_ins: Path) -> None:
    tiny = [a for a in TINY if not a.startswith("budget")]
    done = cli(*tiny, "dataset=imagenet", "dataset.image_size=8", "dataset.workers=0", "budget=smoke", timeout=300)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "results" / "runs").iterdir()
    always(run / "weights.safetensors", int(_timm_list("imagenet_r_indices.txt")[7]))
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
    assert found["imagenet_real_accuracy"] < 1
    last = json.loads((tmp_path / "results" / "ledger.jsonl").read_text().splitlines()[-1])
    assert last["run_id"] == run.name
    assert last["metrics"]["imagenet_real_accuracy"]["last"] == found["imagenet_real_accuracy"]
    assert "test_accuracy" in last["metrics"]


def test_mistakes_are_one_line(tmp_path: Path, cli: Cli) -> None:
    cli(*TINY, "budget.max_epochs=1")
    (run,) = (tmp_path / "results" / "runs").iterdir()
    for arguments, part in {
        ("run=nope",): "names no run",
        (f"run={run.name}", "on=[imagenett]"): "imagenet",
        (f"run={run.name}", "on=[v2]"): "imagenetv2",
        ("rum=x",): "run",
        (f"run={run.name}", "runtime.device=tpu"): "cpu",
    }.items():
        done = evaluate(tmp_path, *arguments)
        assert done.returncode == 2, done.stderr
        assert done.stderr.count("\n") == 1
        assert part in done.stderr
    assert not (run / "evaluations.json").exists()
