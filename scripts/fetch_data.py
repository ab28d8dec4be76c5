"""Fetch and verify a data set, once a machine: `python scripts/fetch_data.py cifar10`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works in a checkout that is not installed

from sam_repro.cli import run

if __name__ == "__main__":
    sys.exit(run("fetch"))
