"""`python -m sam_repro.report` as a user meets it."""

import csv
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from commands import hydras
from report.samples import ENV, cell, epochs, finish, write_run

from sam_repro import CONFIGS
from sam_repro.config.compose import compose
from sam_repro.config.compose_many import compose_all
from sam_repro.config.identity import ids_of_seeds, run_id
from sam_repro.errors import UserError
from sam_repro.record.summary import summarise
from sam_repro.report.__main__ import main
from sam_repro.runs import ledger
from sam_repro.runs.entry import entry_of
from sam_repro.runs.lease import Watch
from sam_repro.runs.run import Run
from sam_repro.tables import spec, studies
from sam_repro.tables.plan import plan
from sam_repro.tables.status import state_of
from sam_repro.tasks.classification.declared import of_images

LEASE = "lease.1.json"

COMMANDS = (
    ["list"],
    ["claims"],
    ["claims", "--json"],
    ["discrepancies"],
    ["discrepancies", "asam/2", "--json"],
    ["plan"],
    ["status"],
    ["render"],
    ["verify"],
)


@dataclass(frozen=True)
class Done:
    stdout: str
    stderr: str


def report(*words: str, results: Path, code: int = 0) -> Done:
    """The command as `python -m` runs it, in this process, which is quicker."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        returned = main([*words, "--results-dir", str(results)])
    assert returned == code, err.getvalue()
    return Done(out.getvalue(), err.getvalue())


@pytest.mark.slow
def test_no_command_imports_torch(tmp_path: Path) -> None:
    script = (
        "import json, sys; from sam_repro.report.__main__ import main\n"
        "for words in json.loads(sys.argv[1]): assert main(words) == 0, words; assert 'torch' not in sys.modules, words"
    )
    commands = [[*words, "--results-dir", str(tmp_path)] for words in COMMANDS]
    subprocess.run([sys.executable, "-c", script, json.dumps(commands)], check=True, capture_output=True)


@pytest.mark.timing
def test_list_is_quick(tmp_path: Path) -> None:
    assert hydras("-m", "sam_repro.report", "list") <= 3
    assert [line.split()[0] for line in report("list", results=tmp_path).stdout.splitlines()] == [
        *spec.names(),
        *(study.figure for study in studies.load_all()),
    ]


@pytest.mark.timing
def test_planning_all_tables_takes_fifteen_times_what_importing_hydra_does() -> None:
    script = "from sam_repro.tables import spec; from sam_repro.tables.plan import plan; plan(spec.load_all())"
    assert hydras("-c", script) <= 15


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["plan", "asam/22"], "did you mean 'asam/2'"),
        (["render", "rsam/4a"], "did you mean 'rsam/4'"),
        (["status", "budget=minni"], "did you mean 'mini'"),
        (["plan", "asam/6", "device=a1000"], "did you mean 'a100'"),
        (["status", "seed=3"], "seed= is no setting of status"),
        (["plan", "asam/2", "asam/3"], "name one table"),
        (["import"], "name a ledger file"),
        (["import", "/nowhere/ledger.jsonl"], "is not there"),
        (["import", "x.jsonl", "budget=mini"], "budget= is no setting of import"),
        (["list", "asam/99"], "list takes no table: asam/99"),
        (["verify", "asam/99"], "verify takes no table: asam/99"),
        (["list", "--format", "json"], "list has no format json"),
        (["list", "--json"], "list has no format json"),
        (["verify", "--format", "csv"], "verify has no format csv"),
        (["plan", "asam/6", "--format", "md"], "plan has no format md: its formats are json, csv"),
        (["status", "asam/6", "--format", "html"], "status has no format html"),
        (["plan", "asam/6", "--json", "--format", "csv"], "contradict"),
        (["import", str(CONFIGS / "config.yaml")], "is no ledger: none of its"),
        (["runs"], "name the runs"),
        (["runs", "0123456789ab"], "no finished run"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_mistake_is_one_line_and_exit_2(words: list[str], says: str, tmp_path: Path) -> None:
    done = report(*words, results=tmp_path, code=2)
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr
    assert list(tmp_path.iterdir()) == [], "nothing is written"


@pytest.mark.parametrize("words", [["status", "asam/6"], ["verify"], ["runs", "01"]])
def test_a_results_folder_that_is_not_there_is_a_slip(words: list[str], tmp_path: Path) -> None:
    done = report(*words, results=tmp_path / "typo", code=2)
    assert done.stderr == f"error: results_dir={tmp_path / 'typo'}: there is no such folder\n"
    assert not (tmp_path / "typo").exists()


def test_what_has_not_begun_can_be_planned(tmp_path: Path) -> None:
    assert report("plan", "asam/6", results=tmp_path / "later").stdout


def test_a_ledger_from_a_newer_version_is_refused(tmp_path: Path) -> None:
    line = json.dumps({"version": 999, "run_id": "x", "finished": "2030-01-01"})
    (tmp_path / ledger.FILE).write_text(line + "\n")
    for command in (["render", "asam/6"], ["status", "asam/6"], ["verify"]):
        done = report(*command, results=tmp_path, code=2)
        assert "999" in done.stderr
    assert (tmp_path / ledger.FILE).read_text() == line + "\n"


def test_an_unwritable_results_folder(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()  # a file where a folder should be: even root can't write below it
    done = report("render", "asam/6", results=blocked / "results", code=2)
    assert len(done.stderr.splitlines()) == 1
    assert "can't" in done.stderr


def test_a_damaged_ledger_line_is_told_and_skipped(tmp_path: Path) -> None:
    finish(tmp_path, cell(plan([spec.load("asam/6")])["asam/6"], "0", "sgd"), {0: 94.4, 1: 94.5, 2: 94.6})
    with open(tmp_path / ledger.FILE, "a") as file:
        file.write('{"version": 1, "run_id": "torn')
    done = report("render", "asam/6", "--format", "csv", results=tmp_path)
    assert "damaged" in done.stderr
    assert ",agrees," in done.stdout


@pytest.mark.slow
def test_odd_lines_never_block_the_tables(tmp_path: Path) -> None:
    """Valid JSON of another program: named on stderr, and the others' tables and checks go on."""
    sgd = cell(plan([spec.load("asam/6")])["asam/6"], "0", "sgd")
    finish(tmp_path, sgd, {0: 94.4, 1: 94.5, 2: 94.6})
    entry = {**ledger.read(tmp_path)[0][0], "finished": "2100-01-01"}
    odd: list[dict] = [
        {"packages": None},
        {"git": "0123abc"},
        {"git": {"sha": 7}},
        {"hardware": {"gpus": 2}},
        {"hardware": {"gpus": [{"name": "A100"}]}},
        {"hardware": {"cpu": "\ud800"}},
        {"metrics": {"test_accuracy": {"last": 94.0}}},
        {"seconds": math.inf},
        {"passes": math.inf},
        {"seed": 10**400},
    ]
    ids = [run.id for run in cell(plan([spec.load("asam/6")])["asam/6"], "20", "sgd").runs]
    with open(tmp_path / ledger.FILE, "a") as file:
        for number, values in enumerate(odd):
            name = ids[number] if number < len(ids) else f"{number:012x}"
            file.write(json.dumps({**entry, "run_id": name, **values}) + "\n")
    done = report("render", "asam/6", "--format", "json", results=tmp_path)
    assert len(done.stderr.splitlines()) == len(odd) + 1, "and the path that was written"
    cells = {(c["row"], c["column"]): c for c in json.loads(done.stdout)["cells"]}
    assert cells["0", "sgd"]["succeeded"] == 3
    assert cells["20", "sgd"]["finished"] == 0
    report("render", "--format", "html", results=tmp_path)
    assert "0 contradictions" in report("verify", results=tmp_path).stdout


