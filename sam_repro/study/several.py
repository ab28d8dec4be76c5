"""A study in this process, or on several ranks: local processes for `ranks=`, or those that a launcher has started.

The ranks share the batches of a model: sums of losses, gradients and products are added up over them, so that all of
them know the same numbers and go the same way. The main one keeps, prints and draws them. They are those of one process
but for rounding. What ends one rank ends all; what was measured by then is kept, and any number of ranks goes on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from sam_repro import signals
from sam_repro.errors import DISK_FULL, FULL, USER_ERROR, UserError, complain, full_disk
from sam_repro.machine import cores
from sam_repro.runs.run import Run
from sam_repro.study import frame
from sam_repro.study.frame import WEIGHTS, Asked

if TYPE_CHECKING:
    from sam_repro.engine.ranks import Ranks


def wanted(study: str, looks_at: str, words: Sequence[str]) -> int:
    """How many ranks the words ask for; under a launcher its own count, as in training."""
    text = next((word.removeprefix("ranks=") for word in words if word.startswith("ranks=")), "1")
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise UserError(f"ranks must be a whole number of at least 1, is {text!r}")
    most = max(64, 4 * cores())
    if int(text) > most:
        raise UserError(f"ranks={text}: this machine has {cores()} cores; at most {most}")
    ranks = int(os.environ.get("WORLD_SIZE", 1)) if "RANK" in os.environ else int(text)
    if ranks > 1 and looks_at != WEIGHTS:
        raise UserError(
            f"ranks={ranks}: study {study} looks at no weights, so there are no batches to share: start it on one rank"
        )
    return ranks


def run(asked: Asked, ranks: int, *, as_json: bool) -> int:
    """The exit code."""
    if ranks == 1:
        _show(asked, as_json, None)
        return 0
    if "RANK" in os.environ:
        return _with_others(asked, as_json)
    from sam_repro.launch import local_ranks

    signals.listen()
    return local_ranks(partial(_with_others, asked, as_json), ranks, listens=False)


def _show(asked: Asked, as_json: bool, ranks: Ranks | None) -> None:
    stored = frame.measured(asked, ranks)
    if ranks is None or ranks.main:
        print(frame.printed(asked.study, stored, as_json=as_json), flush=True)


def _with_others(asked: Asked, as_json: bool) -> int:
    """On the device that the first run was trained on: ranks of several kinds would never meet."""
    import torch

    from sam_repro.engine.ranks import Ranks

    first = asked.subjects[0]
    here = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    torch.set_num_threads(max(1, min(torch.get_num_threads(), cores() // here)))
    ranks = Ranks.join(Run.at(first.results, first.id).stored().runtime)
    try:
        _show(asked, as_json, ranks)
    except Exception as error:
        _failed(error, ranks)
    ranks.leave()
    return 0


def _failed(error: Exception, ranks: Ranks) -> NoReturn:
    """This rank ends, and takes the others along; one of them says why."""
    assert ranks.company is not None
    if isinstance(error, UserError):
        ranks.company.end(USER_ERROR, lambda: complain(str(error), every_rank=True))
    if isinstance(error, OSError) and error.errno in FULL:
        ranks.company.end(DISK_FULL, lambda: complain(full_disk(error), every_rank=True))
    ranks.company.crashed(error)
