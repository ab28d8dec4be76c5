"""Which runs are on a scheduler's list: a mark in each run's folder, for `status`. It fades like a heartbeat."""

from __future__ import annotations

from contextlib import suppress

from sam_repro.record.folder import RunFolder


def queue(run: RunFolder) -> None:
    """Show the run as on a scheduler's list; again and again."""
    run.path.mkdir(parents=True, exist_ok=True)
    run.queued.touch()


def unqueue(run: RunFolder) -> None:
    """Take the mark away, and the folder if it was made for it."""
    with suppress(OSError):
        run.queued.unlink()
    with suppress(OSError):
        run.path.rmdir()