@pytest.mark.parametrize("state", ["stopped", "done"])
def test_a_run_whose_lease_has_ended_does_not_run(state: str, tmp_path: Path) -> None:
    run = cell(plan([spec.load("asam/6")])["asam/6"], "0", "sgd").runs[0]
    folder = tmp_path / "runs" / run.id
    folder.mkdir(parents=True)
    (folder / LEASE).write_text(json.dumps({"state": state}))
    (folder / "metrics.jsonl").touch()
    found = state_of(run, None, tmp_path)
    assert found.state == "missing"
    assert "goes on from its checkpoint" in found.note
    (folder / LEASE).write_text(json.dumps({"state": "running"}))
    assert state_of(run, None, tmp_path).state == "running"


def test_a_run_started_again_after_its_lease_ended_is_running(tmp_path: Path) -> None:
    run = cell(plan([spec.load("asam/6")])["asam/6"], "0", "sgd").runs[0]
    folder = tmp_path / "runs" / run.id
    folder.mkdir(parents=True)
    (folder / LEASE).write_text('{"state": "stopped"}')
    os.utime(folder / LEASE, (time.time() - 60, time.time() - 60))
    (folder / "lease.2.json").touch()
    assert state_of(run, None, tmp_path).state == "running"


@pytest.mark.slow
def test_plan_and_status_for_programs(tmp_path: Path) -> None:
    finish(tmp_path, cell(plan([spec.load("asam/6")])["asam/6"], "0", "sgd"), {0: 94.0, 1: None})
    for command in ("plan", "status", "claims"):
        as_json = report(command, "asam/6", "--format", "json", results=tmp_path).stdout
        assert json.loads(as_json) == json.loads(report(command, "asam/6", "--json", results=tmp_path).stdout)
    rows = list(csv.DictReader(io.StringIO(report("plan", "asam/6", "--format", "csv", results=tmp_path).stdout)))
    cells = json.loads(report("plan", "asam/6", "--json", results=tmp_path).stdout)["cells"]
    assert [set(row) for row in rows] == [set(c) for c in cells]
    assert [(r["row"], r["column"], int(r["to_do"])) for r in rows] == [
        (c["row"], c["column"], c["to_do"]) for c in cells
    ]
    assert rows[0]["run_ids"].split() == cells[0]["run_ids"]
    rows = list(csv.DictReader(io.StringIO(report("status", "asam/6", "--format", "csv", results=tmp_path).stdout)))
    assert [row["state"] for row in rows if (row["row"], row["column"]) == ("0", "sgd")] == [
        "done",
        "collapsed",
        "missing",
    ]
    assert len(rows) == 45
    (only, *_) = csv.DictReader(io.StringIO(report("status", "asam/1", "--format", "csv", results=tmp_path).stdout))
    assert only["id"] == ""
    assert only["why_not"], "a cell without runs says why"
    rows = list(csv.DictReader(io.StringIO(report("claims", "asam/6", "--format", "csv", results=tmp_path).stdout)))
    assert len(rows) == 15


