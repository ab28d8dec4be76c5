"""results/ledger.jsonl: one line a run that ended, from which every table is made. Imports no torch.

Append-only, each line in one write, so that any number of runs may end at once; a lock keeps out other writers where
the file system has locks. A line is synced; a writer that is killed damages at most its own, which `read` reports and
leaves out. This module knows five fields of a line; the others are those of `sam_repro.runs.entry`:

    version    of the format
    run_id     the run
    finished   when the run ended, ISO 8601 in UTC; for people: no clock decides which line counts
    imported   true: another machine's line, taken over by `merge`
    check      a digest of the rest, so that a number that was altered later is noticed

Of several usable lines with one id the last in the file counts, one's own before imported ones.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sam_repro.errors import UserError
from sam_repro.files import lines
from sam_repro.files.read import DamagedError
from sam_repro.runs.faults import fault, shown

FILE = "ledger.jsonl"
VERSION = 1
_LOCK_SECONDS = 60.0
_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_PLACE = (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOENT, errno.ENXIO, errno.ELOOP)
# Of file systems that have no locks: Lustre without `-o flock`, some network and user-space ones.
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL)
_MARKS = ("check", "imported")
_ID = re.compile(r"[A-Za-z0-9_-]+")  # it names files
RESULT = ("status", "metrics", "seed", "config")  # what two lines of one run should agree in

Entry = dict[str, Any]


def probe(results_dir: str | os.PathLike[str]) -> None:
    """Raise `UserError` where no line could be written: to be asked before a run trains for days."""
    os.close(_acquire(Path(results_dir) / FILE))  # locked, too: a file system may have its own answer to that


def append(results_dir: str | os.PathLike[str], entry: Mapping[str, Any]) -> None:
    """Add one run. `version` and, if it is missing, `finished` are filled in."""
    stamped = {"version": VERSION, "run_id": entry["run_id"], "finished": _now(), **entry}
    assert stamped["version"] == VERSION, stamped["version"]
    with _locked(Path(results_dir) / FILE) as descriptor:
        _write(descriptor, [stamped])


def amend(
    results_dir: str | os.PathLike[str], run_id: str, change: Callable[[Entry | None], Mapping[str, Any] | None]
) -> bool:
    """Add a run's entry again as `change` makes it, with no other writer between the reading and the writing.

    `change` is called once, under the lock, with None where no line is of this run; None from it adds nothing. Returns
    whether a line was added.
    """
    path = Path(results_dir) / FILE
    with _locked(path) as descriptor:
        before = _chosen(_all(path)[0]).get(run_id)
        changed = change(_bare(before) if before else None)
        if changed is None:
            return False
        foreign = {"imported": True} if before and before.get("imported") else {}
        _write(descriptor, [{**changed, "version": VERSION, "run_id": run_id, "finished": _now(), **foreign}])
    return True


def read(results_dir: str | os.PathLike[str]) -> tuple[list[Entry], list[str]]:
    """The entry of each run that counts, sorted by when it ended, and one sentence for each line with a fault.

    Needs no lock: a line that is being written is damaged at worst. A ledger from a newer version is refused.
    """
    entries, problems = _all(Path(results_dir) / FILE)
    chosen = _chosen(entries)
    for entry in entries:
        counts = chosen[entry["run_id"]]
        if entry is not counts and not fault(counts) and (problem := fault(entry)):
            problems.append(f"a line of run {shown(entry)} {problem}: skipped, another line of this run counts")
    problems += [f"{text}: `report verify` counts it" for text in _altered(chosen.values())]
    ended = sorted(chosen.values(), key=lambda entry: (entry["finished"], entry["run_id"]))
    return [_bare(entry) for entry in ended], problems


def altered(results_dir: str | os.PathLike[str]) -> list[str]:
    """One sentence for each line that is not what was once written."""
    return _altered(_all(Path(results_dir) / FILE)[0])


def merge(results_dir: str | os.PathLike[str], other_file: str | os.PathLike[str]) -> tuple[int, list[str]]:
    """Add what another machine's ledger has and this one has not: how many lines, and what was wrong with either.

    Doing it twice adds nothing. A run that has a usable line of one's own keeps it; a different result of it is named.
    """
    if not Path(other_file).exists():
        raise UserError(f"ledger {other_file} is not there: name a ledger.jsonl to import")
    others, problems = _all(Path(other_file))
    path = Path(results_dir) / FILE
    with _locked(path) as descriptor:
        mine, own_problems = _all(path)
        known, kept = {_canonical(entry) for entry in mine}, _chosen(mine)
        missing = []
        for entry in others:
            if _canonical(entry) in known:
                continue
            if wrong := fault(entry) or (None if _ID.fullmatch(entry["run_id"]) else "is no run's id"):
                problems.append(f"{other_file} line {_number(other_file, entry)}: run {shown(entry)} {wrong}: refused")
                continue
            known.add(_canonical(entry))
            missing.append({**entry, "imported": True})
            own = kept.get(entry["run_id"])
            if own is not None and any(own.get(key) != entry.get(key) for key in RESULT):
                problems.append(f"run {shown(entry)} has another result in {other_file}: the one that was here counts")
        _write(descriptor, missing)
    return len(missing), own_problems + problems + _altered(others)


def _number(file: str | os.PathLike[str], entry: Entry) -> int:
    """Of the line that says this."""
    with Path(file).open("rb") as read:
        for number, line in enumerate(read, start=1):
            with suppress(ValueError):
                if lines.decode(line) == entry:
                    return number
    return 0


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


def _chosen(entries: Sequence[Entry]) -> dict[str, Entry]:
    """run_id -> the line that counts: a usable one before one that is not, one's own before an imported, the last."""
    ranked = sorted(entries, key=lambda entry: (fault(entry) is None, not entry.get("imported")))  # stable
    return {entry["run_id"]: entry for entry in ranked}


def _bare(entry: Entry) -> Entry:
    """Without this module's own marks."""
    return {key: value for key, value in entry.items() if key not in _MARKS}


def _canonical(entry: Mapping[str, Any]) -> str:
    return lines.encode({key: entry[key] for key in sorted(entry) if key not in _MARKS})


def _checksum(entry: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(entry).encode()).hexdigest()[:16]


def _altered(entries: Iterable[Entry]) -> list[str]:
    """Lines from before there were checksums have none."""
    found = [entry for entry in entries if "check" in entry and entry["check"] != _checksum(entry)]
    return [f"a line of run {shown(entry)} was altered after it was written" for entry in found]


def _write(descriptor: int, entries: Sequence[Mapping[str, Any]]) -> None:
    if entries:
        lines.append(descriptor, "".join(lines.encode({"check": _checksum(e), **e}) for e in entries))
        os.fsync(descriptor)


def _open(path: Path) -> int:
    """A descriptor for `lines.append`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return lines.open_to_append(path)
    except OSError as error:
        if error.errno in (*_NOT_OURS, *_NO_PLACE):
            raise UserError(f"can't write {path}: {error.strerror}; choose another results_dir") from error
        raise


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The file, open for `lines.append`, while no other process has it. The system frees a dead process's lock."""
    descriptor = _acquire(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)  # frees the lock


def _acquire(path: Path) -> int:
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise UserError(f"{path} has been locked by another process for {_LOCK_SECONDS:.0f} s") from None
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return descriptor  # a line is one write at the file's end, so that it is whole without a lock too
            os.close(descriptor)
            raise
        # Opened anew each time: a `git pull` may put another file in its place meanwhile.
        os.close(descriptor)
        time.sleep(0.01)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
