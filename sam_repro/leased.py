"""Whose a run is while it trains, on all its ranks: leased by the main one, forgotten where it starts anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from sam_repro import signals
from sam_repro.engine.checkpoint import Checkpoints
from sam_repro.engine.ranks import Ranks
from sam_repro.errors import FULL, INTERRUPTED, Shared, UserError, end
from sam_repro.files.atomic import in_the_way
from sam_repro.machine import several_tasks
from sam_repro.runs import archive, ledger
from sam_repro.runs.lease import DONE, FAILED, STOPPED, Lease, kept, to_train
from sam_repro.runs.run import Run

ALONE = (
    "srun started several tasks of this command, and one of them trains this run already: for one run on 8 GPUs ask "
    "for one task and runtime.ranks=8, or let srun start torchrun (docs/cluster.md)"
)


@contextmanager
def leased(run: Run, ranks: Ranks) -> Iterator[bool]:
    """Whether this run is ours to train; while it is, the main rank keeps its lease and says at last how it ended."""
    lease, mistake = None, ""
    if ranks.main:
        try:
            # What would be wrong after the training is better said before it.
            ledger.probe(run.results)
            curve = archive.path(run.results, run.id)
            if blocked := in_the_way([*run.written(), curve], [run.path, run.checkpoints, curve.parent]):
                raise UserError(blocked)
            lease = to_train(run, lambda: bool(signals.received), lambda text: print(text, flush=True))
        except UserError as error:
            mistake = str(error)
        except OSError as error:
            if error.errno in FULL:
                raise
            mistake = f"results_dir={run.results} can't be written ({error.strerror}): choose another folder"
        if lease is None and not mistake:
            if several_tasks():
                mistake = ALONE
            else:
                print(f"another process is training this run ({run.path}): wait for it, or stop it first", flush=True)
    if mistake := ranks.share(mistake):
        raise Shared(mistake)
    ours = ranks.share(lease is not None)
    if lease is None:
        yield ours
        return
    with kept(lease, lost=lambda: lost(run)), ended(lease, run):
        yield ours


@contextmanager
def ended(lease: Lease, run: Run) -> Iterator[None]:
    state, error = STOPPED, ""
    try:
        yield
        state = DONE if run.done.exists() else STOPPED
    except Exception as mistake:
        state, error = FAILED, f"{type(mistake).__name__}: {' '.join(str(mistake).split())[:300]}"
        raise
    finally:
        with suppress(OSError):  # of a full disk; that this process is gone says enough
            lease.end(state, error)


def lost(run: Run) -> NoReturn:
    """This process was taken for dead, as one that sleeps is. Its folder is another's now: not a byte more from us."""
    print(f"another process has taken this run over ({run.path})", flush=True)
    end(INTERRUPTED)


def forget(run: Run, ranks: Ranks) -> None:
    """What an earlier training of this run left: from here on it is an unfinished one, which goes on if stopped."""
    if ranks.main:
        for file in (run.done, run.summary, run.weights, run.events, run.evaluations, *run.kept_weights()):
            file.unlink(missing_ok=True)
    Checkpoints(run.checkpoints, ranks).remove()