def test_status_knows_every_state(tmp_path: Path) -> None:
    planned = plan([spec.load("asam/6")])["asam/6"]
    sgd, sam = cell(planned, "0", "sgd"), cell(planned, "0", "sam")
    finish(tmp_path, sgd, {0: 94.0, 1: None})
    folders = {run.seed: tmp_path / "runs" / run.id for run in sam.runs}
    for folder in folders.values():
        folder.mkdir(parents=True)
    (folders[0] / "queued").touch()
    (folders[1] / LEASE).touch()
    (folders[2] / LEASE).write_text('{"state": "failed", "error": "out of memory"}')
    found = json.loads(report("status", "asam/6", "--json", results=tmp_path).stdout)["tables"][0]
    cells = {(c["row"], c["column"]): [run["state"] for run in c["runs"]] for c in found["cells"]}
    assert cells["0", "sgd"] == ["done", "collapsed", "missing"]
    assert cells["0", "sam"] == ["queued", "running", "failed"]
    assert [found[state] for state in ("missing", "queued", "running", "failed", "collapsed", "done")] == [
        40,
        1,
        1,
        1,
        1,
        1,
    ]
    text = report("status", "asam/6", results=tmp_path).stdout
    assert "last sign of life" in text
    assert "out of memory" in text


def test_a_run_whose_heart_stopped_is_missing_again(tmp_path: Path) -> None:
    run = cell(plan([spec.load("asam/6")])["asam/6"], "0", "sgd").runs[0]
    folder = tmp_path / "runs" / run.id
    folder.mkdir(parents=True)
    (folder / LEASE).touch()
    assert state_of(run, None, tmp_path).state == "running"
    os.utime(folder / LEASE, (0, 0))
    assert state_of(run, None, tmp_path).state == "missing"


