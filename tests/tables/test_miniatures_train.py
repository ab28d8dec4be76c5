"""Every miniature trains and is rendered: one seed and two epochs of each of its cells, on a hundred images."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from data_stand_ins import StandIns

from sam_repro.config.compose import compose
from sam_repro.data.declared import Source
from sam_repro.data.layouts import LAYOUTS
from sam_repro.report import write
from sam_repro.runs import archive, ledger
from sam_repro.runs.faults import usable
from sam_repro.runs.run import Run
from sam_repro.tables import spec
from sam_repro.tables.plan import plan
from sam_repro.tables.results import CHANCE
from sam_repro.tables.table import Cell, Table, layered
from sam_repro.tables.tuning import assumed
from sam_repro.tasks.described import described
from sam_repro.train import train

SMALL = ["schedule.epochs=2", "dataset.train_images=100", "track=none", "runtime.device=cpu", "runtime.threads=1"]
IMAGES = ["loop.batch_size=32"]
EMBEDDED = ["dataset.test_images=100", *IMAGES]
MINIATURES = {table.ref: table.miniature for table in spec.load_all() if table.miniature}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Shared, so that runs of several tables train once, as in a sweep."""
    folder = tmp_path_factory.mktemp("results")
    stand_ins = StandIns(folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LAYOUTS, Source.cifar10, stand_ins.cifar10(20)[0])
        patch.setitem(LAYOUTS, Source.cifar100, stand_ins.cifar100(100)[0])
        yield folder


def cut(table: Table) -> Table:
    """One seed and two epochs of every cell."""

    def small(cell: Cell) -> Cell:
        named = [override for override in cell.overrides if override.startswith("dataset=")]
        more = (IMAGES if "dataset=cifar" in named[-1] else []) if named else EMBEDDED
        if any(override.startswith("method.ascent_batch=") for override in cell.overrides):
            more = [*more, "method.ascent_batch=64"]  # of a hundred images
        return replace(cell, seeds=cell.seeds[:1], overrides=layered(cell.overrides, SMALL, more))

    cells = [small(cell) for cell in assumed(table).cells]
    return replace(table, cells=tuple(cells), tune=None, trials=None)


@pytest.mark.slow
@pytest.mark.parametrize("ref", MINIATURES)
def test_a_miniature_trains_and_is_rendered(ref: str, results: Path) -> None:
    """All of them together about a minute."""
    table = cut(MINIATURES[ref])
    planned = plan([table], "mini")
    runs = {run.id: run for cell in planned[ref] for run in cell.runs}
    for run in runs.values():
        config = compose(run.overrides)
        config.dataset.root, config.results_dir = str(results / "data"), str(results)
        made = Run.of(config, run.overrides)
        assert (made.id, train(made, config)) == (run.id, 0)
        assert [r["epoch"] for r in archive.read(results, run.id) or [] if r["kind"] == "epoch"] == [1, 2]
    kept, faults = usable(ledger.read(results)[0])
    assert not faults
    entries = {entry["run_id"]: entry for entry in kept}
    assert {entries[name]["status"] for name in runs} == {"done"}
    write.everything([table], {"mini": planned}, entries, results, None, page=True)
    folder = results / ("figures" if table.figure else "tables")
    with (folder / f"{ref}.mini.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(table.rows) * len(table.columns)
    shown = (folder / f"{ref}.mini.md").read_text(encoding="utf-8")
    for line in lines:
        entry = entries[line["run_ids"]]
        found, primary = entry["metrics"][line["metric"]], described(entry)[0]
        reached = entry["metrics"][primary.name]["best"]
        at_chance = reached is None or primary.at_chance(reached, CHANCE)
        assert (line["finished"], line["succeeded"]) == ("1", "0" if at_chance else "1")
        if not at_chance:
            assert float(line["last_mean"]) == pytest.approx(found["last"], abs=1e-6)
            assert f"{found['last']:.2f}" in shown
