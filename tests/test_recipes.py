"""The shipped recipes against the papers' passages, against the tables' cells, and against their own headers."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).with_name("recipes")))
import pins
from shipped import RUN_IDS, cells, config, derived, header, names, path, published, run_ids

from sam_repro import CONFIGS
from sam_repro.config.budget import epochs, warmup_epochs, within_budget
from sam_repro.config.compose import compose
from sam_repro.config.compose_many import compose_all
from sam_repro.config.experiments import written_out
from sam_repro.config.identity import as_values, run_id
from sam_repro.config.rules import check
from sam_repro.config.schema import Config, Optimizer
from sam_repro.data.declared import TEXT
from sam_repro.tables import discrepancies
from sam_repro.tables.cost import cost
from sam_repro.tables.spec import load as load_table
from sam_repro.tables.spec import names as tables

PAPERS: dict[str, Any] = yaml.safe_load((RUN_IDS.parent / "stated.yaml").read_text(encoding="utf-8"))
# All that decides what a run gives: a passage states it, or the papers are silent and the header says so.
DECISIVE = {
    "model", "dataset", "method", "method.rho", "method.m", "epochs", "loop.batch_size",
    "base_optimizer.name", "base_optimizer.lr", "base_optimizer.momentum", "base_optimizer.weight_decay",
    "schedule.decay", "schedule.warmup_epochs", "schedule.final",
    "augment.crop", "augment.flip", "augment.cutout", "augment.label_smoothing", "augment.policy", "augment.mixup",
    "augment.cutmix",
}  # fmt: skip


def about(passage: dict[str, Any]) -> list[str]:
    """The experiments that a passage is about."""
    excepted = passage.get("except", [])
    return [
        name
        for name in published()
        if any(fnmatchcase(name, p) for p in passage["experiments"]) and not any(fnmatchcase(name, p) for p in excepted)
    ]


def value(run: Config, key: str) -> Any:
    """A key of the configuration, or one of stated.yaml's shorthands, as a plain value."""
    if key == "epochs":
        return epochs(run)
    node = as_values(run)
    for part in {"method": "method.name", "dataset": "dataset.name"}.get(key, key).split("."):
        node = node[part]
    return node


@cache
def claimed(name: str) -> dict[str, dict[str, Any]]:
    """What the names of the experiments promise: the net and the data."""
    nets = [net for pattern, net in PAPERS["nets"].items() if fnmatchcase(name, pattern)]
    sets = [data for pattern, data in PAPERS["sets"].items() if fnmatchcase(name, pattern)]
    assert len(nets) == 1, f"{name}: stated.yaml gives it the nets {nets}"
    assert len(sets) == 1, f"{name}: stated.yaml gives it the data sets {sets}"
    return {"model": PAPERS["models"][nets[0]], "dataset": sets[0]}


def test_every_passage_is_about_an_experiment() -> None:
    for passage in PAPERS["passages"]:
        for pattern in passage["experiments"]:
            assert any(fnmatchcase(name, pattern) for name in published()), f"{pattern} of {passage['passage']}"


def test_what_a_passage_says_and_no_recipe_does_is_in_the_ledger_of_discrepancies() -> None:
    rows = discrepancies.load()
    for passage in PAPERS["passages"]:
        for words, row in passage.get("not_done", {}).items():
            assert words in passage["passage"]
            assert row in rows
            for name in about(passage):
                table = header(name).get("Cell", "").split(" ")[0]
                assert not table or row in load_table(table).concerning(), f"{table} does not name {row}"