def test_an_interrupted_run_is_missing_at_once(tmp_path: Path) -> None:
    """Its files are young, but it has said goodbye; so has one whose process is gone without a word."""
    run = cell(plan([spec.load("asam/6")])["asam/6"], "0", "sgd").runs[0]
    mine = Watch().acquire(Run.at(tmp_path, run.id))
    assert mine is not None
    (mine.run.path / "metrics.jsonl").touch()
    assert state_of(run, None, tmp_path).state == "running"
    mine.path.write_text(json.dumps(mine.content | {"born": mine.content["born"] - 1}))
    assert state_of(run, None, tmp_path).state == "missing"
    mine.end("stopped")
    assert state_of(run, None, tmp_path).state == "missing"
    assert Watch().acquire(mine.run) is not None
    assert state_of(run, None, tmp_path).state == "running"


def test_plan_counts_what_is_left(tmp_path: Path) -> None:
    planned = plan([spec.load("asam/6")])["asam/6"]
    before = json.loads(report("plan", "asam/6", "--json", results=tmp_path).stdout)
    assert before["to_do"]["runs"] == 45
    finish(tmp_path, cell(planned, "0", "sgd"), {0: 94.0, 2: None})
    after = json.loads(report("plan", "asam/6", "--json", results=tmp_path).stdout)
    assert after["to_do"]["runs"] == 43, "done and collapsed runs are not done again"
    steps = 50_000 // 128
    by_column = {c["column"]: c["passes_a_run"] for c in after["cells"]}
    assert by_column == {"sgd": 400 * steps, "sam": 2 * 200 * steps, "asam": 2 * 200 * steps}


@pytest.mark.slow
def test_a_plan_counts_a_shared_run_once(tmp_path: Path) -> None:
    """R-SAM's table 4 looks at six runs in five columns, and they are table 3's."""
    found = json.loads(report("plan", "rsam/4", "--json", results=tmp_path).stdout)
    assert sum(c["to_do"] for c in found["cells"]) == 30
    assert found["to_do"]["runs"] == 6
    assert all("rsam/3" in c["shared_with"] for c in found["cells"])
    assert {c["row"] for c in found["cells"] if "rsam/fig3a" in c["shared_with"]} == {"vit_b16/rsam"}


def test_a_budget_makes_other_runs() -> None:
    ids = {}
    for budget in ("paper", "mini", "smoke"):
        cells = plan([replace(spec.load("asam/6"), miniature=None)], budget)["asam/6"]
        ids[budget] = {run.id for planned in cells for run in planned.runs}
    assert len(ids["paper"]) == 45
    assert len(ids["mini"]) == 30
    assert len(ids["smoke"]) == 15
    assert not ids["paper"] & ids["mini"]
    assert not ids["mini"] & ids["smoke"]


