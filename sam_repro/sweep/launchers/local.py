"""`launcher=local`: runs side by side on this machine, a process each, on its GPUs or dividing its threads."""

from __future__ import annotations

from collections.abc import Sequence

from sam_repro.errors import UserError
from sam_repro.machine import has_gpus
from sam_repro.sweep.live import View
from sam_repro.sweep.options import Options
from sam_repro.sweep.scheduler import Scheduler
from sam_repro.sweep.slots import Slot, slots
from sam_repro.sweep.work import Task

HERE = True


def check(options: Options) -> None:
    if options.submit:
        raise UserError("hydra.launcher.* needs launcher=slurm")
    if options.gpus is not None and options.slots > 1:
        raise UserError("slots: it is for the CPU; on GPUs write per_gpu=2")
    if options.gpus is None and options.per_gpu > 1:
        raise UserError("per_gpu: name the GPUs too, as in gpus=0-7")
    places(options)
    if options.gpus is not None and not options.dry_run and not has_gpus():
        raise UserError(f"gpus={options.gpus}: this machine shows no GPU; leave it out to train on the CPU")


def places(options: Options) -> list[Slot]:
    return slots(options.gpus, options.per_gpu, options.slots, options.ranks)


def launch(tasks: Sequence[Task], options: Options, view: View) -> int:
    return Scheduler(list(tasks), places(options), options.stale, view).run()