def test_the_recipes_are_as_the_papers_state_them() -> None:
    wrong = [
        f"{name} {' '.join(overrides)}: {key} is {found!r}, the paper says {said!r}: {passage['passage']}"
        for passage in PAPERS["passages"]
        for overrides in [passage.get("overrides", [])]
        for name in about(passage)
        for key, said in passage["stated"].items()
        for found in [value(config(name, *overrides), key)]
        if found != said or isinstance(found, bool) != isinstance(said, bool)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", published())
def test_net_and_data_are_those_that_the_name_says(name: str) -> None:
    run = as_values(config(name))
    assert {key: run["model"][key] for key in claimed(name)["model"]} == claimed(name)["model"]
    assert run["dataset"]["name"] == claimed(name)["dataset"]


def test_every_experiment_is_covered_in_all_that_decides_a_run() -> None:
    known: dict[str, set[str]] = defaultdict(set)
    silent: dict[str, set[str]] = defaultdict(set)
    for passage in PAPERS["passages"]:
        if "overrides" not in passage:
            for name in about(passage):
                known[name] |= passage["stated"].keys()
                silent[name] |= set(passage.get("silent", []))
    for name in published():
        # stated.yaml names net and data apart from the passages, since the names of the experiments hold them
        lacking = DECISIVE - known[name] - silent[name] - claimed(name).keys()
        if not config(name).method.ascends:
            lacking -= {"method.m", "method.rho"}
        if config(name).base_optimizer.name in (Optimizer.adam, Optimizer.adamw):
            lacking -= {"base_optimizer.momentum"}
        if config(name).dataset.name in TEXT:
            lacking -= {key for key in DECISIVE if key.startswith("augment.")} - {"augment.label_smoothing"}
        assert not lacking, f"no passage covers {sorted(lacking)} of {name}"
        decided = silent[name] - {"method.m", "schedule.warmup_epochs", "schedule.final"}
        assert ("Unstated" in header(name)) == bool(decided), f"{name}: the papers are silent on {sorted(decided)}"


@pytest.mark.slow
def test_an_experiment_is_the_run_of_its_table() -> None:
    """One run id for the same cell, so that a baseline is trained once; and the header points to it."""
    for entry in PAPERS["tables"]:
        table = load_table(entry["table"])
        for row in entry.get("only") or [r.id for r in table.rows if r.id not in entry.get("except", [])]:
            name = entry["experiment"].format(row=row)
            for column, overrides in entry["columns"].items():
                cell = table.cell(row, column)
                where = f"{cell.name} and {name} {' '.join(overrides)}"
                assert run_id(config(name, *overrides)) == cells()[table, cell], where
                words = header(name)["Columns"] if overrides else header(name)["Cell"]
                assert all(o in words for o in overrides or [cell.name]), where
    stated = {e["table"] for e in PAPERS["tables"]}
    assert stated | pins.pinned().keys() == set(tables()) - {
        "asam/1",  # a study
        "rsam/4", "rsam/fig3b", "rsam/fig3c",  # other test sets and other values of table 3's runs
        "fsam/logs",  # profile=official
    }, "a table is in stated.yaml, or `python tests/renew.py TABLE` pins it"  # fmt: skip


def test_a_pinned_table_is_as_it_was() -> None:
    for table, lines in pins.pinned().items():
        assert table in tables(), f"{table} is there no more: `python tests/renew.py` of any other takes its pins out"
        assert pins.lines(table) == lines, f"if that is meant: `python tests/renew.py {table}`"


def test_pins_are_renewed_of_one_table_alone(tmp_path: Path) -> None:
    file = tmp_path / "pinned.txt"
    pins.renew(["asam/6"], file)
    mine = pins.pinned(file)
    assert list(mine) == ["asam/6"]
    assert len(mine["asam/6"]) == 15
    file.write_text(file.read_text().replace("asam/6\t40\tasam\t", "asam/6\t40\tasam\twas "))
    pins.renew(["asam/4"], file)
    assert pins.pinned(file)["asam/6"] != mine["asam/6"], "another table's pins are left as they are"
    pins.renew(["asam/6"], file)
    assert pins.pinned(file)["asam/6"] == mine["asam/6"]


@pytest.mark.parametrize("name", published())
def test_a_header_has_all_lines_and_they_are_true(name: str) -> None:
    lines, renewed = header(name), {key: " ".join(made) for key, made in derived(name).items()}
    assert [key for key in lines if key != "Cell"][:4] == ["Paper", "Command", "Passes", "Time"]
    assert lines["Command"].startswith(f"python -m sam_repro +experiment={name} ")
    config(name, *lines["Command"].split()[4:])
    stale = {key: text for key, text in renewed.items() if lines.get(key) != text}
    assert not stale, f"renew {path(name).name} by `python tests/renew.py {name}`: {stale}"
    assert ("Cell" in lines) == ("Cell" in renewed), f"{name} is no cell of any table: take out its line"
    if "Cell" in lines:
        table = load_table(lines["Cell"].split()[0])
        assert table.source.rpartition(", ")[2] in lines["Paper"], "the passage that the table names as its source"
        claims = [cell.claim.text for cell in table.cells if cell.claim.text]
        claims += [text.replace("±", "+-") for text in claims]
        assert not [text for text in claims if text in path(name).read_text(encoding="utf-8")], "the table's to say"
    if "Sweep" in lines:
        words = lines["Sweep"].split()
        assert words[:5] == ["python", "-m", "sam_repro", "-m", f"+experiment={name}"]
        for end in (0, -1):  # the sweep's first and last run
            config(
                name, *(f"{key}={choices.split(',')[end]}" for key, _, choices in (w.partition("=") for w in words[5:]))
            )


def test_the_run_ids_are_pinned() -> None:
    """A changed default shows here: results recorded under the old ids no longer belong to the recipes."""
    pinned = [line.rpartition(" ")[2] for line in RUN_IDS.read_text(encoding="utf-8").splitlines()]
    if lacking := sorted(set(names()) - set(pinned)):
        pytest.fail(
            f"{lacking[0]} has no pinned id: python tests/renew.py {' '.join(lacking)} writes it", pytrace=False
        )
    assert run_ids() == RUN_IDS.read_text(encoding="utf-8").split("\n")[:-1], (
        "run ids changed. If that is meant, renew each by `python tests/renew.py NAME`"
    )


def test_different_experiments_are_different_runs() -> None:
    by_id: dict[str, list[str]] = defaultdict(list)
    for name in names():
        by_id[run_id(config(name))].append(name)
    shared = [same for same in by_id.values() if len(same) > 1]
    assert shared == [["asam_cifar100_wrn", "asam_cifar100_wrn_28_10"]]


@pytest.mark.parametrize(
    "overrides", [(), ("method=sam", "method.rho=0.7", "base_optimizer=adamw", "loop.batch_size=64")]
)
def test_an_experiment_written_out_is_what_hydra_composes(overrides: tuple[str, ...]) -> None:
    """On the short way too, which plans every table in a second: Hydra alone would take a minute."""
    chosen = names()[:: 5 if overrides else 1]
    wanted = {name: (f"+experiment={name}", *overrides) for name in chosen}
    assert not [name for name in chosen if written_out(wanted[name]) is None], "left to Hydra"
    found = compose_all(wanted.values())
    for name in chosen:
        assert found[wanted[name]] == (compose(wanted[name]) if overrides else config(name)), name


def test_another_method_keeps_nothing_of_an_experiments_own() -> None:
    """Least of all its radius; and a method's file that holds nothing but values is there for an experiment alone."""
    switched = {name: (f"+experiment={name}", "method=sam") for name in names()}
    found, sam = compose_all(switched.values()), compose(["method=sam"]).method
    for name in names():
        run = found[switched[name]]
        assert isinstance(run, Config), name
        assert run.method == sam, name
    recipes = "".join(file.read_text(encoding="utf-8") for file in (CONFIGS / "experiment").rglob("*.yaml"))
    for file in (CONFIGS / "method").glob("*.yaml"):
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
        used = f"/method: {file.stem}\n" in recipes or file.stem == "sam_demo"
        assert "name" in values or used, f"{file.name}: let the column say these values"


@pytest.mark.parametrize("budget", ["mini", "smoke"])
def test_a_budget_scales_a_recipe_and_keeps_its_meaning(budget: str) -> None:
    spent = compose([f"budget={budget}"]).budget
    for name in names():
        recipe, scaled = config(name), check(within_budget(replace(config(name), budget=spent)))
        assert epochs(scaled) <= max(1, epochs(recipe) // 10), name
        assert warmup_epochs(scaled) * epochs(recipe) == pytest.approx(recipe.schedule.warmup_epochs * epochs(scaled))
        if budget == "mini":
            assert (scaled.loop, scaled.method) == (recipe.loop, recipe.method)
        else:
            assert cost(scaled).steps <= 2
            assert scaled.loop.batch_size <= 32
