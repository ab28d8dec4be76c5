"""`python -m sam_repro.study STUDY ...`: the studies, each with its own arguments. Imports no torch by itself."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from importlib import import_module

from sam_repro.errors import USER_ERROR, UserError

# Module of this package -> what it shows. Each has `main(arguments) -> exit code` and its own --help.
STUDIES = {"toy": "every method on L(w) = |w1 ReLU(w2) - 0.04| (ASAM figure 3): trajectories as a picture or as JSON"}

USAGE = "usage: python -m sam_repro.study STUDY [ARGUMENTS]\n\n" + "\n".join(
    f"  {name:<8} {line}" for name, line in STUDIES.items()
)


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if words else USER_ERROR
    try:
        if words[0] not in STUDIES:
            close = difflib.get_close_matches(words[0], STUDIES, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(STUDIES)}"
            raise UserError(f"no study {words[0]!r}, {hint}")
        return int(import_module(f"sam_repro.study.{words[0]}").main(words[1:]))
    except UserError as error:
        print("error: " + " ".join(str(error).split()), file=sys.stderr)
        return USER_ERROR
    except BrokenPipeError:  # `| head`
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    sys.exit(main())
