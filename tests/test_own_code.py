"""A user's own package, outside the project, with one of everything that may be named package.module:attribute."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from commands import ROOT, TINY, command
from safetensors.torch import load_file

from sam_repro.cli import main
from sam_repro.config.compose import compose
from sam_repro.data.readers.own import read as read_own
from sam_repro.errors import UserError
from sam_repro.models import build
from sam_repro.runs.run import Run, config_of

ELSEWHERE = ROOT / "tests" / "elsewhere"
MODEL = ["model=own", "model.name=mypkg.nets:tiny", *(word for word in TINY if "width" not in word)]
DATA = ["dataset=own", "dataset.reader=mypkg.data:stripes", "dataset.classes=4"]
METHOD = ["method=sam", "method.direction=mypkg.methods:WithLast", "method.geometry=mypkg.methods:Roots",
          "method.descent=mypkg.methods:Halfway"]  # fmt: skip
EVERYTHING = [*MODEL, *DATA, *METHOD]
ON_RANDOM_PIXELS = [*MODEL, "dataset=synthetic"]

ODD = """
def images(root, image_size):
    return 3

def one_number(classes, image_size):
    return classes

def no_classes(classes, image_size, rate):
    return classes

def few(classes, image_size, outputs=3):
    from torch import nn
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * image_size**2, outputs))

def many(classes, image_size):
    return few(classes, image_size, 1000)

def pairs(classes, image_size):
    from torch import nn
    class Pairs(nn.Module):
        def forward(self, images):
            return images, images
    return Pairs()

def floats(root, image_size):
    import torch
    labels = torch.arange(20) % 4
    return (torch.zeros(20, 3, image_size, image_size), labels), (torch.zeros(20, 3, image_size, image_size), labels)

def too_many_classes(root, image_size):
    import torch
    images = torch.zeros(20, 3, image_size, image_size, dtype=torch.uint8)
    return (images, torch.arange(20)), (images, torch.arange(20))

class Nothing:
    pass

number = 3
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package on this process's path; the working folder is an empty one beside it."""
    folder = tmp_path / "elsewhere" / "mypkg"
    shutil.copytree(ELSEWHERE / "mypkg", folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "odd.py").write_text(ODD, encoding="utf-8")
    (folder / "broken.py").write_text("import nothing_of_this_name\n", encoding="utf-8")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend(str(folder.parent))
    for name in [name for name in sys.modules if name.partition(".")[0] == "mypkg"]:
        monkeypatch.delitem(sys.modules, name)
    return folder


