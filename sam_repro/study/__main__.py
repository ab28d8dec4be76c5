"""`sam-repro study NAME ...`: measure a figure of configs/study; numbers, picture and claims. No torch by itself."""

from __future__ import annotations

import sys
from importlib import import_module

from sam_repro import signals
from sam_repro.errors import UserError, command, hint
from sam_repro.study import frame, several
from sam_repro.tables import studies
from sam_repro.words import HELP, parse

USAGE = """\
usage: sam-repro study NAME [run=ID | runs=[ID,ID]] [SETTING=VALUE ...] [budget=mini] [results_dir=results] [ranks=N]
                       [--json]

Measures a figure, judges what its paper says of it, and writes numbers.json and the picture (SVG, PNG, PDF) to
results/figures/<paper>_<figure>/. Killed, it goes on when it is started again. Of trained
weights, ranks=N shares the work among N processes (a GPU each, where there are GPUs), and torchrun among its own. NAME
is one of these, or the figure:
"""


@command
def main(words: list[str]) -> int:
    if not words or words[0] in HELP:
        print(USAGE + "\n" + "\n".join(_lines()))
        return 0
    known = {study.name: study for study in studies.load_all()}
    known |= {study.figure: study for study in known.values()}
    if words[0] not in known:
        raise UserError(f"no study {words[0]!r}, {hint(words[0], known)}")
    study, rest = known[words[0]], words[1:]
    module = import_module(f"sam_repro.study.{study.module}")
    ranks = several.wanted(study.name, module.RUNS, rest)
    explores = getattr(module, "explores", None)  # words of a picture of one's own, beside the paper's figure
    if explores and explores(rest):
        return int(module.main(rest))
    if set(rest) & set(HELP):
        print(module.__doc__)
        return 0
    given = parse(rest, {"--json": False})
    if given.names:
        raise UserError(f"{given.names[0]!r} is not KEY=VALUE")
    return several.run(frame.asked(study, given), ranks, as_json="--json" in given.flags)


def _lines() -> list[str]:
    found = studies.load_all()
    width = max(len(study.name) for study in found)
    return [f"  {study.name:<{width}}  {study.figure}: {study.title}" for study in found]


if __name__ == "__main__":
    signals.begin()
    sys.exit(main())
