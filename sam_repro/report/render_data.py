"""A table for other programs: JSON with everything, CSV with a line a cell."""

from __future__ import annotations

import json
from typing import Any

from sam_repro.report.comma import separated
from sam_repro.tables.points import Shown, points, said
from sam_repro.tables.results import Joined, Result
from sam_repro.tables.said import Answer
from sam_repro.tables.statistics import Sample
from sam_repro.tables.table import STATISTICS, Pair
from sam_repro.tables.verdicts import Difference

COLUMNS = (
    *("table", "budget", "row", "column", "metric", "unit", "statistic"),
    *("claimed_mean", "claimed_std", "claimed_n", "claimed_succeeded", "claim_kind"),
    *(f"{kind}_{part}" for kind in STATISTICS for part in ("mean", "std", "low", "high")),
    *("planned", "finished", "succeeded", "difference", "difference_low", "difference_high", "difference_rule"),
    *("verdict", "margin", "delta", "delta_low", "delta_high", "delta_rule", "success_p"),
    *("passes", "seconds", "run_ids"),
)


def render_json(joined: Joined) -> str:
    table = joined.table
    content = {
        "table": table.ref,
        "title": table.title,
        "source": table.source,
        "budget": joined.budget,
        "statistic": table.statistic,
        "rows": [{"id": line.id, "label": line.label} for line in table.rows],
        "columns": [{"id": line.id, "label": line.label} for line in table.columns],
        "footnotes": list(table.footnotes),
        "discrepancies": list(table.concerning()),
        "hardware": list(joined.hardware),
        "versions": list(joined.versions),
        "points": [_point(shown) for shown in points(joined)],
        "said": [_said(answer) for answer in said(joined)],
        "trials": [record(joined.trials, r) for r in joined.trials.results if r.finished] if joined.trials else [],
        "cells": [{**record(joined, result), "why": result.why} for result in joined.results],
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def render_csv(joined: Joined) -> str:
    return separated((record(joined, result) for result in joined.results), COLUMNS)


def record(joined: Joined, result: Result) -> dict[str, Any]:
    cell, claim = result.cell, result.cell.claim
    values = {
        "table": cell.table,
        "budget": joined.budget,
        "row": cell.row,
        "column": cell.column,
        "metric": cell.metric,
        "unit": cell.unit,
        "statistic": joined.table.statistic,
        "claimed_mean": claim.mean,
        "claimed_std": claim.std,
        "claimed_n": claim.n,
        "claimed_succeeded": claim.succeeded,
        "claim_kind": claim.kind,
        **_samples(result),
        "planned": result.planned,
        "finished": result.finished,
        "succeeded": result.succeeded,
        **_difference("difference", result.difference),
        "verdict": result.verdict.kind,
        "margin": joined.table.margin,
        **_difference("delta", result.verdict.difference),
        "success_p": _round(result.verdict.success_p),
        "passes": _round(result.passes),
        "seconds": _round(result.seconds),
        "run_ids": [item.run.id for item in result.runs],
    }
    assert tuple(values) == COLUMNS
    return values


def _point(shown: Shown) -> dict[str, Any]:
    found = shown.point.difference
    return {
        **_places(shown.pair),
        "claimed": _round(shown.pair.claimed),
        "difference": _round(found.value),
        "interval": None if found.low is None else [_round(found.low), _round(found.high)],
        "p": _round(found.p),
        "verdict": shown.point.verdict,
        "holds": shown.holds,
        "so_far": shown.so_far,
        "rule": found.rule,
    }


def _said(answer: Answer) -> dict[str, Any]:
    return {
        "words": answer.said.words,
        answer.said.kind: list(answer.said.of),
        "verdict": answer.verdict,
        "parts": [{"of": list(names), **_difference("difference", found)} for names, found in answer.parts],
    }


def _samples(result: Result) -> dict[str, float | None]:
    return {
        f"{kind}_{name}": _part(getattr(result, kind), name)
        for kind in STATISTICS
        for name in ("mean", "std", "low", "high")
    }


def _places(pair: Pair) -> dict[str, str]:
    """A row and two of its columns, or a column and two of its rows."""
    (row, column), (other_row, other_column) = pair.better, pair.worse
    if row == other_row:
        return {"row": row, "better": column, "worse": other_column}
    return {"column": column, "better": row, "worse": other_row}


def _difference(name: str, found: Difference | None) -> dict[str, Any]:
    return {
        name: _round(found.value) if found else None,
        f"{name}_low": _round(found.low) if found else None,
        f"{name}_high": _round(found.high) if found else None,
        f"{name}_rule": found.rule if found else None,
    }


def _part(value: Sample | None, name: str) -> float | None:
    return None if value is None else _round(getattr(value, name))


def _round(value: float | None) -> float | None:
    """Beyond six places there is only the order of summation."""
    return None if value is None else round(value, 6)
