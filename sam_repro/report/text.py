"""How numbers look in every format: as the papers print them, or a dash."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from sam_repro.tables.points import Shown, by_chance
from sam_repro.tables.results import Joined, Result
from sam_repro.tables.said import Answer
from sam_repro.tables.statistics import Sample
from sam_repro.tables.table import STATISTICS, Claim, Line, Tune
from sam_repro.tables.tuning import trial_column
from sam_repro.tables.verdicts import AGREES, DIFFERS, UNDECIDED, Difference

NONE = "–"
EPOCHS = {"best": "best epoch", "last": "last epoch", "picked": "epoch picked on validation"}
LEVELS = {AGREES: "agree", DIFFERS: "differ", UNDECIDED: "undecided"}


def claimed(claim: Claim) -> str:
    if claim.mean is None:
        return NONE
    return claim.text + (f" ({claim.succeeded}/{claim.n})" if claim.succeeded is not None else "")


def epochs(joined: Joined) -> list[str]:
    """The statistics to show. Picked on validation is an epoch only where runs have that split beside the test set."""
    return [kind for kind in STATISTICS if kind != "picked" or any(result.picked for result in joined.results)]


def measured(value: Sample | None, decimals: int) -> str:
    """mean ± std; a single run has no std."""
    if value is None:
        return NONE
    spread = "" if value.std is None else f" ± {value.std:.{decimals}f}"
    return f"{value.mean:.{decimals}f}{spread}"


def interval(value: Sample | None, decimals: int) -> str:
    if value is None or value.low is None or value.high is None:
        return NONE
    return f"[{value.low:.{decimals}f}, {value.high:.{decimals}f}]"


def difference(found: Difference | None, decimals: int) -> str:
    return NONE if found is None else found.said(decimals)


def point(shown: Shown) -> str:
    """ "40%: ASAM over SGD +5.47 [+4.41, +6.53], claimed +3.21: same sign shown"."""
    if shown.own:
        found, verdict = shown.point.difference, shown.point.verdict
        if verdict != UNDECIDED:
            verdict = "higher" if found.value > 0 else "lower"
        return f"{shown.better}, less {shown.worse}: {found.said(2)}: {verdict}{_of_what(shown)}"
    measured = f"{shown.where}: {shown.better} over {shown.worse} {shown.point.difference.said(2)}"
    printed = "" if shown.pair.claimed is None else f", claimed {shown.pair.claimed:+.2f}"
    return f"{measured}{printed}: {shown.point.verdict}{_of_what(shown)}"


def _of_what(shown: Shown) -> str:
    """A verdict's runs, where some are missing or failed."""
    so_far = " so far" if shown.so_far else ""
    (lost, of), (others, of_others) = shown.failed
    return f"{so_far}; {lost} of {of} runs failed, and {others} of {of_others}" if lost or others else so_far


def points(shown: Sequence[Shown]) -> str:
    """How many of a table's points hold, in a sentence."""
    held = sum(one.holds for one in shown)
    if any(one.own for one in shown):
        return (
            f"The differences: {held} of {len(shown)} stand after Holm's correction; if there were none, "
            f"{by_chance(shown):.1f} would leave out 0 by chance"
        )
    return (
        f"The paper's point: {held} of {len(shown)} points hold after Holm's correction; {by_chance(shown):.1f} would "
        "show their sign by chance if none did"
    )


def said(joined: Joined, answer: Answer) -> str:
    """ "In words: "p = 2 is better": shown (p = 2 over p = ∞ +0.40 [+0.21, +0.59])"."""
    labels = {line.id: line.label for line in (*joined.table.columns, *joined.table.rows)}

    def part(names: Sequence[str], found: Difference) -> str:
        *place, first, other = [labels[name] for name in names] if len(names) > 1 else [labels[names[0]], ""]
        of = {"best": f"highest of {first} over that of {other}", "alike": f"{first} against {other}"}
        what = f"{first} over {other}" if other else f"{first}, a row further"
        return f"{': '.join([*place, of.get(answer.said.kind, what)])} {found.said(2)}"

    parts = "; ".join(part(*one) for one in answer.parts)
    so_far = " so far" if answer.so_far else ""
    return f"In words: “{answer.said.words}”: {answer.verdict}{so_far}{f' ({parts})' if parts else ''}"


