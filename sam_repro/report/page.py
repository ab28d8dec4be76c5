"""results/index.html: every table claimed beside measured, in one file that needs no network."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path

from sam_repro.report import curves, discrepancies_view, forest, page_cells, page_head, studies_view, text
from sam_repro.report.laid_out import laid_out, wide
from sam_repro.report.page_head import short
from sam_repro.report.page_parts import anchor_of, brief, file_of, line, listing, named_by_style, picture, sortable
from sam_repro.report.render_md import notes
from sam_repro.runs.entry import Entry
from sam_repro.tables import discrepancies
from sam_repro.tables.papers import papers
from sam_repro.tables.papers import shown as shown_papers
from sam_repro.tables.points import points
from sam_repro.tables.prices import prices
from sam_repro.tables.results import Joined, Result, hardware, total_passes, versions
from sam_repro.tables.table import Line

FORMATS = ("md", "tex", "csv", "json")
# Tables of text, with many rows of the same columns: where they are on the page, and their heads.
TEXTS = (("#cells", page_cells.HEAD), ("#discrepancies", discrepancies_view.HEAD), (".trials", text.TRIAL))
_HERE = Path(__file__).parent


def render(tables: Sequence[Joined], entries: Mapping[str, Entry], results: Path) -> str:
    style, script = ((_HERE / f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    names = "".join(named_by_style(*columns) for columns in TEXTS)
    style, script = f"\n{style}{curves.style()}{names}", f"\n{script}"
    # A page of other tables alone compares no paper with its code and shows none of their figures.
    of_papers = not tables or any(joined.table.paper in papers() for joined in tables)
    compared = discrepancies.load() if of_papers else {}
    more = {"studies": "figures and studies"} if of_papers else {}
    more |= {"discrepancies": "paper against code"} if compared else {}
    run = [joined for joined in tables if joined.any_run]
    rest = [joined for joined in tables if not joined.any_run]
    panels = [(joined, _drawn(joined, results)) for joined in (*run, *rest)]
    numbers = {name: number for number, name in enumerate(compared, start=1)}
    places = page_cells.Places(numbers, {anchor for _, drawn in panels for anchor in drawn})
    sections = [
        *(_table(joined, drawn, places, results) for joined, drawn in panels[: len(run)]),
        page_cells.section([*run, *rest], places),
        *(_table(joined, drawn, places, results) for joined, drawn in panels[len(run) :]),
        studies_view.section(results) if of_papers else "",
        discrepancies_view.section(list(compared.values()), prices(tables)),
        _cost(entries),
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8"><title>sam_repro: claimed and measured</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">',
            f"<style>{style}</style></head><body>",
            page_head.render(tables, entries, more),
            curves.grids(),
            "<main>",
            *map(brief, sections),
            "</main>",
            f"<script>{script}</script></body></html>",
            "",
        ]
    )


def _policy(style: str, script: str) -> str:
    """Nothing but this very style, this very script and pictures beside it; whatever a ledger's line may hold, it is
    text."""
    style_hash, script_hash = (b64encode(sha256(part.encode()).digest()).decode() for part in (style, script))
    return (
        f"default-src 'none'; img-src 'self'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _drawn(joined: Joined, results: Path) -> dict[str, str]:
    """Learning curves by the anchors of their panels. Twenty lines in a panel would tell nobody anything."""
    drawn = curves.panels(joined, results) if joined.any_run and not wide(joined) else {}
    return {anchor_of(joined, row): panel for row, panel in drawn.items()}


def _table(joined: Joined, drawn: Mapping[str, str], places: page_cells.Places, results: Path) -> str:
    table, links = joined.table, page_cells.rows_of(places, joined.table.discrepancies)
    name = f"{shown_papers([table.paper])[table.paper].name}, {short(joined)}"
    warning = ""
    if table.is_miniature:
        values = "chosen on held-out data" if table.tune else "not tuned"
        warning = (
            '<p class="warn">In <b>miniature</b>: small data, a small net of the same family, its values '
            f"{values}. It judges the paper's point, and no level.</p>"
        )
    elif joined.table.own:
        warning = (
            '<p class="warn">A question of <b>our own</b>, in miniature: nobody claims these numbers, and none of '
            "them carries over to another net.</p>"
        )
    elif joined.budget != "paper":
        warning = (
            f'<p class="warn">Runs at the <b>{escape(joined.budget)}</b> budget, not the paper\'s: '
            "they show that and how things run, and reproduce nothing.</p>"
        )
    parts = [
        f'<section id="{anchor_of(joined)}"><h2>{escape(name)}</h2>',
        f'<p>{escape(table.title)}. <span class="soft">{escape(table.source)}</span></p>{warning}',
        _grid(joined)
        if joined.any_run
        else f"<details><summary>Nothing run yet: the claims</summary>{_grid(joined)}</details>",
        picture(results / f"{file_of(joined)}.svg", results, f"{table.title}: accuracy over cost"),
        _points(joined),
        listing(notes(joined)),
        f'<p id="{anchor_of(joined)}-rows">Paper against code, every cell: {links}.</p>' if links else "",
        _downloads(joined),
    ]
    if any(result.finished for result in joined.results):
        parts += [listing((*joined.hardware, *joined.versions)), _trials(joined)]
        whole = curves.figure(joined) if table.figure else None
        if whole or drawn:
            parts.append(curves.legend(joined))
        if whole:
            parts.append(f'<div class="figure">{whole}</div>')
        if drawn:
            shown = "".join(f'<div id="{anchor}">{panel}</div>' for anchor, panel in drawn.items())
            parts.append(f'<h3>Learning curves, by epoch</h3><div class="curves">{shown}</div>')
    return "".join(parts) + "</section>"


def _points(joined: Joined) -> str:
    """What was decided, as a line of text and as a forest plot."""
    counted, shown, unit = text.levels(joined), points(joined), text.unit(joined).strip()
    levels = f"<p>The levels: {escape(counted)}.</p>" if counted else ""
    axis, name = f"measured minus claimed, {unit}".rstrip(", "), anchor_of(joined)
    levels += forest.draw(forest.of_levels(joined), axis, f"{name}-levels", joined.table.margin)
    if not shown:
        return levels
    claimed = "; claimed: ◇" if any(one.pair.claimed is not None for one in shown) else ""
    drawn = forest.draw(forest.of_points(joined), f"difference, {unit}".rstrip(", ") + claimed, f"{name}-points")
    return f"{levels}<p>{escape(text.points(shown))}.</p>{drawn}"


def _downloads(joined: Joined) -> str:
    """The table's files beside the page."""
    path = file_of(joined)
    links = " ".join(f'<a href="{escape(f"{path}.{form}")}" download>{form}</a>' for form in FORMATS)
    return f'<p class="soft">Download: {links}</p>'


