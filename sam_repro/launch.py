"""From a checked configuration to processes: in this one, or one a rank on this machine. Imports no torch until then.

Under torchrun or another launcher that sets RANK, this process is one rank among others and trains inline. Otherwise
`runtime.ranks` processes are started here. Their rendezvous is a store that this process opens on a port the system
chooses, so that two jobs never clash. Whatever several ranks do, a study for one, is started by `local_ranks`.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any

from sam_repro import signals
from sam_repro.config.rules import check
from sam_repro.config.schema import Config
from sam_repro.errors import INTERRUPTED, USER_ERROR, UserError, end
from sam_repro.machine import cores
from sam_repro.runs import ledger
from sam_repro.runs.outcome import already, finished
from sam_repro.runs.restore import known, restore
from sam_repro.runs.run import Run

START = "spawn"  # how the ranks' processes begin: CUDA does not survive a fork


def launch(config: Config, overrides: Sequence[str] = ()) -> tuple[int, Run]:
    """Train the run, or say that it is done. Returns the exit code, and which run it was."""
    most = max(64, 4 * cores())
    if (config.runtime.threads or 0) > most:
        # Far above, the system refuses to make them, and the process dies of it.
        raise UserError(f"runtime.threads={config.runtime.threads}: this machine has {cores()} cores; at most {most}")
    signals.listen()
    one_of_many = "RANK" in os.environ
    if one_of_many:
        # The launcher's ranks count, whatever the configuration says: the run's id may depend on them.
        ranks = int(os.environ.get("WORLD_SIZE", 1))
        config = check(replace(config, runtime=replace(config.runtime, ranks=ranks)))
    run = Run.of(config, overrides)
    if not one_of_many or os.environ["RANK"] == "0":
        print(f"run {run.id} in {run.path}", flush=True)
    # Without torch, if it may be decided alone; ranks decide together, in train.
    summary = finished(run) if not one_of_many and not config.force else None
    if summary is not None:
        print(already(summary), flush=True)
        if restore(run):
            print("its line in the ledger was lost: written again", flush=True)
        elif run.id not in known(run.results):
            raise UserError(
                f"the line of run {run.id} in {run.results / ledger.FILE} is lost, and its folder does not say enough "
                "to write it again: force=true trains it again"
            )
        return 0, run
    if one_of_many or config.runtime.ranks == 1:
        return _train(run, config), run
    return local_ranks(partial(_train, run, config), config.runtime.ranks), run


def _train(run: Run, config: Config) -> int:
    from sam_repro.train import train

    return train(run, config)


def local_ranks(work: Callable[[], int], ranks: int, *, listens: bool = True) -> int:
    """One process a rank, which does the work. The first that fails takes the others down and has its traceback shown,
    once.

    listens: whether the work looks for signals and stops by itself. Else they end a rank as they end any program.
    """
    from multiprocessing import get_context

    from torch._C._distributed_c10d import TCPStore
    from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException, start_processes

    from sam_repro.engine.company import told

    # A store that binds its port by itself listens on every interface of the machine.
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    store = TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach())
    mistakes = get_context(START).SimpleQueue()
    # A rank takes the mask over: what comes before it listens waits until it does.
    signal.pthread_sigmask(signal.SIG_BLOCK, signals.STOPPING)
    context = start_processes(  # type: ignore[no-untyped-call]
        _rank, args=(work, ranks, listens, store.port, mistakes), nprocs=ranks, join=False, start_method=START
    )
    assert context is not None

    def pass_on(number: int, frame: FrameType | None) -> None:
        signals.received.append(number)
        for process in context.processes:
            if process.is_alive() and process.pid is not None:
                # A terminal sends Ctrl-C to the ranks as well, and a second one means at once.
                os.kill(process.pid, signal.SIGTERM if number == signal.SIGINT else number)

    for number in signals.STOPPING:
        signal.signal(number, pass_on)
    if signals.received:  # by another thread of this process, while the ranks were started
        pass_on(signals.received[-1], None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.STOPPING)
    try:
        while not context.join(timeout=1.0, grace_period=5.0):
            pass
        return 0
    except ProcessRaisedException as error:
        print(str(error).strip(), file=sys.stderr)
        return 1
    except ProcessExitedException as error:
        if error.exit_code == USER_ERROR and not mistakes.empty():
            raise UserError(mistakes.get()) from None
        if signals.received and -error.exit_code in signals.STOPPING:
            return INTERRUPTED  # a rank that was still starting and had not begun to listen
        if (code := told(store)) is not None:
            return code  # and that rank said why
        if error.exit_code < 0 or error.exit_code == 1:
            print(f"error: rank {error.error_index} was ended: {error}", file=sys.stderr)
            return 1
        return int(error.exit_code)
    finally:
        signals.listen()


def _rank(local: int, work: Callable[[], int], ranks: int, listens: bool, port: int, mistakes: Any) -> None:
    """A rank's process; the environment is as torchrun would set it."""
    os.environ |= {
        "RANK": str(local),
        "LOCAL_RANK": str(local),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    signals.begin()
    if listens:
        signals.listen()
    else:
        signals.release()  # a process that was forked has its parent's
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.STOPPING)
    try:
        code = work()
    except UserError as mistake:
        mistakes.put(str(mistake))
        code = USER_ERROR
    end(code)
