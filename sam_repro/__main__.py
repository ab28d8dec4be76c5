"""`python -m sam_repro`: the same as `sam-repro`."""

import sys

from sam_repro.cli import main

if __name__ == "__main__":
    sys.exit(main())
