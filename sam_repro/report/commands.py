"""What each command of `sam-repro report` does. Heavy imports wait until a command needs them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sam_repro.config.budget import names
from sam_repro.errors import USER_ERROR, UserError, hint
from sam_repro.report import studies_view
from sam_repro.report.comma import separated
from sam_repro.report.ledger_commands import entries_of
from sam_repro.tables import spec
from sam_repro.tables.chosen import named, readable
from sam_repro.tables.extend import Column
from sam_repro.tables.table import Table

if TYPE_CHECKING:
    from sam_repro.tables.plan import Planned


def list_tables() -> int:
    tables, code = _tables(None)
    for table in tables:
        print(f"{table.ref:<19} {table.title}")
    print(studies_view.listed(), end="")
    return code


def print_claims(ref: str | None, form: str | None) -> int:
    from sam_repro.report import text
    from sam_repro.tables import claims

    read, code = _tables(ref)
    tables = [table for table in read if ref or not table.figure]
    if form:
        found = claims.claims(tables)
        print(separated(found) if form == "csv" else json.dumps(found, indent=1, ensure_ascii=False) + "\n", end="")
        return code
    for table in tables:
        print(f"{table.ref}  {table.title}  ({table.source})")
        for cell in table.cells:
            print(
                f"  {cell.row:<24} {cell.column:<16} {text.claimed(cell.claim):<22} {cell.unit} {cell.metric}".rstrip()
            )
    return code


def discrepancies(ref: str | None, form: str | None, results: Path) -> int:
    """Where papers, released code and this project differ: every row, or those that concern a table."""
    from sam_repro.report import discrepancies_view, write
    from sam_repro.tables.discrepancies import concerning, load
    from sam_repro.tables.prices import prices

    rows = load()
    shown = concerning(spec.load(ref).concerning(), rows) if ref else list(rows.values())
    own = [table for table in readable(spec.names())[0] if table.own]
    planned = _planned([t for table in own for t in table.with_trials("paper")], "paper")
    measured = prices(write.joined(own, {"paper": planned}, entries_of(results), results))
    if form == "json":
        print(json.dumps(discrepancies_view.records(shown, measured), indent=1, ensure_ascii=False))
    else:
        print(discrepancies_view.text(shown, measured), end="")
    return 0


def plan(
    ref: str | None,
    budget: str,
    device: str,
    results: Path,
    form: str | None,
    added: Column | None = None,
    link: str | None = None,
) -> int:
    from sam_repro.report import plan_view
    from sam_repro.tables import wire

    network = None if link is None else wire.link_of(link)

    tables, code = _tables(ref, added)
    asked = {table.ref for table in tables}
    others = [table for table in readable(spec.names())[0] if table.ref not in asked]
    tables = [part for table in tables for part in table.with_trials(budget)]
    everything = _planned([*tables, *others], budget)  # a run may be shared with the others
    entries = entries_of(results)
    found = plan_view.summarise({t.ref: everything[t.ref] for t in tables}, everything, entries, results, device)
    said = (
        None if network is None else wire.rows(((t.ref, p) for t in tables for p in everything[t.ref]), device, network)
    )
    found["studies"] = [] if added else studies_view.planned(studies_view.chosen(ref), budget, results)
    match form:
        case "json":
            print(json.dumps(found | ({"link": link, "wire": said} if said is not None else {}), indent=1))
        case "csv":
            print(separated(found["cells"]), end="")
        case _:
            print(plan_view.text(found, budget), end="")
            if network is not None and said is not None:
                print("\n" + plan_view.wire(said, network.words, network.ranks, device), end="")
            print(studies_view.text(found["studies"]), end="")
    return _broken([p for t in tables for p in everything[t.ref]]) or code


def status(ref: str | None, budget: str, results: Path, form: str | None, added: Column | None = None) -> int:
    from sam_repro.report import status_view

    tables, code = _tables(ref, added)
    planned = _planned(tables, budget)
    entries = entries_of(results)
    found = status_view.collect(tables, planned, entries, results)
    found["studies"] = [] if added else studies_view.planned(studies_view.chosen(ref), budget, results)
    match form:
        case "json":
            print(json.dumps(found, indent=1))
        case "csv":
            print(separated(status_view.rows(found)), end="")
        case _:
            print(status_view.text(found, single=len(tables) == 1), studies_view.text(found["studies"]), sep="", end="")
    return _broken([p for t in tables for p in planned[t.ref]]) or code


def render(ref: str | None, budget: str | None, form: str | None, results: Path, added: Column | None = None) -> int:
    from sam_repro.report import write

    if added and form == "html":
        raise UserError("column=: the page has the published tables alone; print yours as md, tex, json or csv")
    if ref and form == "html":
        named(ref)
    tables, code = _tables(ref if form != "html" else None, added)  # the page is one, with every table
    entries = entries_of(results)
    budgets = [budget] if budget else write.budgets(entries, tables)
    planned = {name: _planned([t for table in tables for t in table.with_trials(name)], name) for name in budgets}
    mine = [p for cells in planned.values() for cell in cells.values() for p in cell if p.broken] if added else []
    if mine:
        raise UserError(f"cell {mine[0].cell.name}: {mine[0].why}")
    if ref and form != "html":
        print("\n".join(write.one(table, planned, entries, results, form or "md") for table in tables), end="")
    paths = write.everything(tables, planned, entries, results, form, page=ref is None)
    for path in paths:
        print(path, file=sys.stderr if ref else sys.stdout)
    return _broken([p for cells in planned.values() for t in tables for p in cells[t.ref]]) or code


def choose(ref: str | None, budget: str, results: Path) -> int:
    """The file of a tuned table's choices, from the trials in the ledger."""
    from sam_repro.tables import choosing

    table = spec.load(ref or "").at(budget)
    if not table.tune:
        raise UserError(f"table {ref} has no `tune:` at budget={budget}: there is nothing to choose")
    choosing.choosable(table, budget)
    chosen = choosing.choose(table, budget, entries_of(results), results)
    for line in chosen.open():
        print(line, file=sys.stderr)
    print(choosing.write(table, chosen))
    return 0


