"""The README's "How to add ...", done step by step on a copy of the project."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from commands import ROOT, TINY, command

from sam_repro import CONFIGS


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "sam_repro", tmp_path / "sam_repro", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(CONFIGS, tmp_path / "configs")
    return tmp_path


def insert(file: Path, after: str, line: str) -> None:
    text = file.read_text()
    assert text.count(after) == 1, f"{file.name} has {text.count(after)} x {after!r}"
    file.write_text(text.replace(after, after + line))


def trained(project: Path, *arguments: str, tiny: list[str] = TINY) -> dict[str, object]:
    """The summary of a tiny run by the copy's own code."""
    env = os.environ | {"PYTHONPATH": str(project)}
    done = subprocess.run(command(*tiny, *arguments), cwd=project, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (run,) = (project / "results" / "runs").iterdir()
    return dict(json.loads((run / "summary.json").read_text()))


@pytest.mark.slow
def test_a_method_that_is_a_new_combination_is_one_file(project: Path) -> None:
    (project / "configs/method/mine.yaml").write_text(
        "name: mine\nascent: batch\ndirection: minus_ema\ngeometry: filterwise\neta: 0.01\nrho: 0.3\n"
    )
    assert trained(project, "method=mine")["status"] == "done"


MINE = """\
title: Tiny
source: {paper: mine, where: here}
metric: test_accuracy
unit: "%"
n: 1
overrides: [OVERRIDES]
columns: {sgd: {overrides: [method=plain]}}
rows: {a: {claims: {sgd: "50.00"}}}
"""


@pytest.mark.slow
def test_a_table_is_one_file_and_takes_a_column_more(project: Path) -> None:
    (project / "configs/table/mine").mkdir()
    of_run = [word for word in TINY if not word.startswith(("results_dir=", "track", "runtime.threads"))]
    (project / "configs/table/mine/1.yaml").write_text(MINE.replace("OVERRIDES", ", ".join(map(repr, of_run))))
    env = os.environ | {"PYTHONPATH": str(project)}
    words = ["sweep", "table=mine/1", "column=other:method=sam,method.rho=0.07", "cells=a/*", "track=none"]
    done = subprocess.run(command(*words), cwd=project, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 runs trained, 0 left" in done.stdout
    assert re.search(r"^\| a \| other \| – \|.*\| 1 of 1", done.stdout, re.MULTILINE)
    assert (project / "results/tables/mine/1+other.md").exists()


AGAINST = '''"""d = -(m + weight g), m the last step's g: descend before descending."""

from dataclasses import dataclass
from typing import ClassVar

from sam_repro.methods.directions import Direction
from sam_repro.methods.option import NOT_NEGATIVE, value


@dataclass(frozen=True)
class Backwards(Direction):
    copied: ClassVar[tuple[str, ...]] = ("last",)

    weight: float = value(1.0, "of this step's gradient", NOT_NEGATIVE)

    def prepare(self, work):
        last = work.state.of("last")
        for i, g in zip(work.where, work.g):
            last.setdefault(work.names[i], g.clone())
        return self.bend, [[last[work.names[i]]] for i in work.where]

    def bend(self, d, beside):
        import torch

        (last,) = beside
        before = torch._foreach_add(last, d, alpha=self.weight)
        torch._foreach_copy_(last, d)
        torch._foreach_copy_(d, torch._foreach_neg(before))
'''


@pytest.mark.slow
def test_a_method_with_a_new_direction_that_remembers_is_its_file_and_a_yaml(project: Path) -> None:
    (project / "sam_repro/methods/directions/backwards.py").write_text(AGAINST)
    (project / "configs/method/mine.yaml").write_text(
        "name: mine\nascent: batch\ndirection: backwards\nweight: 2.0\nrho: 0.05\n"
    )
    summary = trained(project, "method=mine", "method.weight=3")
    assert summary["status"] == "done"
    (run,) = (project / "results" / "runs").iterdir()
    step = json.loads((run / "metrics.jsonl").read_text().splitlines()[0])
    assert step["loss"] < step["loss_ascent"], "the perturbed loss is the lower one"
    assert "weight: 3.0" in (run / "config.yaml").read_text()


@pytest.mark.slow
def test_a_model(project: Path) -> None:
    (project / "sam_repro/models/mine.py").write_text(
        "from torch import nn\n\n\ndef linear(classes: int) -> nn.Module:\n"
        '    """The smallest model there is."""\n'
        "    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, classes))\n"
    )
    insert(project / "sam_repro/models/catalog.py", "class Architecture(Enum):\n", '    mine = "mine"\n')
    insert(
        project / "sam_repro/models/factory.py",
        "def _untrained(config: ModelConfig, classes: int, image_size: int) -> nn.Module:\n",
        "    if config.architecture is Architecture.mine:\n"
        "        from sam_repro.models.mine import linear\n\n        return linear(classes)\n",
    )
    insert(
        project / "sam_repro/models/catalog.py",
        "TAKES: dict[Architecture, frozenset[str]] = {\n",
        "    Architecture.mine: frozenset(),\n",
    )
    (project / "configs/model/mine.yaml").write_text("architecture: mine\ndepth: null\nwidth: null\nstem: null\n")
    tiny = [a for a in TINY if not a.startswith("model.")]
    assert trained(project, "model=mine", tiny=tiny)["parameters"] == 3 * 32 * 32 * 10 + 10


def test_an_experiment(project: Path) -> None:
    (project / "configs/method/asam_mine.yaml").write_text("defaults: [asam, _self_]\nrho: 0.7\n")
    (project / "configs/experiment/mine.yaml").write_text(
        "# @package _global_\ndefaults:\n  - override /dataset: embedded\n  - override /method: asam_mine\n\nseed: 5\n"
    )
    summary = trained(project, "+experiment=mine")
    (run,) = (project / "results" / "runs").iterdir()
    config = (run / "config.yaml").read_text()
    assert "rho: 0.7" in config
    assert "seed: 5" in config
    assert summary["status"] == "done"
