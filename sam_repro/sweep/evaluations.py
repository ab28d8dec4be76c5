"""What a table wants of its runs beyond their training: each is judged on the table's other test sets, one by one."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

from sam_repro.sweep.child import environment
from sam_repro.sweep.scheduler import FAILED
from sam_repro.sweep.slots import Slot
from sam_repro.sweep.work import Task, Work
from sam_repro.tables.choosing import of_ledger
from sam_repro.tables.judged_on import lacking

_HANDED_ON = ("dataset.root", "dataset.workers", "dataset.skip_unreadable", "runtime.device")


def start_evaluations(found: Work, slot: Slot, *, dry_run: bool) -> int:
    """Those that are trained; 1 if one failed. The others go on."""
    code = 0
    for task, names in _left(found):
        words = command(task, names, slot)
        print(f"evaluate {task.name} ({task.id}) on {', '.join(names)}", flush=True)
        if dry_run:
            print(shlex.join(["python", *words[1:]]))
        elif subprocess.run(words, env=environment(replace(slot, cores=None)), check=False).returncode:
            print(f"FAILED  {task.name} ({task.id}): not judged; the same command tries again", file=sys.stderr)
            code = FAILED
    return code


def _left(found: Work) -> list[tuple[Task, list[str]]]:
    if not found.tasks:
        return []
    entries = of_ledger(found.tasks[0].results)
    wanted = []
    for task in found.tasks:
        sets = [lacking(metric, entries.get(task.id)) for metric in found.metrics[task.id]]
        if names := [name for name in dict.fromkeys(sets) if name]:
            wanted.append((task, names))
    return wanted


def command(task: Task, names: Sequence[str], slot: Slot) -> list[str]:
    given = [word for word in task.overrides if word.partition("=")[0] in _HANDED_ON]
    if slot.gpu and not any(word.startswith("runtime.device=") for word in given):
        given.append("runtime.device=cuda")
    where = [f"run={task.id}", f"on=[{','.join(names)}]", f"results_dir={task.results}"]
    return [sys.executable, "-m", "sam_repro", "evaluate", *where, *given]
