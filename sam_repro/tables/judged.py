"""A cell's verdict: its level and its rate of success, judged where the runs are those that the paper made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sam_repro.tables.plan import PAPER
from sam_repro.tables.statistics import COVERAGE
from sam_repro.tables.table import Claim
from sam_repro.tables.verdicts import AGREES, DIFFERS, UNDECIDED, Difference, Group, group, level, success_p

JUDGED = (AGREES, DIFFERS, UNDECIDED)
NOT_RUN, NO_CLAIM, OTHER_BUDGET, PARTIAL = "not_run", "no_claim", "other_budget", "partial"


@dataclass(frozen=True)
class Verdict:
    """How a measurement stands to its claim. Only `agrees` may be shown as a success."""

    kind: str  # one of JUDGED, or why there is no judgement
    text: str
    difference: Difference | None = None  # measured minus claimed
    success_p: float | None = None  # that the rates of success are one, where runs failed here or there


def verdict(
    claim: Claim, values: Sequence[float], *, finished: int, planned: int, budget: str, margin: float
) -> Verdict:
    """
    agrees      the level agrees, and no larger share of our runs failed than of the paper's
    differs     the level differs, or Fisher's exact test tells the rates of success apart
    undecided   anything else
    A cell whose runs have not all ended is called by its count, one at another budget than the paper's by its budget:
    neither is a statement about the paper. `values` are of the runs that succeeded.
    """
    if not finished:
        return Verdict(NOT_RUN, "not run")
    if claim.mean is None:
        return Verdict(NO_CLAIM, "no claim to compare with")
    found = level(_of_paper(claim, claim.mean), group(values), margin) if values else None
    difference = found.difference if found else None
    said = _said(difference, claim) if difference else "no run succeeded"
    if budget != PAPER:
        return Verdict(OTHER_BUDGET, f"{said}, {budget} budget", difference)
    if finished < planned:
        return Verdict(PARTIAL, f"{said} so far, {finished} of {planned} runs", difference)
    theirs, ours = rate(claim), (len(values), finished)
    answer, p = found.verdict if found else UNDECIDED, None
    if theirs[0] < theirs[1] or ours[0] < ours[1]:
        p = success_p(theirs, ours)
        said += f"; {ours[0]} of {ours[1]} succeeded, claimed {theirs[0]} of {theirs[1]}, p = {p:.2f}"
        if p < 1 - COVERAGE:
            answer = DIFFERS
        elif answer == AGREES and ours[0] * theirs[1] < theirs[0] * ours[1]:
            answer = UNDECIDED  # the mean of the rest is not what was claimed
    return Verdict(answer, f"{answer} ({said})", difference, p)


def rate(claim: Claim) -> tuple[int, int]:
    """(succeeded, of so many runs); where a paper tells of no failure none failed, and of an unknown number one ran."""
    runs = claim.n or 1
    return (runs if claim.succeeded is None else claim.succeeded), runs


def _of_paper(claim: Claim, mean: float) -> Group:
    """Mean and deviation are those of the runs that succeeded."""
    return Group(mean, claim.std, claim.n if claim.succeeded is None else claim.succeeded)


def _said(found: Difference, claim: Claim) -> str:
    places = max(2, claim.decimals)
    rule = "" if found.rule == "Welch" else f", {found.rule}"
    return found.said(places) + rule
