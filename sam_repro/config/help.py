"""What `--help` prints: the groups as the folders of `configs/` hold them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from sam_repro.config.groups import groups, options

# Of no use on the command line: they belong to the reports, to `profile=official` and to W&B.
NOT_GROUPS = ("table", "figure", "study", "departure", "sweep")

PAGE = """sam_repro: reproduce, compare and extend papers on sharpness-aware minimization.

usage: sam-repro [train] [+experiment=NAME] [GROUP=OPTION] [KEY=VALUE] ...
       sam-repro COMMAND ...

{commands}

Each has its own --help; `python -m sam_repro` is the same as `sam-repro`.

Groups and their options (GROUP=OPTION; an experiment with a plus):

{groups}

Often set: seed= results_dir= force=true runtime.ranks= runtime.device=auto|cpu|cuda
           runtime.precision=fp32|bf16|fp16 runtime.threads= dataset.root= on_divergence=stop|continue

  --cfg job      print the composed configuration and stop
  -m             run every combination of comma-separated values, one after the other
  --help GROUP   the keys and options of a group, such as method, loop or general
  --hydra-help   Hydra's own flags

Exit codes: 0 done (a collapsed run too), 1 a crash, 2 a mistake in the configuration, the data or a folder,
74 the disk is full, 75 stopped by SIGTERM or SIGUSR1, or busy elsewhere: the same command goes on."""


def help_page(commands: Mapping[str, str]) -> str:
    """`commands`: what each one does."""
    shown = [group for group in groups() if group not in NOT_GROUPS]
    listed = [
        textwrap.fill(" ".join(options(group)), 118, initial_indent=f"  {group:<15}", subsequent_indent=" " * 17)
        for group in shown
    ]
    summary = "\n".join(f"  {name:<10} {line}" for name, line in commands.items())
    return PAGE.format(groups="\n".join(listed), commands=summary)
