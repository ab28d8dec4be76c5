"""`sam-repro study STUDY ...`: the studies, each with its own words and --help. Imports no torch by itself."""

from __future__ import annotations

import sys
from importlib import import_module

from sam_repro import signals
from sam_repro.errors import USER_ERROR, UserError, command, hint
from sam_repro.words import HELP

# Module of this package -> what it shows. Each has `main(words) -> exit code`.
STUDIES = {"toy": "every method on L(w) = |w1 ReLU(w2) - 0.04| (ASAM figure 3): trajectories as a picture or as JSON"}

USAGE = "usage: sam-repro study STUDY [WORDS]\n\n" + "\n".join(f"  {name:<8} {line}" for name, line in STUDIES.items())


@command
def main(words: list[str]) -> int:
    if not words or words[0] in HELP:
        print(USAGE)
        return 0 if words else USER_ERROR
    if words[0] not in STUDIES:
        raise UserError(f"no study {words[0]!r}, {hint(words[0], STUDIES)}")
    return int(import_module(f"sam_repro.study.{words[0]}").main(words[1:]))


if __name__ == "__main__":
    signals.begin()
    sys.exit(main())
