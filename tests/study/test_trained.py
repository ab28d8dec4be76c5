"""Each study's cut, on tiny trained runs: it measures, leaves the runs as they were, and gives the same bytes again."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from sam_repro.errors import UserError
from sam_repro.report.studies import Stored
from sam_repro.study import frame
from sam_repro.tables import studies as specs
from sam_repro.words import parse

FEW = ["images=40", "batch=20"]
CUTS = {
    "spectrum": [*FEW, "probes=2", "steps=8"],
    "sharpness": [*FEW, "steps=3", "draws=2", "m=10"],
    "decays": [*FEW, "m=10", "radii=[0.001,0.01]"],
    "stability": [*FEW, "draws=2", "radii=[0.1,0.5]", "variances=[0.0075,0.0125]"],
    "surface": [*FEW, "points=5", "directions=2", "plane=3"],
    "curves": [],
    "premise": ["early=0.5"],
}


@cache
def once(name: str, results: Path, *words: str) -> Stored:
    return study(name, results, *words)


def study(name: str, results: Path, *words: str) -> Stored:
    ids = sorted(run.name for run in (results / "runs").iterdir())
    ids = ids if name in ("sharpness", "decays", "curves", "premise") else ids[:2]
    given = [f"runs=[{','.join(ids)}]", f"results_dir={results}", *CUTS[name], *words]
    return frame.run(specs.load(name), parse(given, {}))


@pytest.mark.slow  # 4 runs and two measurements of each study: 60 s
@pytest.mark.parametrize("name", CUTS)
def test_a_study_measures_twice_the_same_and_leaves_runs_as_they_were(name: str, trained: Path) -> None:
    files = [file for file in (trained / "runs").rglob("*") if file.is_file()]
    before = {file: file.read_bytes() for file in files}
    stored = once(name, trained)
    assert len(stored.runs) in (2, 4)
    assert stored.panels
    assert sorted(file.name for file in (trained / f"figures/own_{name}").iterdir())[-1] == "numbers.json"
    assert not (trained / "figures" / specs.load(name).figure.replace("/", "_")).exists(), "the paper's is another"
    assert specs.load(name).measures in (trained / f"figures/own_{name}/figure.svg").read_text()
    assert "epochs; " in stored.caption
    assert set(stored.claims) <= set(specs.load(name).claims)
    assert study(name, trained).text() == stored.text()
    assert before == {file: file.read_bytes() for file in (trained / "runs").rglob("*") if file.is_file()}


@pytest.mark.slow
def test_what_is_measured_of_trained_runs(trained: Path) -> None:
    (one, *_) = once("spectrum", trained, "matrix=gauss_newton").numbers["runs"]
    assert one["largest"] == sorted(one["largest"], reverse=True)
    assert one["lambda_1"] > 0
    found = once("sharpness", trained)
    assert all(one["worst"] > 0 for values in found.numbers["runs"].values() for one in values)
    assert {one["axes"]["weight decay"] for one in found.numbers["runs"]["sharpness, p = ∞"]} == {0.0, 0.01}
    assert (found.runs[0]["m"], found.runs[0]["images"], found.runs[0]["batchnorm"]) == (10, 40, "running statistics")
    models = once("decays", trained).numbers["models"]
    assert [one["epoch"] for one in models] == [1, 2] * 4
    assert all(small < large for one in models for small, large in one["values"].values())
    still = study("stability", trained, "variances=[1e-12]", "draws=1").numbers
    quiet, noisy = still["isotropic, γ² = 0"][0], still["isotropic, γ² = 1e-12"][0]
    assert quiet["cosine"] == pytest.approx(noisy["cosine"], abs=1e-3), "hardly any noise is hardly another direction"
    assert 1 > quiet["cosine"][0] > quiet["cosine"][1]
    flat = once("surface", trained).numbers
    middles = {round(curve[2], 9) for curves in flat["lines"].values() for curve in curves}
    assert len(middles) <= 2, "every direction starts from its run's own loss"
    assert flat["planes"][next(iter(flat["planes"]))][1][1] in {c[2] for v in flat["lines"].values() for c in v}


def test_checkpoints_that_were_not_kept_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"9 of 9 runs have no weights .*sweep table=asam/decays`"):
        frame.run(specs.load("decays"), parse([f"results_dir={tmp_path}"], {}))
