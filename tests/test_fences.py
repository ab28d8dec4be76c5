"""Who may know whom, read from the import statements themselves."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

from commands import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sam_repro import CONFIGS

PACKAGE = ROOT / "sam_repro"


def imports(file: Path, members: bool = False, called: bool = True) -> Iterator[str]:
    """Modules that a file imports at run time, wherever in the file; not those under `if TYPE_CHECKING`.

    members: with the names taken from each, since `from sam_repro.runs import ledger` imports a module too.
    called: with what its functions import when they are called.
    """
    tree = ast.parse(file.read_text())
    checking = {
        id(node)
        for block in ast.walk(tree)
        if (isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING")
        or (isinstance(block, ast.FunctionDef) and not called)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in checking:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            yield from [f"{node.module}.{alias.name}" for alias in node.names] if members else [node.module or ""]


def files(room: str) -> list[Path]:
    found = sorted((PACKAGE / room).rglob("*.py"))
    assert found
    return found


def test_methods_know_torch_and_themselves_only() -> None:
    allowed = set(sys.stdlib_module_names) | {"torch", "yaml"}
    for file in files("methods"):
        for name in imports(file):
            top = name.split(".")[0]
            own = name.startswith("sam_repro.methods") or name == "sam_repro"  # of which CONFIGS and `own`
            assert own or top in allowed, f"{file.name} imports {name}"


# Layers of modules, low to high: a module imports from its own layer and the ones below, never upwards, lazy imports
# included. The first prefix that a module's name starts with decides.
# An option of the methods' algebra is a declaration with an equation: it is read without torch, its functions need
# torch and stand as high as the room does.
AXES_OF_METHODS = ("starts", "ascents", "directions", "geometries", "scopes", "radii", "descents", "cadences")
LAYERS: tuple[tuple[str, int], ...] = (
    ("errors", 0), ("files", 0), ("machine", 0), ("own", 0), ("signals", 0), ("words", 0), ("sam_repro", 0),
    *((f"methods.{name}", 1) for name in ("spec", "axes", "option", "own", "moment", *AXES_OF_METHODS)),
    ("models.catalog", 1), ("models.cost", 1), ("data.declared", 1), ("data.listing", 1),
    ("data.layouts", 1), ("tasks.metric", 1), ("tasks.described", 1), ("tasks.classification.declared", 1),
    ("tasks.translation.declared", 1), ("tasks.translation.text", 1),
    ("config", 2),
    ("record", 3),
    ("data.fetch", 6), ("data", 4), ("models", 4), ("methods", 4), ("engine", 5), ("tasks", 5),
    ("runs.__main__", 7), ("runs", 4), ("tables", 5), ("report", 6), ("sweep", 6),
    ("study.__main__", 8), ("study.several", 8),
    ("study", 7), ("bench", 7), ("leased", 7), ("trained", 7), ("train", 7), ("evaluate", 7), ("notebook", 8),
    ("launch", 8), ("sweep_and_show", 8), ("start", 9), ("cli", 10), ("__main__", 11),
)  # fmt: skip
DECLARATIONS = tuple(name for name, layer in LAYERS if layer == 1)
WITHOUT_TORCH = (
    "errors",
    "files",
    "machine",
    "own",
    "signals",
    "words",
    "config",
    "record",
    "runs",
    "tables",
    "report",
    "sweep",
)
# Rooms that stand side by side: neither knows the other, but for its declarations.
STRANGERS = (
    (("data", "models", "methods", "engine"), ("runs", "tables", "report", "sweep")),
    (("report",), ("sweep",)),
    (("methods",), ("data", "models")),
    # The engine owns the protocol, tasks fulfil it, and who starts a run joins them.
    (("engine",), ("tasks", "data", "models")),
    (("tasks",), ("runs", "tables", "report", "sweep", "methods")),
)


def belongs(module: str, rooms: tuple[str, ...]) -> bool:
    return any(module == room or module.startswith(room + ".") for room in rooms)


def layer_of(module: str) -> int:
    return next(layer for prefix, layer in LAYERS if belongs(module, (prefix,)))


@cache
def modules() -> dict[str, Path]:
    """Every module's name inside the package, and its file."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "sam_repro"] = file
    return found


def is_option(module: str) -> bool:
    return belongs(module, tuple(f"methods.{name}" for name in AXES_OF_METHODS))


@cache
def known(file: Path, called: bool = True) -> set[str]:
    """The project's modules that a file imports, by their names inside the package."""
    names, found = modules(), set()
    for name in imports(file, members=True, called=called):
        if name.split(".")[0] == "sam_repro":
            inside = name.removeprefix("sam_repro").lstrip(".")
            found.add(inside if inside in names else inside.rpartition(".")[0] or "sam_repro")
    return found


def test_nothing_imports_upwards() -> None:
    wrong = [
        f"{name} ({layer_of(name)}) imports {other} ({layer_of(other)})"
        for name, file in modules().items()
        for called in ((False, True) if is_option(name) else (True,))
        for other in sorted(known(file, called))
        if layer_of(other) > (layer_of("methods") if is_option(name) and called else layer_of(name))
    ]
    assert not wrong, "\n".join(wrong)


