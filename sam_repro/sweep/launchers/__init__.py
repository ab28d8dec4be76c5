"""What starts the runs of a sweep, a file each: `launcher=NAME` is the file's name.

A launcher has `check(options)`, which tells what it can't do, and `launch(tasks, options, view)`, which starts the
runs, shows how each ends and returns the sweep's exit code.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Protocol, cast

from sam_repro.errors import UserError

if TYPE_CHECKING:
    from sam_repro.sweep.live import View
    from sam_repro.sweep.options import Options
    from sam_repro.sweep.work import Task


class Launcher(Protocol):
    HERE: bool  # whether the runs see this machine's files

    def check(self, options: Options) -> None: ...
    def launch(self, tasks: Sequence[Task], options: Options, view: View) -> int: ...


def named(name: str) -> Launcher:
    names = sorted(file.name for file in iter_modules(__path__))
    if name not in names:
        raise UserError(f"launcher={name}: there are {' and '.join(names)}")
    return cast(Launcher, import_module(f"{__name__}.{name}"))
