"""What every study keeps to: its file, its numbers, its picture from them alone, and its place in the report."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from commands import ROOT
from report.samples import write_run

from sam_repro.config.budget import epochs
from sam_repro.config.compose import compose
from sam_repro.errors import UserError
from sam_repro.report import commands, page, studies, studies_view
from sam_repro.report.figures import picture, svg
from sam_repro.report.figures.panel import Axis, Field, Panel, Series
from sam_repro.runs.run import Run
from sam_repro.study import frame
from sam_repro.study.__main__ import main
from sam_repro.study.parts import Parts
from sam_repro.tables import studies as specs
from sam_repro.tables.plan import PAPER
from sam_repro.words import parse

KINDS = sorted(
    file.stem for file in (ROOT / "sam_repro/report/figures").glob("*.py") if "def draw(axis" in file.read_text()
)


@pytest.mark.parametrize("study", specs.load_all(), ids=lambda study: study.name)
def test_a_study_is_a_file_and_a_module(study: specs.Study) -> None:
    module = import_module(f"sam_repro.study.{study.module}")
    for part in study.parts.values():
        frame.settings_of(module.Settings, part.settings, {})
        assert part.takes
    assert study.claims, "what does the paper say?"
    assert module.__doc__


def test_what_was_trained_is_told_with_the_epochs_that_it_trained(tmp_path: Path) -> None:
    """Those of SGD's own length and of the budget, which the schedule alone does not say."""
    words = ["+experiment=asam_cifar10_resnet20", "method=plain", "budget=smoke"]
    config = replace(compose(words), results_dir=str(tmp_path))
    run = Run.of(config)
    write_run(run.path, config, [])
    found = frame.Subject(run.id, "SGD", tmp_path).trained
    assert found == f"resnet_cifar of depth 20 on cifar10, {epochs(config)} epochs"
    assert epochs(config) != config.schedule.epochs


def measure(results: Path, *words: str) -> studies.Stored:
    return frame.run(specs.load("regions"), parse([f"results_dir={results}", *words], {}))


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with one study in it."""
    results = tmp_path_factory.mktemp("results")
    measure(results)
    return results


def test_the_picture_is_drawn_from_the_numbers_alone_to_the_byte(once: Path, tmp_path: Path) -> None:
    files = {file.name: file.read_bytes() for file in (once / "figures/asam_fig1").iterdir()}
    assert sorted(files) == ["figure.pdf", "figure.png", "figure.svg", "numbers.json"]
    (tmp_path / "figures/asam_fig1").mkdir(parents=True)
    shutil.copy(once / "figures/asam_fig1/numbers.json", tmp_path / "figures/asam_fig1")
    for path in studies.draw_all(tmp_path):
        assert path.read_bytes() == files[path.name], path.name


def test_what_is_stored_is_read_back(once: Path, tmp_path: Path) -> None:
    study = specs.load("regions")
    assert (found := studies.read(study, once, PAPER))
    file = study.folder(tmp_path, PAPER) / studies.FILE
    assert found.text() == (once / "figures/asam_fig1/numbers.json").read_text()
    file.parent.mkdir(parents=True)
    for damage in ('{"format": 1}', "[]", '{"format": 2}', '{"format": 1, "claims": 3}'):
        file.write_text(damage)
        with pytest.raises(UserError, match=r"numbers.json holds no study"):
            studies.read(study, tmp_path, PAPER)


def test_a_study_that_was_killed_goes_on(tmp_path: Path) -> None:
    first = Parts(tmp_path, {"rho": 1}, quiet=True)
    assert first.get("a", lambda: [1.5, 2]) == [1.5, 2]
    with open(first.file, "a") as torn:
        torn.write('{"of": "' + first.digest + '", "name": "b", "val')
    again = Parts(tmp_path, {"rho": 1}, quiet=True)
    assert again.get("a", lambda: pytest.fail("measured twice")) == [1.5, 2]
    assert again.get("b", lambda: "new") == "new"
    assert Parts(tmp_path, {"rho": 1}, quiet=True).known == {"a": [1.5, 2], "b": "new"}
    assert Parts(tmp_path, {"rho": 2}, quiet=True).known == {}, "of other settings"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["regoins"], "did you mean 'regions'"),
        (["regions", "roh=1"], "did you mean 'rho'"),
        (["regions", "rho=much"], "rho=much"),
        (["regions", "run=abc"], "looks at no trained run"),
        (["regions", "budget=mini"], "budget=mini: study regions has paper"),
        (["regions", "nonsense"], "is not KEY=VALUE"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    told = capsys.readouterr()
    assert says in told.err
    assert told.err.count("\n") == 1
    assert not told.out


def panel(kind: str) -> Panel:
    x, y = [0.0, 1.0, 2.0], [0.1, 0.5, None]
    series = [
        Series("one <&>", x, y, low=[0.0, 0.4, None], high=[0.2, 0.6, None]),
        Series("another", x, [0.3, 0.2, 0.9], mark="stems" if kind == "spectrum" else "points", ends=True),
    ]
    field = Field(x, x, [[0.0, 1.0, 2.0]] * 3, [0.5, 1.5], "L") if kind == "contour" else None
    return Panel(kind, "title", Axis("across", "m"), Axis("up", "%", ticks=("p", "q", "r")), series, field, ("a note",))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_draws_for_print_for_the_dark_and_for_the_page(kind: str) -> None:
    assert KINDS == ["bars", "contour", "curves", "forest", "scatter", "spectrum"]
    drawn = picture.draw("x", "A title", "n = 3, paper budget", [Panel.of(panel(kind).as_json())])
    assert drawn["png"].startswith(b"\x89PNG")
    assert drawn["pdf"].startswith(b"%PDF")
    text = drawn["svg"].decode()
    for word in ("A title", "n = 3, paper budget", "across (m)", "one &lt;&amp;&gt;", "another", "a note"):
        assert word in text
    assert "prefers-color-scheme:dark" in text
    inside = text.replace(svg.SHEET, "")
    for banned in ("style", "#333333", "<script", "DejaVu"):
        assert banned not in inside.replace("font-style", "")
    assert inside.startswith("<svg")


def test_the_report_shows_studies(once: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.list_tables() == 0
    assert "asam/fig1" in capsys.readouterr().out
    assert studies_view.show("asam/fig1", PAPER, tmp_path, None) == 0
    assert capsys.readouterr().out == "asam/fig1  missing, takes 1 s: sam-repro study regions\n"
    assert studies_view.show("asam/fig1", PAPER, once, "json") == 0
    (row,) = json.loads(capsys.readouterr().out)["studies"]
    assert (row["state"], row["runs"]) == ("done", None)
    shown = page.render([], {}, once)
    assert '<span class="chip agrees">holds</span>' in shown
    assert "Not measured: <code>sam-repro study toy</code>" in shown
    stored = studies.read(specs.load("toy"), ROOT / "results", PAPER)
    assert stored
    assert frame.printed(specs.load("toy"), stored, as_json=True).startswith('{"format": 1, "study": "toy"')


@pytest.mark.slow
def test_the_command_measures_the_same_bytes_again_and_prints_them(
    once: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["asam/fig1", "--json", f"results_dir={tmp_path}"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "figures/asam_fig1/numbers.json").read_text())
    for file in (once / "figures/asam_fig1").iterdir():
        assert file.read_bytes() == (tmp_path / "figures/asam_fig1" / file.name).read_bytes()
    measure(tmp_path, "rho=0.1")
    assert studies.state(specs.load("regions"), tmp_path, PAPER) == "done, with another rho"
