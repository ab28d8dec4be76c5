"""results/index.html: every table claimed beside measured, in one file that needs no network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path

from sam_repro.report import curves, discrepancies_view, page_cells, text
from sam_repro.report.page_parts import line, listing, sortable
from sam_repro.report.render_md import notes
from sam_repro.runs.entry import Entry
from sam_repro.runs.run import Run
from sam_repro.tables import discrepancies
from sam_repro.tables.papers import papers
from sam_repro.tables.papers import shown as shown_papers
from sam_repro.tables.points import points
from sam_repro.tables.prices import prices
from sam_repro.tables.results import Joined, Result, hardware, total_passes, versions
from sam_repro.tables.table import Line
from sam_repro.tables.verdicts import AGREES, DIFFERS

Rows = dict[str, discrepancies.Discrepancy]
_HERE = Path(__file__).parent


def render(tables: Sequence[Joined], entries: Mapping[str, Entry], results: Path) -> str:
    style, script = ((_HERE / f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    style, script = f"\n{style}", f"\n{script}"
    # A page without any of the papers' tables compares no paper with its code.
    compared = discrepancies.load() if any(joined.table.paper in papers() for joined in tables) else {}
    run = [joined for joined in tables if joined.any_run]
    rest = [joined for joined in tables if not joined.any_run]
    return "\n".join([
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><title>sam_repro: claimed and measured</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">',
        f"<style>{style}</style></head><body>",
        _head(tables, entries, bool(compared)),
        *(_table(joined, results, compared) for joined in run),
        page_cells.section([*run, *rest]),
        *(_table(joined, results, compared) for joined in rest),
        discrepancies_view.section(list(compared.values()), prices(tables)),
        _cost(entries),
        f"<script>{script}</script></body></html>",
        "",
    ])  # fmt: skip


def _policy(style: str, script: str) -> str:
    """Nothing but this very style and this very script; whatever a ledger's line may hold, it is text."""
    style_hash, script_hash = (b64encode(sha256(part.encode()).digest()).decode() for part in (style, script))
    return (
        f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; base-uri 'none'; "
        "form-action 'none'"
    )


def _head(tables: Sequence[Joined], entries: Mapping[str, Entry], compared: bool) -> str:
    paper = [result for joined in tables if joined.budget == "paper" for result in joined.results]
    claimed = [result for result in paper if result.cell.claim.mean is not None]
    kinds = [result.verdict.kind for result in claimed]
    shown = [point for joined in tables if not joined.table.own for point in points(joined)]
    seconds = sum(entry["seconds"] for entry in entries.values())
    facts = (
        (f"{sum(point.holds for point in shown)} of {len(shown)}", "points that were measured hold"),
        (f"{len(entries)}", "runs in the ledger"),
        (text.duration(seconds), "of training"),
        (f"{len(claimed)}", f"claims of {len({r.cell.table.partition('/')[0] for r in claimed})} papers"),
        (f"{sum(r.succeeded > 0 for r in claimed)}", "of them measured at the paper's budget"),
        (f"{kinds.count(AGREES)}", "of them agree"),
        (f"{kinds.count(DIFFERS)}", "of them differ"),
    )
    links = []
    for name, published in shown_papers(joined.table.paper for joined in tables).items():
        mine = [joined for joined in tables if joined.table.paper == name]
        items = "".join(f'<li><a href="#{_id(j)}">{escape(_short(j))}</a></li>' for j in mine)
        links.append(f"<ul><li><b>{escape(published.name)}</b></li>{items}</ul>")
    more = '<li><a href="#discrepancies">paper against code</a></li>' if compared else ""
    return (
        "<header><h1>Sharpness-aware minimization: claimed and measured</h1>"
        "<p>The papers' tables. In each cell the measured mean ± sample standard deviation stands above the claimed "
        "one; a verdict is given only where the runs had the paper's budget. Everything measured comes from the ledger "
        "of runs.</p>"
        f'<ul class="facts">{"".join(f"<li><b>{value}</b>{label}</li>" for value, label in facts)}</ul>'
        f'<nav aria-label="tables">{"".join(links)}'
        f'<ul><li><b>More</b></li><li><a href="#cells">all cells</a></li>{more}'
        '<li><a href="#cost">cost and hardware</a></li></ul></nav></header>'
    )


def _table(joined: Joined, results: Path, compared: Rows) -> str:
    table = joined.table
    name = f"{shown_papers([table.paper])[table.paper].name}, {_short(joined)}"
    warning = ""
    if table.is_miniature:
        warning = (
            '<p class="warn">In <b>miniature</b>: small data, a small net of the same family, its values chosen on '
            "held-out data. It judges the paper's point, and no level.</p>"
        )
    elif joined.table.own:
        warning = (
            '<p class="warn">A question of <b>our own</b>, in miniature: each row changes one choice of a default, and '
            "no price carries over to another net.</p>"
        )
    elif joined.budget != "paper":
        warning = (
            f'<p class="warn">Runs at the <b>{escape(joined.budget)}</b> budget, not the paper\'s: '
            "they show that and how things run, and reproduce nothing.</p>"
        )
    parts = [
        f'<section id="{_id(joined)}"><h2>{escape(name)}</h2>',
        f'<p>{escape(table.title)}. <span class="soft">{escape(table.source)}</span></p>{warning}',
        _grid(joined, compared)
        if joined.any_run
        else f"<details><summary>Nothing run yet: the claims</summary>{_grid(joined, compared)}</details>",
        _points(joined),
        listing(notes(joined)),
    ]
    if any(result.finished for result in joined.results):
        parts += [_details(joined, results), _trials(joined)]
        whole = curves.figure(joined) if table.figure else None
        drawn = curves.panels(joined, results)
        if whole or drawn:
            parts.append(curves.legend(joined))
        if whole:
            parts.append(f'<div class="figure">{whole}</div>')
        if drawn:
            parts.append(f'<h3>Learning curves</h3><div class="curves">{"".join(drawn)}</div>')
    return "".join(parts) + "</section>"


