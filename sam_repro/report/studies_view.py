"""The studies in `report list`, `plan` and `status`, and on the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from sam_repro.errors import USER_ERROR, UserError
from sam_repro.report import studies
from sam_repro.report.page_parts import listing, picture
from sam_repro.tables import spec
from sam_repro.tables.plan import PAPER
from sam_repro.tables.studies import Study, load_all, of_figure


def chosen(word: str | None) -> list[Study]:
    """All, those of a paper, or the one of this figure or name."""
    if word is None:
        return load_all()
    one = of_figure(word)
    return [one] if one else [study for study in load_all() if study.paper == word]


def measures(word: str) -> bool:
    """Whether a study measures this figure; `load_all` is not asked where the word is a table's."""
    return word not in spec.names() and of_figure(word) is not None


def listed() -> str:
    return "".join(f"{study.figure:<19} {study.title} (sam-repro study {study.name})\n" for study in load_all())


def planned(found: Sequence[Study], budget: str, results: Path) -> list[dict[str, Any]]:
    rows = []
    for study in found:
        if budget not in study.parts:
            continue
        part = study.part(budget)
        rows.append(
            {
                "figure": study.figure,
                "study": study.name,
                "state": studies.state(study, results, budget),
                "takes": part.takes,
                "command": studies.command(study, budget),
                "runs": part.runs.command if part.runs else None,
            }
        )
    return rows


def text(rows: Sequence[dict[str, Any]]) -> str:
    """A line a figure: its state, what measuring it takes, and which runs it is about."""
    if not rows:
        return ""
    width = max(len(row["figure"]) for row in rows)
    lines = []
    for row in rows:
        lines.append(f"{row['figure']:<{width}}  {row['state']}, takes {row['takes']}: {row['command']}")
        if row["runs"] and row["state"] == "missing":
            lines.append(f"{'':<{width}}  its runs: {row['runs']}")
    return "\n".join(lines) + "\n"


def show(word: str, budget: str, results: Path, form: str | None) -> int:
    """Plan or state of a figure that a study measures."""
    rows = planned(chosen(word), budget, results)
    if not rows:
        raise UserError(f"budget={budget}: {word} has none")
    print(json.dumps({"studies": rows}, indent=1) + "\n" if form == "json" else text(rows), end="")
    return 0


def render(word: str, results: Path) -> int:
    """The pictures of one figure, from its stored numbers."""
    study = of_figure(word)
    assert study
    stored = [one for budget in study.parts if (one := studies.read(study, results, budget))]
    if not stored:
        print(f"{study.figure}: nothing measured; {studies.command(study, PAPER)}")
        return USER_ERROR
    for one in stored:
        print(*studies.draw(study, one, results), *studies.claims(study, one), sep="\n")
    return 0


def section(results: Path) -> str:
    """Every figure that a study measures: picture, caption and claims; of the others what would make them."""
    parts = []
    for study in load_all():
        found = [one for budget in study.parts if (one := studies.read(study, results, budget))]
        parts.append(
            f'<h3 id="study-{study.name}">{escape(study.title)}</h3><p class="soft">{escape(study.source)}</p>'
        )
        parts += [_one(study, stored, results) for stored in found]
        if not found:
            hint = f"<p>Not measured: <code>{escape(studies.command(study, PAPER))}</code></p>"
            parts.append(hint + listing(studies.claims(study, None)))
        if study.notes:
            parts.append(f"<details><summary>What was left open</summary>{listing(study.notes)}</details>")
    return f'<section id="studies"><h2>Figures and studies</h2>{"".join(parts)}</section>'


def _one(study: Study, stored: studies.Stored, results: Path) -> str:
    file = study.folder(results, stored.budget) / f"{studies.PICTURE}.svg"
    drawn = picture(file, results, f"{study.title_at(stored.budget)}. {stored.caption}")
    small = "" if stored.budget == PAPER else '<p class="warn">In <b>miniature</b>: it judges no level.</p>'
    chips = "".join(_claim(study, name, one) for name, one in stored.claims.items() if name in study.claims)
    folder = f"figures/{file.parent.name}"
    links = " ".join(
        f'<a href="{folder}/{name}">{name}</a>'
        for name in (studies.FILE, *(f"{studies.PICTURE}.{form}" for form in ("svg", "png", "pdf")))
    )
    return f'{small}{drawn}<ul class="notes">{chips}</ul><p class="soft">{links}</p>'


def _claim(study: Study, name: str, one: studies.Judged) -> str:
    claim = study.claims[name]
    kind = {True: "agrees", False: "differs", None: "undecided"}[one.holds]
    return (
        f"<li>{escape(claim.says)} ({escape(claim.where)}) "
        f'<span class="chip {kind}">{studies.HOLDS[one.holds]}</span> {escape(one.measured)}</li>'
    )