def _grid(joined: Joined) -> str:
    layout = laid_out(joined)
    rows = []
    for beside, results in layout.lines:
        cells = [_cell(joined, result, above) for result, above in zip(results, layout.head, strict=True)]
        rows.append(f'<tr><th scope="row">{escape(beside.label)}</th>{"".join(cells)}</tr>')
    return sortable(["", *(above.label for above in layout.head)], rows)


def _cell(joined: Joined, result: Result, above: Line) -> str:
    ours = joined.measured(result)
    key = ours.mean if ours else result.cell.claim.mean
    count = f' <span class="soft">({result.succeeded}/{result.finished})</span>' if result.collapsed else ""
    measured = text.measured(ours, text.decimals(result)) if ours or result.finished else "not run"
    claimed, chip = "", ""
    if not (joined.table.is_miniature or joined.table.own):
        has_claim = result.cell.claim.mean is not None
        claimed = f"claimed {escape(text.claimed(result.cell.claim))}" if has_claim else "claim not at hand"
        if result.finished and has_claim:
            chip = f'<span class="chip {result.verdict.kind}">{escape(result.verdict.text)}</span>'
    anchor = anchor_of(joined, result.cell.row, result.cell.column)
    return (
        f'<td data-label="{escape(above.label)}" data-value="{"" if key is None else f"{key:.6g}"}">'
        f'<a class="ours{"" if ours else " none"}" href="#{anchor}">{measured}{count}</a>'
        f'<span class="theirs">{claimed}</span>{chip}</td>'
    )


def _trials(joined: Joined) -> str:
    if (tried := text.trials(joined)) is None:
        return ""
    sentence, rows = tried
    lines = [line(row[0], text.TRIAL, [*map(escape, row[1:])], labels=False) for row in rows]
    body = sortable(text.TRIAL, lines, small=True) if lines else ""
    return f'<details class="trials"><summary>{escape(sentence)}</summary>{body}</details>'


def _cost(entries: Mapping[str, Entry]) -> str:
    """What the ledger's runs took, by budget and hardware."""
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in entries.values():
        groups.setdefault((entry["budget"], hardware(entry), versions(entry)), []).append(entry)
    head = ("budget", "hardware", "versions", "runs", "passes", "time")
    rows = []
    for (budget, machine, version), mine in sorted(groups.items()):
        passes, seconds = total_passes(mine), math.fsum(entry["seconds"] for entry in mine)
        values = (escape(machine), escape(version), str(len(mine)), text.large(passes), text.duration(seconds))
        rows.append(line(budget, head, values, (None, None, len(mine), passes, seconds)))
    body = (
        sortable(head, rows, small=True) if rows else "<p>The ledger is empty: nothing has been trained here yet.</p>"
    )
    return f'<section id="cost"><h2>Cost and hardware</h2>{body}</section>'
