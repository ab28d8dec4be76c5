"""Every kind of experiment trains, and every method, optimizer, schedule and model that none names, at smoke budget on
stand-ins of the data. `make smoke`.

Real networks on real input sizes; of the stand-ins' random images a few, and four a step, so that all of it ends in
minutes on two cores; in the precision of the recipe where the processor computes in it.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).with_name("recipes")))
from shipped import names
from stand_ins import write_all

from sam_repro import CONFIGS, machine
from sam_repro.config.compose import compose
from sam_repro.config.compose_many import compose_all
from sam_repro.config.groups import options
from sam_repro.config.identity import as_values
from sam_repro.config.schema import Config
from sam_repro.runs.compare import dotted
from sam_repro.runs.run import Run
from sam_repro.train import train

pytestmark = pytest.mark.slow

SMALL = [
    "budget=smoke", "budget.max_batch=4", "budget.train_images=16", "budget.test_images=8", "dataset.workers=0",
    "track=none", "track.every=1", "runtime.device=cpu", "runtime.threads=1",
    *(["runtime.precision=fp32"] if machine.bf16_in_software() else []),
]  # fmt: skip
# The recipe that carries what no experiment names.
CARRIER = "asam_cifar10_resnet20"


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        write_all(folder, patch)
        yield folder


def small(name: str, *overrides: str) -> Config:
    recipe = compose([f"+experiment={name}", *overrides])
    own = []
    if recipe.model.pretrained:
        own.append("model.pretrained=false")  # a download
    if recipe.method.m is not None:
        own.append("method.m=2")  # of four samples, so that there are shards
    return compose([f"+experiment={name}", *overrides, *SMALL, *own])


def run(config: Config, root: Path, results: Path) -> None:
    config.dataset.root, config.results_dir = str(root), str(results)
    made = Run.of(config)
    assert train(made, config) == 0
    folder = made.path
    assert (folder / "DONE").is_file()
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["status"] == "done", summary
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line["kind"] == "step"]
    assert [line["step"] for line in steps] == [1, 2]
    assert all(math.isfinite(line["loss"]) and math.isfinite(line["grad_norm"]) for line in steps)


def twin(name: str) -> str | None:
    """The same recipe on CIFAR-10."""
    other = name.replace("cifar100", "cifar10")
    return other if other != name and other in names() else None


@pytest.mark.parametrize("name", [name for name in names() if twin(name) is None])
def test_experiment(name: str, root: Path, tmp_path: Path) -> None:
    run(small(name), root, tmp_path)


def test_a_recipe_that_is_not_trained_here_differs_from_one_that_is_in_data_and_radius_alone() -> None:
    twins = {name: other for name in names() if (other := twin(name))}
    made = compose_all((f"+experiment={name}",) for name in [*twins, *twins.values()])
    for name, other in twins.items():
        one, two = (dotted(as_values(made[f"+experiment={which}",])) for which in (name, other))
        different = {key for key in one if one[key] != two.get(key)}
        assert one.keys() == two.keys(), name
        assert {key for key in different if not key.startswith("dataset.")} <= {"method.rho"}, name


def others(group: str) -> list[str]:
    """The options of a group that no experiment names, so that nothing is trained twice for its radius alone."""
    files = "".join(file.read_text(encoding="utf-8") for file in (CONFIGS / "experiment").rglob("*.yaml"))
    return [option for option in options(group) if f"override /{group}: {option}\n" not in files]


@pytest.mark.parametrize(
    "choice", [f"{group}={option}" for group in ("method", "base_optimizer", "schedule") for option in others(group)]
)
def test_what_no_experiment_names(choice: str, root: Path, tmp_path: Path) -> None:
    run(small(CARRIER, choice), root, tmp_path)


# `timm` and `own` are doors and no models.
@pytest.mark.parametrize("model", [model for model in others("model") if model not in ("timm", "own")])
def test_model(model: str, root: Path, tmp_path: Path) -> None:
    run(small(CARRIER, f"model={model}", "method=sam"), root, tmp_path)
