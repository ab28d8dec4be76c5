"""Train what is missing of a table: `python scripts/sweep.py table=asam/2 budget=mini`; --help has the rest."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works in a checkout that is not installed

from sam_repro.cli import run

if __name__ == "__main__":
    sys.exit(run("sweep"))
