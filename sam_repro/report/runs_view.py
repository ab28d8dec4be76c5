"""Runs beside each other, as text, Markdown, LaTeX, CSV or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sam_repro.files.lines import to_json
from sam_repro.report import text
from sam_repro.report.comma import separated
from sam_repro.report.render_md import grid
from sam_repro.report.render_tex import escape
from sam_repro.runs.compare import Shown, differing, labels, row

FORMATS = ("csv", "json", "md", "tex")


def rows(shown: Sequence[Shown]) -> list[dict[str, Any]]:
    """For programs: every fact of every run, in the same columns."""
    fields = differing(shown)
    found = [{"label": label, **row(one, fields)} for label, one in zip(labels(shown), shown, strict=True)]
    columns = list(dict.fromkeys(key for line in found for key in line))
    return [{key: line.get(key) for key in columns} for line in found]


def render(shown: Sequence[Shown], form: str | None) -> str:
    if form == "json":
        return json.dumps(to_json(rows(shown)), indent=1, ensure_ascii=False) + "\n"
    if form == "csv":
        found = rows(shown)
        return separated(found, list(found[0]) if found else ["label", "run"])
    head, lines = _for_people(shown)
    if form == "md":
        return grid(head, lines) + "\n"
    if form == "tex":
        return _tex(head, lines)
    return aligned([head, *lines])


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns for a terminal."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "".join("  ".join(map(str.ljust, line, widths)).rstrip() + "\n" for line in lines)


def differences(shown: Sequence[Shown]) -> str:
    """A line a field in which the runs differ, a column a run."""
    fields = ["method", *differing(shown), "seed"]
    values = [{**row(one, differing(shown))} for one in shown]
    told = [[field, *(_cell(value.get(field)) for value in values)] for field in fields]
    lines = [line for line in told if len(set(line[1:])) > 1]
    return aligned([["", *(one.run.id for one in shown)], *lines, *_results(shown)])


def _results(shown: Sequence[Shown]) -> list[list[str]]:
    names = dict.fromkeys(metric.name for one in shown for metric in one.metrics)
    return [
        [f"{name} {kind}", *(_cell(one.results.get(name, {}).get(kind)) for one in shown)]
        for name in names
        for kind in ("last", "best")
    ]


def details(one: Shown) -> str:
    """All that is known of one run."""
    facts: Mapping[str, Any] = {**row(one, sorted(set(one.fields) - {"seed"}))}
    return aligned([[key, _cell(value)] for key, value in facts.items() if value not in (None, "")])


def _for_people(shown: Sequence[Shown]) -> tuple[list[str], list[list[str]]]:
    names = list(dict.fromkeys(one.metrics[0].name for one in shown if one.metrics))
    head = ["run", "", "status", *(f"{name.replace('_', ' ')}, {kind}" for name in names for kind in ("last", "best"))]
    lines = []
    for label, one in zip(labels(shown), shown, strict=True):
        values = [_cell(one.results.get(name, {}).get(kind)) for name in names for kind in ("last", "best")]
        passes, seconds = text.large(one.passes), text.NONE if one.seconds is None else text.duration(one.seconds)
        lines.append([one.run.id, label, one.status, *values, passes, seconds])
    return [*head, "passes", "time"], lines


def _tex(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    first, *rest = (" & ".join(map(escape, line)) + r" \\" for line in (head, *lines))
    columns = "l" * 3 + "r" * (len(head) - 3)
    body = [r"\toprule", first, r"\midrule", *rest, r"\bottomrule"]
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", *(f"  {line}" for line in body), r"\end{tabular}", ""])


def _cell(value: Any) -> str:
    if value is None:
        return text.NONE
    return f"{value:.6g}" if isinstance(value, float) else str(value)