def test_a_cell_is_the_run_of_its_experiment() -> None:
    planned = cell(plan([spec.load("asam/3")])["asam/3"], "wrn_28_10", "asam")
    for run in planned.runs:
        assert run.id == run_id(compose(["+experiment=asam_cifar100_wrn", f"seed={run.seed}"]))
        assert run.id == run_id(compose(run.overrides)), "its overrides, given to the command line, make the same run"


@pytest.mark.parametrize(
    ("table", "row", "column", "experiment"),
    [
        ("asam/2", "vgg19_bn", "sgd", "asam_cifar10_vgg19_bn"),
        ("asam/2", "pyramidnet272", "asam", "asam_cifar10_pyramidnet272"),
        ("asam/4", "top5", "sam", "asam_imagenet_resnet50"),
        ("asam/6", "40", "asam", "asam_cifar10_resnet32_noise"),
        ("rsam/2", "resnet18", "lpf_sgd", "rsam_cifar100_resnet18"),
        ("rsam/2", "wrn_28_10", "adamw", "rsam_cifar100_wrn_28_10"),
        ("rsam/3", "vit_b16+mixup", "rsam", "rsam_imagenet_vit_b16_mixup"),
        ("rsam/fig3a", "vit_b16", "rgsam", "rgsam_imagenet_vit_b16"),
        ("fsam/cifar10", "pyramidnet110", "sgd", "fsam_cifar10_pyramidnet110"),
        ("fsam/transfer", "pets", "fsam", "fsam_pets_deit_s"),
        ("fsam/figA1", "512", "sam", "fsam_figure_a1_vgg16_bn"),
    ],
)
def test_tables_and_experiments_agree(table: str, row: str, column: str, experiment: str) -> None:
    """A row's experiment with what the column says of method and optimizer is the cell."""
    planned = cell(plan([spec.load(table)])[table], row, column)
    own = ("method", "base_optimizer")
    overrides = [o for o in planned.cell.overrides if o.startswith(own)]
    assert planned.runs[0].id == run_id(compose([f"+experiment={experiment}", *overrides]))


def check_composition(step: int, *more: str) -> None:
    trained = [table for table in spec.load_all() if not table.not_run]
    wanted = list(dict.fromkeys((*c.overrides, *more) for table in trained for c in table.cells))[::step]
    for overrides, config in compose_all(wanted).items():
        if isinstance(config, UserError):
            with pytest.raises(UserError, match=re.escape(str(config))):
                compose(overrides)
        else:
            assert config == compose(overrides), overrides


@pytest.mark.parametrize("budget", ["paper", pytest.param("smoke", marks=pytest.mark.slow)])
def test_composing_many_at_once_is_composing_each(budget: str) -> None:
    check_composition(16, f"budget={budget}")


@pytest.mark.slow
def test_composing_every_cell_at_once_is_composing_each() -> None:
    check_composition(1)


def test_ids_of_several_seeds_are_those_of_each() -> None:
    config = compose(["method=sam", "dataset.label_noise.rate=0.2"])
    assert ids_of_seeds(config, [2, 0, 7]) == [run_id(replace(config, seed=seed)) for seed in (2, 0, 7)]


def test_tables_share_what_is_the_same_run() -> None:
    rsam3, rsam4, figure = (spec.load(f"rsam/{name}") for name in ("3", "4", "fig3a"))
    for row in ("vit_b16", "vit_s16"):
        for method in ("adamw", "sam", "rsam"):
            wanted = set(rsam3.cell(row, method).overrides)
            assert {frozenset(c.overrides) for c in rsam4.cells if c.row == f"{row}/{method}"} == {frozenset(wanted)}
    assert set(figure.cell("vit_b16", "rsam").overrides) == set(rsam3.cell("vit_b16", "rsam").overrides)


