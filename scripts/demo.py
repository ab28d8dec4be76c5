"""SGD, SAM and ASAM on the embedded data set with 40 % label noise: a table and a learning-curve picture.

`python scripts/demo.py [key=value ...]`: overrides of all three runs, such as budget=smoke or results_dir=...
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works in a checkout that is not installed

from sam_repro import machine, signals
from sam_repro.config.compose import compose
from sam_repro.errors import UserError, command
from sam_repro.launch import launch
from sam_repro.report.demo import write
from sam_repro.words import HELP

METHODS = ("plain", "sam_demo", "asam_demo")


@command
def main(overrides: list[str]) -> int:
    if set(overrides) & set(HELP):
        print(__doc__)
        return 0
    for override in overrides:
        # It would come after the demo's own choice and make three times the same run.
        if override.partition("=")[0].lstrip("+~").partition("@")[0] == "method":
            raise UserError(f"{override}: the demo compares {', '.join(METHODS)}; another method is trained by "
                            "python -m sam_repro +experiment=demo method=...")  # fmt: skip
    common = ["track=none", *overrides]
    # Where a processor computes bf16 in software, fp32 takes half the time.
    if not machine.has_gpus() and machine.bf16_in_software():
        common.insert(0, "runtime.precision=fp32")
    folders = []
    for method in METHODS:
        chosen = ["+experiment=demo", f"method={method}", *common]
        config = compose(chosen)
        code, run = launch(config, chosen)
        if code:
            return code
        folders.append(run.path)
    table, files = write(folders, Path(config.results_dir) / "demo")
    print(f"\n{table}\n", *files, sep="\n")
    return 0


if __name__ == "__main__":
    signals.begin()
    sys.exit(main())