def _points(joined: Joined) -> str:
    counted, shown = text.levels(joined), points(joined)
    levels = f"<p>The levels: {escape(counted)}.</p>" if counted else ""
    if not shown:
        return levels
    return f"{levels}<p>{escape(text.points(shown))}.</p>{listing(map(text.point, shown))}"


def _grid(joined: Joined, compared: Rows) -> str:
    head = ["", *(column.label for column in joined.table.columns)]
    rows = []
    for row in joined.table.rows:
        cells = [_cell(joined, joined.result(row.id, column.id), column, compared) for column in joined.table.columns]
        rows.append(f'<tr><th scope="row">{escape(row.label)}</th>{"".join(cells)}</tr>')
    return sortable(head, rows)


def _cell(joined: Joined, result: Result, column: Line, compared: Rows) -> str:
    ours = joined.measured(result)
    key = ours.mean if ours else result.cell.claim.mean
    count = f' <span class="soft">({result.succeeded}/{result.finished})</span>' if result.collapsed else ""
    measured = text.measured(ours, text.decimals(result)) if ours or result.finished else "not run"
    claimed, chip = "", ""
    if not (joined.table.is_miniature or joined.table.own):
        has_claim = result.cell.claim.mean is not None
        claimed = f"claimed {escape(text.claimed(result.cell.claim))}" if has_claim else "claim not at hand"
        if result.finished:
            chip = f'<span class="chip {result.verdict.kind}">{escape(result.verdict.text)}</span>'
    concerned = discrepancies_view.links(joined.table.concerning(result.cell.row, column.id), compared)
    return (
        f'<td data-label="{escape(column.label)}" data-value="{"" if key is None else f"{key:.6g}"}">'
        f'<span class="ours{"" if ours else " none"}">{measured}{count}</span>'
        f'<span class="theirs">{claimed}</span>{chip}{concerned}</td>'
    )


def _details(joined: Joined, results: Path) -> str:
    labels = {line.id: line.label for line in (*joined.table.rows, *joined.table.columns)}
    head = ("cell", "best epoch", "last epoch", "95 % interval", "to the baseline", "runs", "time", "folders")
    rows = []
    for result in (r for r in joined.results if r.finished):
        places = text.decimals(result)
        ended = [item.run for item in result.runs if item.state in ("done", "collapsed", "failed")]
        values = (
            escape(text.measured(result.best, places)),
            escape(text.measured(result.last, places)),
            escape(text.interval(joined.measured(result), places)),
            escape(text.difference(result.difference, places)),
            escape(text.runs_of(result)),
            escape(text.duration(result.seconds)),
            " ".join(_run(run.id, run.seed, results) for run in ended),
        )
        means = [value.mean if value else None for value in (result.best, result.last)]
        difference = result.difference.value if result.difference else None
        keys = (*means, None, difference, None, result.seconds, None)
        rows.append(line(f"{labels[result.cell.row]}, {labels[result.cell.column]}", head, values, keys))
    inside = sortable(head, rows, small=True) + listing((*joined.hardware, *joined.versions))
    return f"<details><summary>Runs, intervals and differences</summary>{inside}</details>"


def _trials(joined: Joined) -> str:
    if (tried := text.trials(joined)) is None:
        return ""
    sentence, rows = tried
    lines = [line(row[0], text.TRIAL, [escape(cell) for cell in row[1:]]) for row in rows]
    body = sortable(text.TRIAL, lines, small=True) if lines else ""
    return f"<details><summary>{escape(sentence)}</summary>{body}</details>"


def _run(run_id: str, seed: int, results: Path) -> str:
    name = f"<code>{run_id}</code>"
    linked = f'<a href="runs/{run_id}/">{name}</a>' if Run.at(results, run_id).path.is_dir() else name
    return f'<span title="seed {seed}">{linked}</span>'


def _cost(entries: Mapping[str, Entry]) -> str:
    """What the ledger's runs took, by budget and hardware."""
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in entries.values():
        groups.setdefault((entry["budget"], hardware(entry), versions(entry)), []).append(entry)
    head = ("budget", "hardware", "versions", "runs", "passes", "time")
    rows = []
    for (budget, machine, version), mine in sorted(groups.items()):
        passes, seconds = total_passes(mine), sum(entry["seconds"] for entry in mine)
        values = (escape(machine), escape(version), str(len(mine)), text.large(passes), text.duration(seconds))
        rows.append(line(budget, head, values, (None, None, len(mine), passes, seconds)))
    body = (
        sortable(head, rows, small=True) if rows else "<p>The ledger is empty: nothing has been trained here yet.</p>"
    )
    return f'<section id="cost"><h2>Cost and hardware</h2>{body}</section>'


def _short(joined: Joined) -> str:
    number = joined.table.number
    name = f"table {number}" if number.isdigit() else number
    if number.startswith("fig"):
        name = "figure " + number.removeprefix("fig").replace("_", ", ")
    return name if joined.budget == "paper" else f"{name}, {joined.budget} budget"


def _id(joined: Joined) -> str:
    return f"{joined.table.paper}-{joined.table.number}-{joined.budget}"
