"""`sam-repro sweep`: train what is missing of a table, and show one that has a column of the user's own; or of a
measured figure, `figure=fsam/figA3`, and then measure it."""

from __future__ import annotations

from sam_repro.errors import UserError, command
from sam_repro.report import commands as report
from sam_repro.sweep import __main__ as sweep
from sam_repro.sweep.options import parse
from sam_repro.tables import studies
from sam_repro.tables.plan import PAPER
from sam_repro.words import HELP


@command
def main(words: list[str]) -> int:
    if any(word.startswith("figure=") for word in words):
        return _figure(words)
    code = sweep.main(words)
    if code or set(words) & set(HELP):
        return code
    options = parse(words)
    if options.column and not options.dry_run:
        for word in options.table.split(","):
            report.render(word, options.budget, None, options.results, options.column)
    return code


def _figure(words: list[str]) -> int:
    """The runs that the figure's study looks at, as a sweep of their cells; then the study."""
    from sam_repro.study import __main__ as study_command

    said = {key: value for key, equals, value in (word.partition("=") for word in words) if equals}
    for key in ("table", "cells", "column"):
        if key in said:
            raise UserError(f"{key}= and figure= exclude each other: the figure's file says which runs it is about")
    study = studies.of_figure(said["figure"])
    if study is None:
        names = ", ".join(one.figure for one in studies.load_all())
        raise UserError(f"figure={said['figure']}: no study measures it; there are {names}")
    runs = study.part(said.get("budget", PAPER)).runs
    if runs is not None:
        own = [word for word in words if word.partition("=")[0] not in ("figure", "budget")]
        cells = [f"cells={','.join(runs.cells)}"] if runs.cells else []
        swept = [f"table={runs.table}", *cells, f"budget={runs.budget}", *own]
        code = sweep.main(swept)
        if code or "--dry-run" in words:
            return code
    kept = [f"{key}={said[key]}" for key in ("budget", "results_dir") if key in said]
    return study_command.main([study.name, *kept])