def wanted(hours: str, device: str, results: Path) -> int:
    """The missing runs that decide most verdicts in so many hours, with their commands."""
    from sam_repro.report import plan_view
    from sam_repro.tables import wanted as choice
    from sam_repro.tables.plan import PAPER
    from sam_repro.tables.table import MINI
    from sam_repro.tables.tuning import assumed

    time = plan_view.hours_of(hours)
    tables, code = _tables(None)
    candidates = []
    for budget, those in ((PAPER, tables), (MINI, [table.at(MINI) for table in tables if table.miniature])):
        trials = [table.trials for table in those if table.trials]
        planned = _planned([*map(assumed, those), *trials], budget)
        for table in those:
            of_trials = planned[table.trials.ref] if table.trials else ()
            candidates.append(choice.Candidate(table, budget, planned[table.ref], of_trials))
    found = choice.wanted(candidates, entries_of(results), results, device, time)
    print(plan_view.wanted(found, time, device), end="")
    return code


def judge_lines() -> int:
    from sam_repro.report.judge import judge

    for verdict in judge(sys.stdin):
        print(verdict, flush=True)
    return 0


def runs(words: list[str], results: Path, out: Path) -> int:
    from sam_repro.report import demo

    if not words:
        raise UserError("name the runs: ids or folders")
    from sam_repro.runs.run import Run

    folders = [Path(word) if Path(word).is_dir() else Run.at(results, word).path for word in words]
    table, paths = demo.write(folders, out)
    print(table)
    for path in paths:
        print(path)
    return 0


def _tables(word: str | None, added: Column | None = None) -> tuple[list[Table], int]:
    """Those of this name, of this paper, or all; and the exit code: one that is no table does not stop the others."""
    if added and not word:
        raise UserError("column=: name the table that it is added to, as in table=asam/2")
    tables, mistakes = readable(named(word) if word else spec.names(), added=added)
    if mistakes and not tables:
        raise UserError(mistakes[0])
    for mistake in mistakes:
        print(f"error: {mistake}", file=sys.stderr)
    return tables, USER_ERROR if mistakes else 0


def _planned(tables: list[Table], budget: str) -> dict[str, list[Planned]]:
    from sam_repro.tables.plan import plan as plan_tables

    if budget not in names():
        raise UserError(f"budget={budget}: unknown budget: {hint(budget, names())}")
    return plan_tables(tables, budget)


def _broken(planned: list[Planned]) -> int:
    """Everything that could be done has been done; a spec that names what does not exist is still an error."""
    broken = [cell for cell in planned if cell.broken]
    if not broken:
        return 0
    more = f" (and {len(broken) - 1} more cells)" if len(broken) > 1 else ""
    print(f"error: cell {broken[0].cell.name}: {broken[0].why}{more}", file=sys.stderr)
    return USER_ERROR