def levels(joined: Joined) -> str | None:
    """How many levels were judged, and how, in a sentence."""
    kinds = [result.verdict.kind for result in joined.results]
    counted = [f"{kinds.count(kind)} {word}" for kind, word in LEVELS.items() if kind in kinds]
    return f"{', '.join(counted)}, within {margin(joined)}" if counted else None


def margin(joined: Joined) -> str:
    return f"± {joined.table.margin:g}{unit(joined)}"


def unit(joined: Joined) -> str:
    """Of the table's cells, to stand behind a number."""
    return "".join(f" {name}" for name in sorted({result.cell.unit for result in joined.results} - {""}))


TRIAL = ("row", "column", "trials, on the validation split", "runs", "chosen")


def trials(joined: Joined) -> tuple[str, list[list[str]]] | None:
    """How the values were chosen, in a sentence, and a line for each cell of which trials were run."""
    if joined.trials is None or joined.table.tune is None:
        return None
    tune, ran = joined.table.tune, [result for result in joined.trials.results if result.finished]
    runs, planned = (sum(getattr(r, name) for r in joined.trials.results) for name in ("finished", "planned"))
    seeds = "seed" if len(tune.seeds) == 1 else "seeds"
    sentence = (
        f"Values chosen by {tune.rule} on the validation split, {seeds} {', '.join(map(str, tune.seeds))}: {runs} of "
        f"{planned} trials ended, in {duration(math.fsum(result.seconds for result in ran))}"
    )
    cells = [(row, column) for row in joined.table.rows for column in joined.table.columns if column.id in tune.columns]
    return sentence, [line for row, column in cells if (line := _of_cell(joined, joined.trials, tune, row, column))]


def _of_cell(joined: Joined, trials: Joined, tune: Tune, row: Line, column: Line) -> list[str] | None:
    """Its trials beside each other; None where none has ended."""
    found = [(values, trials.result(row.id, trial_column(column.id, values))) for values in tune.columns[column.id]]
    if not any(result.finished for _, result in found):
        return None
    cell = joined.table.cell(row.id, column.id)
    told = [f"{_values(values)}: {measured(trials.measured(one), 2)}" for values, one in found if one.finished]
    chosen = [_values(values) for values, _ in found if cell.why_not is None and set(values) <= set(cell.overrides)]
    ended, planned = (sum(getattr(one, name) for _, one in found) for name in ("finished", "planned"))
    return [row.label, column.label, "; ".join(told), f"{ended} of {planned}", ", ".join(chosen)]


def _values(overrides: Sequence[str]) -> str:
    """Of a trial: rho=0.1, not method.rho=0.1."""
    return " ".join(f"{key.rpartition('.')[2]}={value}" for key, _, value in (o.partition("=") for o in overrides))


def decimals(result: Result) -> int:
    """One place more than a coarse claim shows, so that a difference within its rounding stays visible."""
    return max(2, result.cell.claim.decimals)


def runs_of(result: Result) -> str:
    """ "3 of 5", and how many of the finished ones collapsed."""
    text = f"{result.finished} of {result.planned}"
    return f"{text}, {result.collapsed} collapsed" if result.collapsed else text


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def large(value: float | None) -> str:
    """1.23e+15 as 1.2 P; for FLOPs and passes."""
    if value is None:
        return NONE
    for limit, letter in ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.1f} {letter}"
    return f"{value:.0f}"


def printable(words: str) -> str:
    """On one line, without the characters that move a terminal's cursor: names may come from anywhere."""
    return "".join(letter if letter.isprintable() else " " for letter in words)


def markdown(words: str) -> str:
    """As text inside a line of Markdown: what is said of a machine must make no row, link or element of its own."""
    return re.sub(r"([\\|<`\[])", r"\\\1", printable(words))
