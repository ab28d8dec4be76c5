"""Who may know whom, read from the import statements themselves."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import ROOT

from sam_repro import CONFIGS

PACKAGE = ROOT / "sam_repro"


def imports(file: Path) -> Iterator[str]:
    """Modules that a file imports at run time, wherever in the file; not those under `if TYPE_CHECKING`."""
    tree = ast.parse(file.read_text())
    checking = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in checking:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            yield node.module or ""


def files(room: str) -> list[Path]:
    found = sorted((PACKAGE / room).rglob("*.py"))
    assert found
    return found


def test_methods_know_torch_and_themselves_only() -> None:
    allowed = set(sys.stdlib_module_names) | {"torch", "yaml"}
    for file in files("methods"):
        for name in imports(file):
            top = name.split(".")[0]
            own = name.startswith("sam_repro.methods") or name == "sam_repro"  # of which only CONFIGS
            assert own or top in allowed, f"{file.name} imports {name}"


@pytest.mark.parametrize("room", ["report", "record", "sweep"])
def test_report_record_and_sweep_import_no_torch(room: str) -> None:
    for file in files(room):
        for name in imports(file):
            assert name.split(".")[0] not in ("torch", "torchvision", "timm"), f"{file.name} imports {name}"
            assert not re.match(r"sam_repro\.(engine|train|methods(?!\.spec))", name), f"{file.name} imports {name}"


def test_the_engine_names_no_method() -> None:
    names = {f.stem for f in (CONFIGS / "method").glob("*.yaml")} - {"plain"}
    for file in (*files("engine"), PACKAGE / "train.py", PACKAGE / "launch.py"):
        words = {n.value for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Constant)}
        assert not names & {w for w in words if isinstance(w, str)}, file.name
        assert "method.name" not in file.read_text(), file.name


def test_hydra_appears_in_three_places_only() -> None:
    at_home = {"__main__.py", "compose.py"}
    for file in sorted(PACKAGE.rglob("*.py")):
        if any(name.split(".")[0] == "hydra" for name in imports(file)):
            assert file.name in at_home or file.parent.name == "report", file


def test_importing_methods_pulls_in_torch_and_nothing_else_of_weight() -> None:
    code = (
        "import torch, sys; before = set(sys.modules)\n"
        "from sam_repro.methods import build\n"
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    extra = set(done.stdout.split()) - set(sys.stdlib_module_names) - {"torch"}
    assert extra == {"sam_repro"}


def test_files_stay_readable() -> None:
    for file in sorted(PACKAGE.rglob("*.py")):
        lines = len(file.read_text().splitlines())
        assert lines <= 300, f"{file.relative_to(ROOT)} has {lines} lines: is it two rooms?"
