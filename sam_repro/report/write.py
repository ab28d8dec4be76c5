"""Write the tables in every format. The same ledger gives the same bytes: no clock, no order of a directory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sam_repro.config.budget import names
from sam_repro.errors import UserError
from sam_repro.files.atomic import write_atomic
from sam_repro.report import bands, passes, render_data, render_md, render_tex, studies
from sam_repro.report.laid_out import wide
from sam_repro.report.page_parts import file_of
from sam_repro.runs.entry import Entry
from sam_repro.tables.plan import PAPER, Planned
from sam_repro.tables.results import Joined, join
from sam_repro.tables.table import MINI, Table

RENDERERS = {
    "md": render_md.render,
    "tex": render_tex.render,
    "json": render_data.render_json,
    "csv": render_data.render_csv,
}
Plans = Mapping[str, Mapping[str, list[Planned]]]  # budget -> table -> cells


def budgets(entries: Mapping[str, Entry], tables: Sequence[Table]) -> list[str]:
    """The paper's, then those of which the ledger has runs; runs of a miniature say no budget of their own."""
    small = {MINI for table in tables if table.miniature}
    return [PAPER, *sorted(small | {entry["budget"] for entry in entries.values()} & set(names()) - {PAPER})]


def joined(tables: Sequence[Table], planned: Plans, entries: Mapping[str, Entry], results: Path) -> list[Joined]:
    """Every table at every budget; of the budgets below the paper's only where there is a run, and none of our own
    tables, which are small themselves."""
    found = [
        _joined(table.at(budget), cells, entries, budget, results)
        for table in tables
        for budget, cells in planned.items()
        if budget == PAPER or not table.own
    ]
    return [item for item in found if item.budget == PAPER or item.any_run or len(planned) == 1]


def _joined(
    table: Table, cells: Mapping[str, list[Planned]], entries: Mapping[str, Entry], budget: str, results: Path
) -> Joined:
    found = join(table, cells[table.ref], entries, budget, results)
    if not table.trials:
        return found
    return replace(found, trials=join(table.trials, cells[table.trials.ref], entries, budget, results))


def one(table: Table, planned: Plans, entries: Mapping[str, Entry], results: Path, form: str) -> str:
    return "\n".join(RENDERERS[form](item) for item in joined([table], planned, entries, results))


def everything(
    tables: Sequence[Table],
    planned: Plans,
    entries: Mapping[str, Entry],
    results: Path,
    form: str | None,
    *,
    page: bool,
) -> list[Path]:
    """results/tables (or figures)/<paper>/<table>[.<budget>].<format>, and the page. Returns what was written."""
    found = joined(tables, planned, entries, results)
    paths = []
    for item in found:
        for name, renderer in RENDERERS.items():
            if form in (None, name):
                paths.append(results / f"{file_of(item)}.{name}")
                _write(paths[-1], renderer(item))
        if form is None and (picture := _picture(item)):
            paths.append(results / f"{file_of(item)}.svg")
            _write(paths[-1], picture)
    if form is None and page:
        paths += studies.draw_all(results)
    if form == "html" or (form is None and page):
        from sam_repro.report import page as html

        paths.append(results / "index.html")
        _write(paths[-1], html.render(found, entries, results))
    return paths


def _picture(item: Joined) -> str | None:
    """Accuracy over cost: of a miniature, and of a question of our own that has columns to compare."""
    measured = {place for row in item.table.rows for place, _ in passes.shown(item, row.id)}
    if item.table.is_miniature or (item.table.own and len(measured) > 1):
        return bands.render(item) if wide(item) else passes.render(item)
    return None


def _write(path: Path, content: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)
    except OSError as error:
        raise UserError(f"can't write {path}: {os.strerror(error.errno or 0)}; choose another --results-dir") from error