def run(package: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return start(package, command(*words), **env)


def read(package: Path, name: str) -> subprocess.CompletedProcess[str]:
    script = f"import sam_repro; print(type(sam_repro.open_run({name!r}).model('last')).__name__)"
    return start(package, [sys.executable, "-c", script])


def start(package: Path, words: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(package.parent), str(ROOT)])
    return subprocess.run(
        words, env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | env,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def ids() -> set[str]:
    return {folder.name for folder in Path("results/runs").iterdir()}


@pytest.mark.slow
def test_one_of_everything_is_trained_resumed_and_known_by_its_source(package: Path) -> None:
    words = [*EVERYTHING, "budget.max_epochs=1", "method.own.weight=2"]
    done = run(package, *words, "results_dir=whole")
    assert done.returncode == 0, done.stderr
    (whole,) = Path("whole/runs").iterdir()

    stopped = run(package, *words, STOP_IN_STEP_2="1")
    assert stopped.returncode == 75, stopped.stderr
    resumed = run(package, *words)
    assert resumed.returncode == 0, resumed.stderr
    assert ids() == {whole.name}
    again = Path("results/runs") / whole.name
    assert '"resumed"' in (again / "events.jsonl").read_text()
    one, other = (load_file(folder / "weights.safetensors") for folder in (whole, again))
    assert all(one[name].equal(other[name]) for name in one)

    for file in ("nets", "data", "methods"):
        source = package / f"{file}.py"
        text = source.read_text(encoding="utf-8")
        source.write_text(text + "# edited\n", encoding="utf-8")
        before = ids()
        assert run(package, *words).returncode == 0
        assert len(ids() - before) == 1, file
        source.write_text(text, encoding="utf-8")
    before = ids()
    assert run(package, *words).returncode == 0
    assert ids() == before, "put back, it is the first run again"


@pytest.mark.slow
def test_a_model_of_ones_own_is_trained_on_two_ranks_and_read_again(package: Path) -> None:
    done = run(package, *ON_RANDOM_PIXELS, "runtime.ranks=2")
    assert done.returncode == 0, done.stderr
    (name,) = ids()
    opened = read(package, name)
    assert opened.stdout == "Sequential\n", opened.stderr

    nets = package / "nets.py"
    text = nets.read_text(encoding="utf-8")
    nets.write_text(text + "# edited\n", encoding="utf-8")
    told = read(package, name)
    assert told.returncode != 0
    assert f"model.name=mypkg.nets:tiny: {nets} was edited since the run was made: put it back" in told.stderr
    assert run(package, *ON_RANDOM_PIXELS, "runtime.ranks=2").returncode == 0
    assert len(ids()) == 2

    nets.write_text(text, encoding="utf-8")
    assert run(package, *ON_RANDOM_PIXELS, "runtime.ranks=2").returncode == 0
    assert len(ids()) == 2, "put back, it is the first run again"


def test_the_id_has_the_source_and_every_value_and_is_read_back_without_the_package(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = compose(EVERYTHING)
    assert config.method.own == {"weight": 0.5}
    told = {Run.of(config).id, Run.of(compose([*EVERYTHING, "method.own.weight=0.5"])).id}
    assert len(told) == 1, "the default, said or not, is one run"
    others = {Run.of(compose([*EVERYTHING, f"method.own.weight={one}"])).id for one in ("1", "1.0")}
    assert len(others) == 1
    assert not others & told
    assert Run.of(compose([*EVERYTHING, "method.eta=0.1"])).id not in told

    methods = package / "methods.py"
    methods.write_text(methods.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
    assert Run.of(compose(EVERYTHING)).id not in told

    shutil.rmtree(package)
    for name in [name for name in sys.modules if name.partition(".")[0] == "mypkg"]:
        monkeypatch.delitem(sys.modules, name)
    stored, _ = config_of(dict(Run.of(config).science), "a ledger's line")
    assert {Run.of(stored).id} == told


@pytest.mark.parametrize("axis", ["ascent", "radius", "start", "direction"])
def test_a_stored_option_that_is_none_is_told_and_no_code_is_run_for_it(axis: str, package: Path) -> None:
    (package / "trap.py").write_text("raise SystemExit('run')\n", encoding="utf-8")
    science = dict(Run.of(compose(["method=sam"])).science)
    for name in ("foo", "mypkg.trap:Foo"):
        stored = science | {"method": science["method"] | {axis: name}}
        if axis == "direction" and ":" in name:
            assert Run.of(config_of(stored, "a line")[0]).id
            continue
        with pytest.raises(UserError, match=rf"^a line is no configuration of a run .*method\.{axis} must be one of"):
            config_of(stored, "a line")


def test_cost_and_rules_are_the_options_own(package: Path) -> None:
    method = compose(EVERYTHING).method
    assert method.passes() == 2
    assert method.vectors() == 1 + compose([*METHOD, "method.direction=gradient"]).method.vectors()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("model.name=mypkg.net:tiny", ": there is no module mypkg.net on Python's path: put its folder on PYTHONPATH"),
        ("model.name=nopkg.nets:tiny", "there is no module nopkg.nets (No module named 'nopkg'): put its folder on"),
        ("model.name=mypkg.broken:tiny", "mypkg.broken can't be imported (ModuleNotFoundError: No module named 'noth"),
        ("model.name=mypkg.nets:tinny", "nets.py has no tinny. Did you mean 'tiny'?"),
        ("model.name=mypkg.odd:number", "is not callable, but a int: name a function or a class"),
        ("model.name=tiny", "must be package.module:attribute for own, is 'tiny'"),
        ("dataset.reader=stripes", "must be package.module:attribute for dataset=own, is 'stripes'"),
        ("dataset.reader=null", "must be package.module:attribute for dataset=own, is None"),
        ("dataset.reader=mypkg.data:stripe", "data.py has no stripe. Did you mean 'stripes'?"),
        ("method.direction=mypkg.methods:WithLost", "methods.py has no WithLost. Did you mean 'WithLast'?"),
        ("method.direction=mypkg.odd:Nothing", "is no frozen dataclass derived from sam_repro.methods.directions"),
        ("method.geometry=mypkg.methods:WithLast", "is no frozen dataclass derived from sam_repro.methods.geometries"),
        ("method.start=mypkg.methods:WithLast", "must be one of none, isotropic_noise, kernel_noise"),
        ("method.own.weight=-1", "must be a finite number, not negative; is -1"),
        ("method.own.weight=much", "must be a float, is 'much'"),
        ("method.own.wieght=1", "is nothing that is read: there is weight"),
        ("method.sigma=0.5", "is not read with direction=mypkg.methods:WithLast: direction=minus_ema reads it"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_nothing_is_written(
    package: Path, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    assert main([*EVERYTHING, words]) == 2
    told = capsys.readouterr().err
    key = words.partition("=")[0]
    assert message in told
    assert told.startswith(f"error: {key}"), told
    assert told.count("\n") == 1
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("model.name=mypkg.odd:one_number", "returns a int: it must return an nn.Module"),
        ("model.name=mypkg.odd:no_classes", "must take classes= and image_size= (missing a required argument: 'rate')"),
        ("model.name=mypkg.odd:few", "must give dataset.classes=4 outputs an image; of two it gives (2, 3)"),
        ("model.name=mypkg.odd:many", "must give dataset.classes=4 outputs an image; of two it gives (2, 1000)"),
        ("model.name=mypkg.odd:pairs", "must give dataset.classes=4 outputs an image; of two it gives tuple"),
        ("dataset.reader=mypkg.odd:images", "must return (images, labels) of training and of test"),
        ("dataset.reader=mypkg.odd:floats", "returns training images torch.float32 [20, 3, 32, 32], not uint8"),
        ("dataset.reader=mypkg.odd:too_many_classes", "returns training labels 0 to 19: dataset.classes=4"),
    ],
)
def test_what_own_code_returns_is_looked_at(package: Path, words: str, message: str) -> None:
    config = compose([*EVERYTHING, words])
    called = partial(build, config.model, 4, 32) if words.startswith("model") else partial(read_own, config.dataset)
    with pytest.raises(UserError, match=re.escape(message)):
        called()


def test_own_code_is_no_value_of_another_choice(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        (["dataset.reader=mypkg.data:stripes"], "dataset.reader is not read here: it goes with dataset=own"),
        (
            ["method=sam", "method.own.weight=1"],
            "method.own.weight is nothing that is read: no chosen option has a",
        ),
        (["model.name=mypkg.nets:tiny"], "model.name is not taken by resnet_cifar"),
    ):
        assert main(words) == 2
        assert message in capsys.readouterr().err
