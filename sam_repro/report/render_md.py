"""A table as Markdown: first as the paper lays it out, claimed → measured, then a line for each cell that has runs.

Where the paper's layout has more than eight columns, rows and columns are swapped (`laid_out.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from sam_repro.report import text
from sam_repro.report.laid_out import laid_out
from sam_repro.tables.points import points, said
from sam_repro.tables.results import Joined, Result
from sam_repro.tables.table import Table


def render(joined: Joined) -> str:
    table = joined.table
    parts = [f"## {heading(joined)}", f"{table.title}. Source: {table.source}.", _grid(joined)]
    seen = [result for result in joined.results if result.finished]
    if seen:
        parts.append(
            f"Measured is the {text.EPOCHS[table.statistic]}, "
            "mean ± sample standard deviation over the runs that succeeded."
        )
        names = (text.EPOCHS[kind] for kind in text.epochs(joined))
        head = ("row", "column", "claimed", *names, "runs", "95 % interval", "to the baseline", "verdict")
        parts.append(grid(head, [_detail(joined, result) for result in seen]))
        if counted := text.levels(joined):
            parts.append(f"The levels: {counted}.")
        if shown := points(joined):
            parts.append(f"{text.points(shown)}.")
            parts += [f"- {text.point(one)}" for one in shown]
        if tried := text.trials(joined):
            parts += [f"{tried[0]}.", grid(text.TRIAL, tried[1])]
        parts += [f"- Hardware: {text.markdown(name)}" for name in joined.hardware]
        parts += [f"- Versions: {text.markdown(name)}" for name in joined.versions]
    parts += [f"- {note}" for note in notes(joined)]
    return _spaced(parts)


def heading(joined: Joined) -> str:
    if joined.table.own and joined.budget == "paper":
        return f"{joined.table.ref}: a question of our own"
    if joined.table.is_miniature:
        return f"{joined.table.ref} in miniature: it judges the paper's point, and no level"
    return f"{joined.table.ref}" + (
        f" at the {joined.budget} budget, not the paper's" if joined.budget != "paper" else ""
    )


def notes(joined: Joined) -> list[str]:
    lines = [*joined.table.rows, *joined.table.columns]
    why = sorted({result.why.rstrip(".") for result in joined.results if result.why})
    own = [f"{line.label}: {line.footnote}" for line in lines if line.footnote]
    return [
        *(f"{text.said(joined, answer)}." for answer in said(joined)),
        *own,
        *joined.table.footnotes,
        *_rules(joined),
        *_discrepancies(joined.table),
        *([f"No miniature: {joined.table.no_miniature}."] if joined.table.no_miniature else []),
        *_without(joined.table),
        *(f"Not run: {reason}." for reason in why),
    ]


def _rules(joined: Joined) -> list[str]:
    """By what margin a level is judged, and what is assumed where the paper prints less than mean, deviation and n."""
    claims = [cell.claim for cell in joined.table.cells if cell.claim.mean is not None]
    if not claims:
        return []
    spread = [claim for claim in claims if claim.std is not None]
    rules = [f"two levels are one within {text.margin(joined)}"]
    if len(spread) < len(claims):
        rules.append("where no deviation is printed the paper's runs are taken to spread as ours do")
    if any(claim.n is None for claim in spread):
        rules.append("no number of runs is printed, so a claim counts as one run of the deviation that is")
    return [f"Verdicts: {'; '.join(rules)}."]


def _without(table: Table) -> list[str]:
    """The rows and columns that a miniature leaves out, those of one reason together."""
    alike = dict[str, list[str]]()
    for label, why in table.without:
        alike.setdefault(why, []).append(label)
    return [f"Left out of the miniature: {', '.join(labels)}: {why}." for why, labels in alike.items()]


def _discrepancies(table: Table) -> list[str]:
    """Which rows of docs/discrepancies.yaml concern which cells, by their names."""
    named = [("every cell", table.discrepancies)]
    named += [(line.label, line.discrepancies) for line in (*table.rows, *table.columns)]
    shown = "; ".join(f"{label}: {', '.join(ids)}" for label, ids in named if ids)
    return [f"Differences and unstated choices: {shown}."] if shown else []


def _grid(joined: Joined) -> str:
    layout = laid_out(joined)
    rows = [[line.label, *(_both(joined, result) for result in cells)] for line, cells in layout.lines]
    return grid(("", *(line.label for line in layout.head)), rows)


def _both(joined: Joined, result: Result) -> str:
    ours = text.measured(joined.measured(result), text.decimals(result))
    return ours if joined.table.is_miniature or joined.table.own else f"{text.claimed(result.cell.claim)} → {ours}"


def _detail(joined: Joined, result: Result) -> list[str]:
    places = text.decimals(result)
    labels = {line.id: line.label for line in (*joined.table.rows, *joined.table.columns)}
    return [
        labels[result.cell.row],
        labels[result.cell.column],
        text.claimed(result.cell.claim),
        *(text.measured(getattr(result, kind), places) for kind in text.epochs(joined)),
        text.runs_of(result),
        text.interval(joined.measured(result), places),
        text.difference(result.difference, places),
        result.verdict.text,
    ]


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(text.printable(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def _spaced(parts: Sequence[str]) -> str:
    """An empty line between paragraphs, none inside a list."""
    out = ""
    for before, part in zip(["", *parts], parts, strict=False):
        out += ("\n" if part.startswith("- ") and before.startswith("- ") else "\n\n" if out else "") + part
    return out + "\n"