def test_verify_tells_altered_from_old(tmp_path: Path) -> None:
    planned = cell(plan([spec.load("asam/6")])["asam/6"], "0", "sgd")
    finish(tmp_path, planned, {0: 94.0})
    assert "0 contradictions" in report("verify", results=tmp_path).stdout
    entry = ledger.read(tmp_path)[0][0]
    ledger.append(tmp_path, {**entry, "recipe_version": 0, "finished": "2100-01-01"})
    assert "recipe version 0" in report("verify", results=tmp_path).stdout
    ledger.append(tmp_path, {**entry, "config": {**entry["config"], "seed": 99}, "finished": "2100-01-02"})
    done = report("verify", results=tmp_path, code=1)
    assert f"run {entry['run_id']}: its stored configuration gives" in done.stdout
    ledger.append(tmp_path, {**entry, "config": {"colour": "blue"}, "finished": "2100-01-03"})
    assert "does not fit" in report("verify", results=tmp_path, code=1).stdout


def test_verify_tells_of_a_commit_that_nobody_can_look_up(tmp_path: Path) -> None:
    planned = cell(plan([spec.load("asam/6")])["asam/6"], "0", "sgd")
    finish(tmp_path, planned, {0: 94.0})
    ledger.append(tmp_path, {**ledger.read(tmp_path)[0][0], "git": {"sha": "0" * 40, "dirty": False}})
    assert "commit 0000000000, which is not in this history; this is" in report("verify", results=tmp_path).stdout


def test_words_of_a_machine_stay_words(tmp_path: Path) -> None:
    planned = cell(plan([spec.load("asam/6")])["asam/6"], "0", "sgd")
    finish(tmp_path, planned, {0: 94.0})
    entry = ledger.read(tmp_path)[0][0]
    forged = "CPU\n\n| 100.0 | [best](http://x) <b>"
    ledger.append(tmp_path, {**entry, "hardware": {"cpu": forged, "cores": 2}})
    shown = report("render", "asam/6", results=tmp_path).stdout
    assert r"- Hardware: CPU  \| 100.0 \| \[best](http://x) \<b>, 2 cores" in shown.splitlines()
    ledger.append(tmp_path, {**entry, "run_id": "\x1b[2J\nno run"})
    assert "\x1b" not in report("verify", results=tmp_path, code=1).stdout


def test_verify_reads_the_folders_too(tmp_path: Path) -> None:
    planned = cell(plan([spec.load("asam/6")])["asam/6"], "0", "sgd")
    assert planned.config is not None
    folder = tmp_path / "runs" / planned.runs[0].id
    write_run(folder, planned.config, [])
    assert "0 remarks, 0 contradictions" in report("verify", results=tmp_path).stdout
    write_run(folder, replace(planned.config, seed=5), [])
    assert "altered" in report("verify", results=tmp_path).stdout


def test_verify_knows_a_run_on_a_folder_of_images(tmp_path: Path) -> None:
    images = tmp_path / "images" / "train" / "cat"
    images.mkdir(parents=True)
    (images / "1.png").write_bytes(b"content")
    config = compose(["dataset=folder", f"dataset.root={tmp_path / 'images'}", "dataset.classes=2"])
    records = epochs(60.0, 0)
    summary = summarise(records, "done", metrics=of_images(10), passes=1.0, wall_seconds=1.0)
    entry = entry_of(Run.of(config), config, records, summary, ENV)
    shutil.rmtree(tmp_path / "images")  # the ledger may be read where the images are not
    ledger.append(tmp_path, entry)
    assert "0 contradictions" in report("verify", results=tmp_path).stdout
    entry["config"]["dataset"]["images"] = "others"
    ledger.append(tmp_path, {**entry, "finished": "2100-01-01"})
    assert "its stored configuration gives" in report("verify", results=tmp_path, code=1).stdout


