"""SGD, SAM and ASAM on the embedded data set with 40 % label noise: a table and a learning-curve picture."""

from __future__ import annotations

import sys
from pathlib import Path

from sam_repro.compose import compose
from sam_repro.identity import run_folder
from sam_repro.launch import launch
from sam_repro.report.demo import write

METHODS = ("plain", "sam_demo", "asam_demo")


def main(overrides: list[str]) -> int:
    folders = []
    for method in METHODS:
        chosen = ["+experiment=demo", f"method={method}", "track=none", *overrides]
        config = compose(chosen)
        code = launch(config, chosen)
        if code:
            return code
        folders.append(run_folder(config))
    table, files = write(folders, Path(config.results_dir) / "demo")
    print(f"\n{table}\n", *files, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
