"""`sam-repro sweep`: train what is missing of a table."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from sam_repro import signals
from sam_repro.data.layouts import look_for
from sam_repro.errors import USER_ERROR, UserError, command
from sam_repro.sweep import child, launchers
from sam_repro.sweep.evaluations import start_evaluations
from sam_repro.sweep.live import View
from sam_repro.sweep.options import USAGE, Options, parse
from sam_repro.sweep.slots import Slot, slots
from sam_repro.sweep.work import Task, Work, missing, work
from sam_repro.tables import choosing, spec
from sam_repro.tables.chosen import named
from sam_repro.tables.cost import cost, found_device
from sam_repro.tables.table import MINI
from sam_repro.words import HELP

LONGEST = 24.0  # hours of a run that may call itself small


@command
def main(words: list[str]) -> int:
    if not words or set(words) & set(HELP):
        print(USAGE, end="")
        return 0 if words else USER_ERROR
    return sweep(parse(words))


def sweep(options: Options) -> int:
    writable(options.results)
    places = slots(options.gpus, options.per_gpu, options.slots, options.ranks)
    if options.tune and (code := tune(options, places)) is not None:
        return code
    found = wanted(options)
    code = train(found, options, places)
    if code or not launchers.named(options.launcher).HERE:
        return code
    return start_evaluations(found, places[0], dry_run=options.dry_run)


def wanted(options: Options, *, trials: bool = False) -> Work:
    refs, extra = options.table.split(","), options.overrides
    return work(refs, options.budget, options.patterns, extra, options.results, options.column, trials=trials)


def tune(options: Options, places: list[Slot]) -> int | None:
    """The trials, and the choices made of them; an exit code where the table can't be trained yet."""
    tables = [spec.load(ref).at(options.budget) for word in options.table.split(",") for ref in named(word)]
    for table in (table for table in tables if table.tune):
        choosing.choosable(table, options.budget)
    trials = wanted(options, trials=True)
    code = train(trials, options, places)
    if code or missing(trials.tasks, options.results):
        return code  # of a dry run, too: what is to be trained next is not known before the choice
    if options.dry_run:
        return None  # by the choices that are there
    entries = choosing.of_ledger(options.results)
    for table in (table for table in tables if table.tune):
        chosen = choosing.choose(table, options.budget, entries, options.results)
        print(*chosen.open(), choosing.write(table, chosen), sep="\n", flush=True)
    return None


def train(found: Work, options: Options, places: list[Slot]) -> int:
    """What is missing of it."""
    todo = missing(found.tasks, options.results)
    notes = [f"note: {note}" for note in found.notes]
    notes.append(f"{len(found.tasks)} runs, {len(found.tasks) - len(todo)} done, {len(todo)} to train")
    if options.dry_run or not todo:
        print(*notes, sep="\n")
        for task in todo:
            print(f"# {task.name} ({task.id})\n{shlex.join(['python', *child.command(task, places[0])[1:]])}")
        return 0
    if launchers.named(options.launcher).HERE:
        _startable(found, todo, options.budget)
    # From here on all that is said goes through the view: whoever stops reading does not change how it ends.
    with View(len(found.tasks), len(found.tasks) - len(todo)) as view:
        for note in notes:
            view.say(note)
        code = launchers.named(options.launcher).launch(todo, options, view)
        left = missing(todo, options.results)
        view.say(f"{len(todo) - len(left)} of {len(todo)} runs trained, {len(left)} left")
    return code


def _startable(found: Work, todo: list[Task], budget: str) -> None:
    """What would be found out hours later is better said now: data that is not there, days for an hour's budget."""
    for data in {(data.name, data.root): data for data in (found.configs[task.id].dataset for task in todo)}.values():
        look_for(data)
    if budget != MINI:
        return
    device = found_device()
    for task in todo:
        if (hours := cost(found.configs[task.id]).hours(device) or 0.0) > LONGEST:
            raise UserError(
                f"budget=mini: one run of {task.cell} takes about {hours:.0f} hours on {device}, more than a day, and "
                "the table has no miniature: leave the cell out (cells=...), or take budget=smoke or another machine"
            )


def writable(results: Path) -> None:
    """A folder that can't be written to is found out before anything is written."""
    nearest = results.absolute()
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise UserError(f"results_dir={results}: can't write into {nearest}; choose another folder")


if __name__ == "__main__":
    signals.begin()
    sys.exit(main())
