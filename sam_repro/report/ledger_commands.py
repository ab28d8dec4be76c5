"""What the commands of `sam-repro report` do with the ledger: read it, add another's lines, look for altered ones."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sam_repro.errors import UserError

if TYPE_CHECKING:
    from sam_repro.runs.entry import Entry


def entries_of(results: Path) -> dict[str, Entry]:
    from sam_repro.runs import ledger
    from sam_repro.runs.faults import usable

    lines, problems = ledger.read(results)
    kept, faults = usable(lines)
    _complain(problems + faults)
    return {entry["run_id"]: entry for entry in kept}


def _complain(problems: list[str]) -> None:
    for problem in problems:
        print(f"warning: {problem}", file=sys.stderr)


def import_ledger(file: str | None, results: Path) -> int:
    from sam_repro.runs import archive, ledger
    from sam_repro.runs.faults import usable

    _expect_entries(Path(file or ""))
    added, problems = ledger.merge(results, file or "")
    _complain(problems)
    for entry in usable(ledger.read(results)[0])[0]:
        archive.fetch(results, entry, Path(file or "").parent)
    print(f"{added} entries added to {results / ledger.FILE}")
    return 0


def _expect_entries(file: Path) -> None:
    """Another kind of file is a mistake of the user's, not a ledger whose lines are all damaged."""
    from sam_repro.files.lines import read_lines
    from sam_repro.files.read import DamagedError
    from sam_repro.runs import ledger

    records, damaged = list[dict[str, Any]](), list[str]()
    with suppress(DamagedError):  # `ledger.merge` says it
        records, damaged = read_lines(file)

    def ours(record: Mapping[str, Any]) -> bool:
        version = record.get("version")
        return version == ledger.VERSION and all(isinstance(record.get(k), str) for k in ("run_id", "finished"))

    def newer(record: Mapping[str, Any]) -> bool:  # which `ledger.merge` refuses
        version = record.get("version")
        return isinstance(version, int) and version > ledger.VERSION

    if (records or damaged) and not any(ours(record) or newer(record) for record in records):
        count = len(records) + len(damaged)
        raise UserError(f"{file} is no ledger: none of its {count} lines is an entry; name a ledger.jsonl to import")


def verify(results: Path) -> int:
    from sam_repro.report import text
    from sam_repro.runs import verify as checks

    findings = checks.check(list(entries_of(results).values()), results)
    for finding in findings:
        print(text.printable(finding.text))
    wrong = sum(finding.wrong for finding in findings)
    print(f"{len(findings) - wrong} remarks, {wrong} contradictions")
    return 1 if wrong else 0
