"""`sam-repro runs`: what has been run, listed, compared, exported and removed. Imports no torch."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from sam_repro.errors import UserError, command, nearest
from sam_repro.files.atomic import write_atomic
from sam_repro.report import runs_view
from sam_repro.runs.compare import Shown, chosen, collect
from sam_repro.runs.publish import publish
from sam_repro.runs.run import not_one
from sam_repro.runs.state import state_of
from sam_repro.words import HELP, Words, parse, stored_in

USAGE = """\
sam-repro runs list [FILTER=VALUE ...] [--format csv|json|md|tex]      a line a run; labels say what differs
sam-repro runs show RUN                                               all that is known of it
sam-repro runs diff RUN RUN ...                                       the fields in which they differ, and results
sam-repro runs curves RUN ... [--out DIRECTORY]                       a table and a picture of their learning curves
sam-repro runs export [FILTER=VALUE ...] [--format csv|json|md|tex] [--out FILE]
sam-repro runs publish RUN out=DIRECTORY                              weights, configuration, metrics and a model card
sam-repro runs remove RUN ... [--yes]                                 their folders; the ledger keeps its lines

A RUN is an id or the first characters of it. Filters are facts (method=sam dataset=cifar10 status=failed seed=0
budget=mini model=resnet20) or fields of the configuration (base_optimizer.lr=0.1); they choose runs for every command.
results_dir=results is where the runs are.
"""
FLAGS = {"--format": True, "--out": True, "--yes": False}
COMMANDS = {
    "list": ("--format",),
    "show": (),
    "diff": (),
    "curves": ("--out",),
    "export": ("--format", "--out"),
    "publish": ("--out",),
    "remove": ("--yes",),
}


@command
def main(words: list[str]) -> int:
    if not words or set(words) & set(HELP):
        print(USAGE, end="")
        return 0
    name, *rest = words
    if name not in COMMANDS:
        raise UserError(f"{name}: there is no such command.{nearest(name, COMMANDS)} There are {', '.join(COMMANDS)}")
    given = parse(rest, FLAGS)
    for flag in given.flags:
        if flag not in COMMANDS[name]:
            raise UserError(f"{flag} is no flag of runs {name}")
    form = given.flags.get("--format")
    if form is not None and form not in runs_view.FORMATS:
        raise UserError(f"--format {form}: there are {', '.join(runs_view.FORMATS)}")
    results = stored_in(given.settings.pop("results_dir", None))
    out = _out(given) if name == "publish" else ""
    shown = _selected(name, given, results)
    match name:
        case "list":
            print(runs_view.render(shown, form), end="")
        case "show":
            print(*map(runs_view.details, shown), sep="\n", end="")
        case "diff":
            print(runs_view.differences(shown), end="")
        case "curves":
            return _curves(shown, Path(given.flags.get("--out", results / "demo")))
        case "export":
            _export(shown, form or "csv", given.flags.get("--out"))
        case "publish":
            print(publish(_one(shown).run, Path(out)))
        case "remove":
            return _remove(shown, "--yes" in given.flags)
    return 0


def _selected(name: str, given: Words, results: Path) -> list[Shown]:
    if not given.names and not given.settings and name not in ("list", "export"):
        raise UserError(f"name the runs to {name}, or filter them, as in status=failed")
    everything = collect(results)
    wanted = chosen(everything, given.settings)
    if not given.names:
        if not wanted and name not in ("list", "export"):
            raise UserError(f"no run in {results} is so")
        return wanted
    found = []
    for start in given.names:
        matching = [one for one in wanted if start and one.run.id.startswith(start)]
        if len(matching) != 1:
            ids = [one.run.id for one in everything]
            raise UserError(f"{start or 'an empty word'} {not_one(len(matching), start, ids, results)}")
        found += matching
    return found


def _out(given: Words) -> str:
    out = given.settings.pop("out", None) or given.flags.get("--out")
    if not out:
        raise UserError("out: name the folder to publish into, as in out=my-model")
    return out


def _one(shown: Sequence[Shown]) -> Shown:
    if len(shown) != 1:
        raise UserError(f"name one run to publish, not {len(shown)}")
    return shown[0]


def _curves(shown: Sequence[Shown], out: Path) -> int:
    from sam_repro.report import demo

    table, paths = demo.write([one.run.path for one in shown], out)
    print(table, *paths, sep="\n")
    return 0


def _export(shown: Sequence[Shown], form: str, out: str | None) -> None:
    content = runs_view.render(shown, form)
    if out is None:
        print(content, end="")
        return
    try:
        write_atomic(out, content)
    except OSError as error:
        raise UserError(f"can't write {out}: {error.strerror}; choose another --out") from error


def _remove(shown: Sequence[Shown], sure: bool) -> int:
    here = [one for one in shown if one.run.path.is_dir()]
    for one in here:
        _refuse_running(one)
    if not here:
        print("there is no folder to remove")
        return 0
    print(runs_view.render(here, None), end="")
    if not sure:
        if not sys.stdin.isatty():
            raise UserError(f"this removes {len(here)} folders with their weights: say --yes")
        if input(f"remove {len(here)} folders with their weights? [y/N] ").strip().lower() not in ("y", "yes"):
            print("nothing was removed")
            return 0
    for one in here:
        _refuse_running(one)  # it may have been started while the question stood
        if one.run.path.is_symlink():
            one.run.path.unlink()  # what it points to is not ours
        else:
            shutil.rmtree(one.run.path)
    print(f"removed {len(here)} folders; the ledger keeps its lines")
    return 0


def _refuse_running(one: Shown) -> None:
    """Asked of the folder: the ledger calls a run done that is just being trained again."""
    if (state := state_of(one.run)).name == "running":
        raise UserError(f"run {one.run.id} is being trained on {state.note}: stop it first")


if __name__ == "__main__":
    sys.exit(main())
