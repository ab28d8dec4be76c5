"""Study premise, on records that are known."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from sam_repro.errors import UserError
from sam_repro.study import premise, subjects
from sam_repro.study.frame import Job, Measured
from sam_repro.study.parts import Parts
from sam_repro.tables import spec
from sam_repro.tables import studies as specs
from sam_repro.tables.plan import plan

SHARE = {"sam": 0.6, "sam_2rho": 0.6, "fsam": 0.2, "fsam_2rho": 0.7}  # of the perturbation, the full gradient's


def study(results: Path, probed: bool = True) -> Measured:
    """Of the cells in miniature: cosines that fall from epoch to epoch and differ a little from seed to seed."""
    table = spec.load("fsam/figA2_radii").at("mini")
    (results / "curves").mkdir()
    for planned in plan([table], "mini")[table.ref]:
        for seed, run in enumerate(planned.runs):
            records = []
            for epoch in range(1, 5):
                share = SHARE[planned.cell.column]
                cosines = {"ascent_cosine": share + seed / 100, "gradient_cosine": 0.8 - epoch * (1 + seed / 10) / 10,
                           "noise_cosine": (1 - share**2) ** 0.5}  # fmt: skip
                records.append({"kind": "epoch", "step": epoch, "epoch": epoch, **(cosines if probed else {})})
            lines = "".join(json.dumps(record) + "\n" for record in records)
            (results / "curves" / f"{run.id}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    wanted = specs.load("premise")
    runs = subjects.of_cells(wanted, wanted.part("mini"), results, premise.RUNS)
    return premise.measure(Job(premise.Settings(early=0.3), runs, Parts(results, {}, quiet=True)))


def test_what_the_paper_says_of_full_gradients_is_judged(tmp_path: Path) -> None:
    stored = study(tmp_path)
    assert {name: one.holds for name, one in stored.claims.items()} == {
        "initial": True, "removes": True, "removes_2rho": False,
    }  # fmt: skip
    assert stored.claims["removes"].measured.startswith("cosine of fsam's perturbation less sam's: -0.4 [")
    assert stored.numbers["epochs"] == [1, 2, 3, 4]
    mean, low, high = stored.numbers["ascent_cosine"]["F-SAM, ρ"][0]
    assert (low < mean < high, mean) == (True, pytest.approx(0.21))
    assert [len(panel.series) for panel in stored.panels] == [4, 4, 4]


def test_runs_without_a_probe_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"run=\w+ was not probed: train it with loop.probe_steps=100 force=true"):
        study(tmp_path, probed=False)
