"""Measure the project: `python scripts/bench.py update|step|input|start|train [--json] [--rounds N] [--model NAME]`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works in a checkout that is not installed

from sam_repro.cli import run

if __name__ == "__main__":
    sys.exit(run("bench"))
