"""`python tests/renew.py NAME ...` renews what the tests have pinned of these items, and of no others.

    a method      its hundred steps, in engine/golden
    an experiment its run id, in recipes/run_ids.txt, and the derived lines of its header
    a table       the claim and the run id of each of its cells, in recipes/pinned.txt
    verdicts      the simulated shares of docs/statistics.md, in a minute
    launches      how many operations a step asks of a GPU, in docs/cluster.md

docs/reference.md, which is the schema's in other words, is written with each of them: a method may bring fields.

Look at the difference before you commit it: another run id means that recorded results no longer belong to the recipe,
another trajectory that they are of another algorithm.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sam_repro.config import reference
from sam_repro.errors import command, nearest
from sam_repro.files.atomic import write_atomic
from sam_repro.tables import spec

sys.path[:0] = [str(Path(__file__).with_name(room)) for room in ("engine", "recipes")]


@command
def main(words: list[str]) -> int:
    import pins
    import shipped
    from every import METHODS

    methods = [name for name in words if name in METHODS]
    experiments = {name for name in words if name in shipped.names()}
    tables = [name for name in words if name in spec.names()]
    known = [*METHODS, *shipped.names(), *spec.names(), "verdicts", "launches"]
    if unknown := [name for name in words if name not in known] or ([] if words else ["nothing"]):
        print(f"{unknown[0]} is no method, experiment or table.{nearest(unknown[0], known)}", file=sys.stderr)
        return 2
    write_atomic(reference.FILE, reference.page())
    if methods:
        import test_golden

        test_golden.renew(methods)
    if experiments:
        shipped.renew(experiments)
    if tables:
        pins.renew(tables)
    if "verdicts" in words:
        from tables import operating

        operating.renew()
    if "launches" in words:
        import launches

        launches.renew()
    print(f"renewed {', '.join(words)}: look at the difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
