"""Train a row's first seed again and lay it beside the committed numbers.

`python scripts/reproduce_row.py [TABLE ROW [BUDGET]]`, by default asam/6 40 mini: ASAM's table 6 in miniature at 40 %
label noise, four runs on real CIFAR-10, two at once, some five minutes. Exit code 1 if a number does not come out
again.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works in a checkout that is not installed

from sam_repro import signals
from sam_repro.data import fetch
from sam_repro.errors import UserError, command
from sam_repro.sweep.reproduce import reproduce
from sam_repro.words import HELP

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data"


@command
def main(words: list[str]) -> int:
    if set(words) & set(HELP):
        print(__doc__)
        return 0
    if len(words) not in (0, 2, 3):
        raise UserError("name a table and a row: scripts/reproduce_row.py asam/6 40")
    table, row, budget = [*words, "mini"][:3] if words else ("asam/6", "40", "mini")
    if table == "asam/6" and (code := fetch.main(["cifar10", "--root", str(DATA)])):
        return code
    extra = [f"dataset.root={DATA}", "track=none", "runtime.threads=1"]
    found = reproduce(table, row, budget, extra, ROOT / "results", ROOT / "results" / "runs" / "again")
    print(f"\n{'':<28} {'committed':>10} {'again':>10}   99 % of new runs")
    for one in found:
        inside = "one run: none" if one.interval is None else "[{:.2f}, {:.2f}]".format(*one.interval)
        verdict = "the same bits" if one.same_bits else "inside" if one.holds else "OUTSIDE"
        print(f"{one.task.cell:<28} {one.committed:>10.2f} {one.again:>10.2f}   {inside}: {verdict}")
    return 0 if all(one.holds for one in found) else 1


if __name__ == "__main__":
    signals.begin()
    sys.exit(main())
