"""A run is made once and knows its own files; its stored configuration has one reader."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from commands import ROOT, TINY

from sam_repro.config.compose import compose
from sam_repro.config.identity import as_values, run_id
from sam_repro.engine.ranks import Ranks
from sam_repro.errors import UserError
from sam_repro.leased import leased
from sam_repro.record.folder import RunFolder
from sam_repro.runs import archive
from sam_repro.runs.lease import latest
from sam_repro.runs.run import Run, stored_runs

FILES = [name for name, value in vars(RunFolder).items() if isinstance(value, property)]


def test_a_run_is_where_its_configuration_says(tmp_path: Path) -> None:
    config = replace(compose(["seed=3"]), results_dir=str(tmp_path))
    run = Run.of(config, ["seed=3"])
    assert (run.id, run.results, run.overrides) == (run_id(config), tmp_path, ("seed=3",))
    assert run == Run.at(tmp_path, run.id, ["seed=3"])
    assert run.path == tmp_path / "runs" / run.id


def test_nobody_else_names_a_file_of_a_run() -> None:
    """A name with a suffix anywhere in the code, any name where it is joined to a folder."""
    own = {getattr(RunFolder(Path()), name).name for name in FILES} | {"runs"}
    for file in sorted((ROOT / "sam_repro").rglob("*.py")):
        if file.name in ("folder.py", "run.py") and file.parent.name in ("record", "runs"):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            joined = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) else None
            if isinstance(joined, ast.Constant):
                assert joined.value not in own, f"{file}:{node.lineno}"
            if isinstance(node, ast.Constant) and node.value in own:
                assert "." not in str(node.value).lstrip("."), f"{file}:{node.lineno}"


def test_nobody_else_reads_a_stored_configuration() -> None:
    for file in sorted((ROOT / "sam_repro").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "read_yaml":
                of_a_run = [arg for arg in node.args if isinstance(arg, ast.Attribute) and arg.attr == "config"]
                assert not of_a_run or file.name == "run.py", f"{file}:{node.lineno}"


COUNTED = """
import sys
from sam_repro.config import identity

calls = []
code = identity.id_of.__code__
sys.setprofile(lambda frame, event, _: calls.append(1) if event == "call" and frame.f_code is code else None)
from sam_repro.__main__ import main
sys.argv[0] = "sam_repro"
try:
    main()
finally:
    sys.setprofile(None)
    print("ids computed:", len(calls))
"""


@pytest.mark.slow
def test_a_training_computes_its_id_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, *TINY, "budget.max_epochs=1"],
        cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "done: test accuracy" in done.stdout
    assert done.stdout.splitlines()[-1] == "ids computed: 1"


def test_the_stored_configuration_is_the_one_that_was_trained(tmp_path: Path) -> None:
    config = replace(compose(["method=asam", "base_optimizer.lr=1e-5"]), results_dir=str(tmp_path))
    run = Run.of(config)
    run.path.mkdir(parents=True)
    run.config.write_text(yaml.safe_dump(as_values(config)))
    assert run.stored() == config
    assert stored_runs(tmp_path) == [run]


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[1]",
        "seed: x",
        "no: such key",
        "{",
        "{" * 3000,
        "dataset: 7",
        "seed: ${seed}",
        BOMB,
        "\0",
        "a: \udc00",
        None,
    ],
)
def test_a_damaged_configuration_is_one_line(tmp_path: Path, content: str | None) -> None:
    run = Run(tmp_path / "runs" / "abc")
    run.path.mkdir(parents=True)
    if content is None:
        os.mkfifo(run.config)  # nobody will ever write into it
    else:
        run.config.write_bytes(content.encode(errors="surrogatepass"))
    with pytest.raises(UserError, match=r"config\.yaml is no configuration of a run") as error:
        run.stored()
    assert len(" ".join(str(error.value).split())) < 500


def things_written(run: Run) -> list[Path]:
    return [*run.written(), run.weights_of(1), run.checkpoints, archive.path(run.results, run.id)]


@pytest.mark.parametrize("place", range(len(things_written(Run(Path("r/runs/x"))))))
@pytest.mark.parametrize("nowhere", [False, True])
def test_what_stands_where_a_run_writes_is_told_before_it_writes(tmp_path: Path, place: int, nowhere: bool) -> None:
    run = Run.of(replace(compose([]), results_dir=str(tmp_path)))
    path = things_written(run)[place]
    path.parent.mkdir(parents=True)
    if nowhere:
        path.symlink_to("nowhere/at/all")
    elif path == run.checkpoints:
        path.write_text("mine")
    else:
        (path / "mine").mkdir(parents=True)
    with (
        pytest.raises(UserError, match=rf"{path} is no (file|folder), and one is to be written there: move it away"),
        leased(run, Ranks(0, 1, torch.device("cpu"))),
    ):
        pass
    assert not run.lease_numbers()


def test_a_crash_is_told_in_the_lease(tmp_path: Path) -> None:
    run = Run.of(replace(compose([]), results_dir=str(tmp_path)))
    with pytest.raises(IsADirectoryError), leased(run, Ranks(0, 1, torch.device("cpu"))):
        raise IsADirectoryError("there")
    lease = latest(run)
    assert lease is not None
    assert (lease.state, lease.content["error"]) == ("failed", "IsADirectoryError: there")
