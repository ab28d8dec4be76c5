"""The command `train`: compose the configuration, check it, launch the run. Imports no torch before the launch."""

from __future__ import annotations

import os
import sys
import traceback

# Hydra hands its errors up as they are, and `main` turns them into one line. Set before Hydra looks at it.
os.environ["HYDRA_FULL_ERROR"] = "1"

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from sam_repro import CONFIGS, signals
from sam_repro.config.compose import one_line, typed
from sam_repro.errors import INTERRUPTED, USER_ERROR, UserError, command, complain, end
from sam_repro.sweep.launchers.requeue import RunFailed, in_job, requeue


@command
def main(words: list[str]) -> int:
    for flag in {"-m", "--multirun"} & set(words):
        # Hydra's parser wants it before or after all overrides.
        words.remove(flag)
        words.insert(0, flag)
    sys.argv[1:] = words
    codes = list[int]()  # of the runs that this process trained, one after the other

    @hydra.main(version_base="1.3", config_path=str(CONFIGS), config_name="config")
    def job(node: DictConfig) -> None:
        if in_job():
            _remote(node)
        elif not signals.received:  # else a multirun was asked to stop: its other members wait for the next start
            codes.append(_local(node))

    try:
        job()
    except RunFailed as failure:
        complain(f"a run ended with exit code {failure.code} on its node; its log is in the launcher's submitit_folder")
        return failure.code
    except Exception as error:  # of the composition alone: a run's own are caught where it runs
        raise UserError(one_line(error)) from error
    code = next((code for code in codes if code), 0)
    if "RANK" in os.environ:
        end(code)
    return code


def _local(node: DictConfig) -> int:
    """The run's exit code. What is wrong is shown when it happens; a multirun's other members still get their turn."""
    try:
        return _train(node)
    except UserError as mistake:
        # What one rank alone finds, such as data that its machine has not, the others wait for in vain.
        complain(str(mistake), every_rank=True)
        return USER_ERROR
    except Exception:
        traceback.print_exc()
        return 1


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

    # As typed: what `${oc.env:KEY}` stands for may be a secret, and these words go into the ledger.
    words = OmegaConf.to_container(HydraConfig.get().overrides.task, resolve=False)
    assert isinstance(words, list)
    return launch(config, [str(word) for word in words])
