"""`sam-repro sweep`: train what is missing of a table, and show one that has a column of the user's own."""

from __future__ import annotations

from sam_repro.errors import command
from sam_repro.report import commands as report
from sam_repro.sweep import __main__ as sweep
from sam_repro.sweep.options import parse
from sam_repro.words import HELP


@command
def main(words: list[str]) -> int:
    code = sweep.main(words)
    if code or set(words) & set(HELP):
        return code
    options = parse(words)
    if options.column and not options.dry_run:
        for word in options.table.split(","):
            report.render(word, options.budget, None, options.results, options.column)
    return code
