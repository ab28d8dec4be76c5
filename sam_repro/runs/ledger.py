"""results/ledger.jsonl: one line a run that ended, from which every table is made. Imports no torch.

Append-only under a lock, so that any number of runs may end at once. A line is written in one piece and synced; a
writer that is killed damages at most its own line, which `read` reports and leaves out. This module knows three fields
of a line; the others are those of `sam_repro.runs.entry`:

    version    of the format
    run_id     the run; of several lines with one id the newest `finished` counts
    finished   when the run ended, ISO 8601 in UTC
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sam_repro.errors import UserError
from sam_repro.files import lines
from sam_repro.files.read import DamagedError

FILE = "ledger.jsonl"
VERSION = 1
_LOCK_SECONDS = 60.0
_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOENT)

Entry = dict[str, Any]


def append(results_dir: str | os.PathLike[str], entry: Mapping[str, Any]) -> None:
    """Add one run. `version` and, if it is missing, `finished` are filled in."""
    stamped = {"version": VERSION, "run_id": entry["run_id"], "finished": _now(), **entry}
    assert stamped["version"] == VERSION, stamped["version"]
    with _locked(Path(results_dir) / FILE) as descriptor:
        _write(descriptor, [stamped])


def amend(
    results_dir: str | os.PathLike[str], run_id: str, change: Callable[[Entry | None], Mapping[str, Any] | None]
) -> bool:
    """Add a run's newest entry again as `change` makes it, with no other writer between the reading and the writing.

    `change` is called once, under the lock, with None where no line is of this run; None from it adds nothing. Returns
    whether a line was added. Two processes' clocks may differ: the new line is never older than the one it replaces.
    """
    path = Path(results_dir) / FILE
    with _locked(path) as descriptor:
        before = _newest(_all(path)[0]).get(run_id)
        changed = change(before)
        if changed is None:
            return False
        finished = _now() if before is None else max(_now(), before["finished"])
        _write(descriptor, [{**changed, "version": VERSION, "run_id": run_id, "finished": finished}])
    return True


def read(results_dir: str | os.PathLike[str]) -> tuple[list[Entry], list[str]]:
    """The newest entry of each run, sorted by when it ended, and one sentence for each damaged line.

    Needs no lock: a line that is being written is damaged at worst. A ledger from a newer version is refused.
    """
    entries, problems = _all(Path(results_dir) / FILE)
    newest = _newest(entries).values()
    return sorted(newest, key=lambda entry: (entry["finished"], entry["run_id"])), problems


def merge(results_dir: str | os.PathLike[str], other_file: str | os.PathLike[str]) -> tuple[int, list[str]]:
    """Add what another machine's ledger has and this one has not: how many lines, and what was wrong with either.

    Doing it twice adds nothing.
    """
    if not Path(other_file).is_file():
        raise UserError(f"ledger {other_file} is not there: name a ledger.jsonl to import")
    others, problems = _all(Path(other_file))
    path = Path(results_dir) / FILE
    with _locked(path) as descriptor:
        mine, own_problems = _all(path)
        known = {_canonical(entry) for entry in mine}
        missing = []
        for entry in others:
            if _canonical(entry) not in known:
                known.add(_canonical(entry))
                missing.append(entry)
        _write(descriptor, missing)
    return len(missing), own_problems + problems


def _all(path: Path) -> tuple[list[Entry], list[str]]:
    """Every whole entry of a file in its order, older lines of a run too."""
    try:
        records, problems = lines.read_lines(path)
    except DamagedError as error:
        raise UserError(f"can't read the ledger {path}: {error}") from error
    entries = []
    for record in records:
        version, run_id = record.get("version"), record.get("run_id")
        if isinstance(version, int) and version > VERSION:
            raise UserError(
                f"{path} has a line of version {version}, this program knows {VERSION}: update sam-repro to read it"
            )
        if version != VERSION or not isinstance(run_id, str) or not isinstance(record.get("finished"), str):
            problems.append(f"{path}: an entry without version, run_id or finished is skipped (run_id {run_id!r})")
        else:
            entries.append(record)
    return entries, problems


def _newest(entries: Iterable[Entry]) -> dict[str, Entry]:
    newest: dict[str, Entry] = {}
    for entry in entries:
        seen = newest.get(entry["run_id"])
        if seen is None or entry["finished"] >= seen["finished"]:
            newest[entry["run_id"]] = entry
    return newest


def _canonical(entry: Entry) -> str:
    return lines.encode(dict(sorted(entry.items())))


def _write(descriptor: int, entries: Sequence[Mapping[str, Any]]) -> None:
    if entries:
        lines.append(descriptor, "".join(lines.encode(entry) for entry in entries))
        os.fsync(descriptor)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The file, open for `lines.append`, while no other process has it. The system frees a dead process's lock."""
    descriptor = -1
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _acquire(path)
    except OSError as error:
        if error.errno in _UNWRITABLE:
            raise UserError(f"can't write {path}: {error.strerror}; choose another results_dir") from error
        raise
    try:
        yield descriptor
    finally:
        os.close(descriptor)  # frees the lock


def _acquire(path: Path) -> int:
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        descriptor = lines.open_to_append(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise UserError(f"{path} has been locked by another process for {_LOCK_SECONDS:.0f} s") from None
        except OSError:
            os.close(descriptor)
            raise
        # Opened anew each time: a `git pull` may put another file in its place meanwhile.
        os.close(descriptor)
        time.sleep(0.01)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
