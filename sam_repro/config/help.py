"""What `--help` prints: the groups as the folders of `configs/` hold them."""

from __future__ import annotations

import textwrap

from sam_repro import CONFIGS
from sam_repro.config.compose import options

# Of no use on the command line: they belong to the reports, to `profile=official` and to W&B.
NOT_GROUPS = ("table", "figure", "departure", "sweep")

PAGE = """sam_repro: reproduce, compare and extend papers on sharpness-aware minimization.

usage: python -m sam_repro [+experiment=NAME] [GROUP=OPTION] [KEY=VALUE] ...

Groups and their options (GROUP=OPTION; an experiment with a plus):

{groups}

Often set: seed= results_dir= force=true runtime.ranks= runtime.device=auto|cpu|cuda
           runtime.precision=fp32|bf16|fp16 runtime.threads= dataset.root= on_divergence=stop|continue

  --cfg job      print the composed configuration and stop
  -m             run every combination of comma-separated values, one after the other
  --hydra-help   Hydra's own flags

Exit codes: 0 done (a collapsed run too), 1 a crash, 2 a mistake in the configuration, the data or a folder,
74 the disk is full, 75 stopped by SIGTERM or SIGUSR1, or busy elsewhere: the same command goes on."""


def help_page() -> str:
    groups = sorted(d.name for d in CONFIGS.iterdir() if d.is_dir() and d.name not in NOT_GROUPS)
    listed = [
        textwrap.fill(" ".join(options(group)), 118, initial_indent=f"  {group:<15}", subsequent_indent=" " * 17)
        for group in groups
    ]
    return PAGE.format(groups="\n".join(listed))