def test_import_merges_and_is_idempotent(tmp_path: Path) -> None:
    planned = plan([spec.load("asam/6")])["asam/6"]
    here, there = tmp_path / "here", tmp_path / "there"
    finish(here, cell(planned, "0", "sgd"), {0: 94.0})
    finish(there, cell(planned, "0", "sgd"), {1: 94.1, 2: 94.2})
    assert "2 entries added" in report("import", str(there / ledger.FILE), results=here).stdout
    assert "0 entries added" in report("import", str(there / ledger.FILE), results=here).stdout
    assert "94.10 ± 0.10" in report("render", "asam/6", results=here).stdout


def test_import_takes_results_dir_as_the_others_do(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "a=b"
    finish(there, cell(plan([spec.load("asam/6")])["asam/6"], "0", "sgd"), {0: 94.0}, folders=True)
    unused = tmp_path / "unused"
    done = report("import", str(there / ledger.FILE), f"results_dir={here}", results=unused)
    assert "1 entries added" in done.stdout
    assert len(ledger.read(here)[0]) == 1
    run = next((there / "runs").iterdir()).name
    assert run in report("runs", run, f"results_dir={there}", results=unused).stdout
    assert run in report("runs", str(there / "runs" / run), f"results_dir={here}", results=unused).stdout
    assert not unused.exists()


def test_importing_another_kind_of_file_writes_nothing(tmp_path: Path) -> None:
    other, empty = tmp_path / "notes.jsonl", tmp_path / "empty.jsonl"
    other.write_text('# notes\n{"a": 1}\n\n{"version": 1, "run_id": 7, "finished": "x"}\n')
    results = tmp_path / "results"
    done = report("import", str(other), results=results, code=2)
    assert len(done.stderr.splitlines()) == 1
    assert "none of its 3 lines is an entry" in done.stderr
    assert not results.exists()
    empty.touch()
    assert "0 entries added" in report("import", str(empty), results=results).stdout
    other.write_text('{"version": 999}\n')
    assert "999" in report("import", str(other), results=results, code=2).stderr


def test_a_sweep_in_a_cell_is_refused_as_composing_it_is() -> None:
    """Hydra reads a comma as several runs, which a cell can't be. In a text it is a letter as any other."""
    for override in ("method.rho=0.1,0.2", "method.rho=choice(0.1,0.2)", "loop.batch_size=range(1,3)"):
        (found,) = compose_all([("method=sam", override)]).values()
        assert isinstance(found, UserError), override
        assert "\n" not in str(found)
        with pytest.raises(UserError, match=re.escape(str(found))):
            compose(["method=sam", override])
    (found,) = compose_all([("dataset.root=/a,b",)]).values()
    assert not isinstance(found, UserError)
    assert found.dataset.root == "/a,b"


def test_every_budget_and_override_group_exists() -> None:
    """A spec may name only options that are there; this is quicker than composing and names the culprit."""
    absent = set()
    for table in spec.load_all():
        for c in table.cells:
            for group, option in (o.split("=", 1) for o in c.overrides if "." not in o.split("=", 1)[0]):
                if not (CONFIGS / group.lstrip("+") / f"{option}.yaml").is_file():
                    absent.add(f"{group}={option}")
    assert not absent


def test_every_cell_composes() -> None:
    broken = [(c.cell.name, c.why) for cells in plan(spec.load_all()).values() for c in cells if c.broken]
    assert not broken


def test_discrepancies_are_printed_whole_or_those_of_a_table(tmp_path: Path) -> None:
    everything = json.loads(report("discrepancies", "--json", results=tmp_path).stdout)
    of_table = json.loads(report("discrepancies", "asam/2", "--json", results=tmp_path).stdout)
    ids = [row["id"] for row in of_table]
    assert {"asam-eta", "precision"} <= set(ids) < {row["id"] for row in everything}
    text = report("discrepancies", "asam/2", results=tmp_path).stdout
    assert [line.split()[0] for line in text.splitlines() if line and not line.startswith(" ")] == ids
    assert "0.0 for ASAM's methods" in text
    told = report("discrepancies", "asam/22", results=tmp_path, code=2)
    assert "unknown table" in told.stderr