def test_rooms_side_by_side_do_not_know_each_other() -> None:
    wrong = [
        f"{name} imports {other}"
        for left, right in STRANGERS
        for name, file in modules().items()
        for other in sorted(known(file))
        if not belongs(other, DECLARATIONS)
        and ((belongs(name, left) and belongs(other, right)) or (belongs(name, right) and belongs(other, left)))
    ]
    assert not wrong, "\n".join(wrong)


def test_declarations_and_the_rooms_above_them_import_no_torch() -> None:
    for module, file in modules().items():
        if belongs(module, (*WITHOUT_TORCH, *DECLARATIONS)):
            for name in imports(file, called=not is_option(module)):
                assert name.split(".")[0] not in ("torch", "torchvision", "timm"), f"{module} imports {name}"


def test_a_step_of_a_method_names_no_option() -> None:
    """`method.py` and what it works with know the axes; the options they know by table."""
    options = {f"methods.{axis}.{file.stem}" for axis in AXES_OF_METHODS for file in files(f"methods/{axis}")}
    options = {name for name in options if not name.endswith(".__init__")}
    for room in ("method", "perturb", "work", "state", "passes", "axes", "spec", "factory"):
        file = PACKAGE / "methods" / f"{room}.py"
        assert not known(file) & options, room
        words = {n.value for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Constant)}
        names = {name.rpartition(".")[2] for name in options} - {"none", "full", "batch", "other", "larger", "plain"}
        assert not names & {w for w in words if isinstance(w, str)}, room


def test_the_engine_names_no_method() -> None:
    names = {f.stem for f in (CONFIGS / "method").glob("*.yaml")} - {"plain"}
    for file in (*files("engine"), PACKAGE / "train.py", PACKAGE / "launch.py"):
        words = {n.value for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Constant)}
        assert not names & {w for w in words if isinstance(w, str)}, file.name
        assert "method.name" not in file.read_text(), file.name


def test_the_engine_names_no_task() -> None:
    """Nor what only one of them knows."""
    words = ("image", "sentence", "logit", "accuracy", "top5", "bleu", "classes", "labels")
    for file in files("engine"):
        nodes = list(ast.walk(ast.parse(file.read_text())))
        docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # which may give examples
        nodes = [n for n in nodes if isinstance(n, ast.Name | ast.Attribute | ast.Constant) and id(n) not in docs]
        texts = {str(getattr(n, "id", getattr(n, "attr", getattr(n, "value", "")))) for n in nodes}
        assert not [(word, text) for word in words for text in texts if word in text.lower()], file.name


def test_hydra_appears_in_three_places_only() -> None:
    at_home = {"start.py", "compose.py", "compose_many.py"}
    for file in sorted(PACKAGE.rglob("*.py")):
        if any(name.split(".")[0] == "hydra" for name in imports(file)):
            assert file.name in at_home, file


def test_importing_methods_pulls_in_torch_and_nothing_else_of_weight() -> None:
    code = (
        "import torch, sys; before = set(sys.modules)\n"
        "from sam_repro.methods import build\n"
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    extra = set(done.stdout.split()) - set(sys.stdlib_module_names) - {"torch"}
    assert extra == {"sam_repro"}


def test_what_is_imported_is_pinned() -> None:
    pinned = {line.partition("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    owners = packages_distributions()
    for file in files(""):
        for top in {name.split(".")[0] for name in imports(file)} - set(sys.stdlib_module_names):
            for owner in owners.get(top, []):
                if top not in ("sam_repro", "hydra_plugins"):
                    assert owner.lower() in pinned, f"{file.name} imports {top}: pin {owner} in constraints.txt"


def test_what_an_install_brings_is_pinned_whole() -> None:
    """What pyproject.toml asks for and what that needs in its turn, as far as it is installed here."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {canonicalize_name(line.partition("==")[0]) for line in lines if "==" in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(line for lines in project["optional-dependencies"].values() for line in lines),
    ]
    todo, seen = [(Requirement(line), "") for line in wanted], set[tuple[str, str]]()
    while todo:
        asked, extra = todo.pop()
        for part in ("", *asked.extras):
            place = (canonicalize_name(asked.name), part)
            if place in seen or (asked.marker and not asked.marker.evaluate({"extra": extra})):
                continue
            seen.add(place)
            with suppress(PackageNotFoundError):
                todo += [(Requirement(line), part) for line in distribution(asked.name).requires or []]
    assert len(seen) > 100
    assert {name for name, _ in seen} - pinned == set(), "pin them in constraints.txt"


def test_files_stay_readable() -> None:
    for file in sorted(PACKAGE.rglob("*.py")):
        lines = len(file.read_text().splitlines())
        assert lines <= 300, f"{file.relative_to(ROOT)} has {lines} lines: is it two rooms?"
