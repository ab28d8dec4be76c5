"""`python -m sam_repro`: compose the configuration, check it, launch the run. Imports no torch before the launch."""

from __future__ import annotations

import os
import sys
import traceback

# Hydra hands its errors up as they are, and `main` turns them into one line. Set before Hydra looks at it.
os.environ["HYDRA_FULL_ERROR"] = "1"

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from sam_repro import CONFIGS, signals
from sam_repro.config.compose import one_line, typed
from sam_repro.config.help import help_page
from sam_repro.errors import INTERRUPTED, USER_ERROR, UserError, end
from sam_repro.sweep.launchers.requeue import RunFailed, in_job, requeue

# The exit codes of the runs that this process trained, one after the other.
_codes: list[int] | None = None


@hydra.main(version_base="1.3", config_path=str(CONFIGS), config_name="config")
def _job(node: DictConfig) -> None:
    if in_job():
        _remote(node)
        return
    assert _codes is not None
    if signals.received:
        return  # a multirun was asked to stop: its other members wait for the next start
    try:
        _codes.append(_train(node))
    except UserError as mistake:
        _codes.append(USER_ERROR)
        # What one rank alone finds, such as data that its machine has not, the others wait for in vain.
        complain(str(mistake), every_rank=True)
    except Exception:
        # Shown when it happens; the other members of a multirun still get their turn.
        _codes.append(1)
        traceback.print_exc()


def _remote(node: DictConfig) -> None:
    """The same in a job of a remote launcher, which hands exceptions on to the process that has come through `main`."""
    try:
        code = _train(node)
    except UserError:
        raise
    except Exception:
        traceback.print_exc()
        raise RunFailed(1) from None
    if code == INTERRUPTED:
        signals.release()
        requeue()
    if code:
        raise RunFailed(code)


def _train(node: DictConfig) -> int:
    config = typed(node)
    from sam_repro.launch import launch

    return launch(config, HydraConfig.get().overrides.task)


def main() -> None:
    global _codes
    if {"-h", "--help"} & set(sys.argv[1:]):
        # Hydra's own page takes a second to list the groups.
        print(help_page())
        return
    _codes = []
    for flag in {"-m", "--multirun"} & set(sys.argv[1:]):
        # Hydra's parser wants it before or after all overrides.
        sys.argv.remove(flag)
        sys.argv.insert(1, flag)
    try:
        _job()
    except RunFailed as failure:
        complain(f"a run ended with exit code {failure.code} on its node; its log is in the launcher's submitit_folder")
        sys.exit(failure.code)
    except Exception as error:  # of the composition alone: a run's own are caught where it runs
        complain(one_line(error))
        sys.exit(USER_ERROR)
    code = next((code for code in _codes if code), 0)
    if "RANK" in os.environ:
        end(code)
    sys.exit(code)


def complain(message: str, every_rank: bool = False) -> None:
    rank = os.environ.get("RANK", "0")
    if rank != "0" and not every_rank:
        return  # every rank of a launcher finds the same mistake in the configuration; one says it
    print(f"error: {'' if rank == '0' else f'rank {rank}: '}{' '.join(message.split())}", file=sys.stderr)


if __name__ == "__main__":
    main()
