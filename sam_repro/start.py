"""The command `train`: compose the configuration, check it, launch the run. Imports no torch before the launch."""

from __future__ import annotations

import os
import sys
import traceback

# Hydra hands its errors up as they are, and `main` turns them into one line. Set before Hydra looks at it.
os.environ["HYDRA_FULL_ERROR"] = "1"

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from sam_repro import CONFIGS, __version__, signals
from sam_repro.config.compose import one_line, printed, typed
from sam_repro.config.overrides import readable
from sam_repro.errors import INTERRUPTED, USER_ERROR, Shared, UserError, command, complain, denied, end, hint
from sam_repro.sweep.requeue import RunFailed, in_job, requeue
from sam_repro.words import Words, parse

# Hydra's own flags, and whether they take a value. Its --experimental-rerun would load a pickle.
_TAKE_A_VALUE = "--cfg -c --config-dir -cd"
_TAKE_NONE = "--resolve --multirun -m --run -r --info -i --shell-completion -sc --hydra-help --version"
FLAGS = dict.fromkeys(_TAKE_A_VALUE.split(), True) | dict.fromkeys(_TAKE_NONE.split(), False)
CFG = ("job", "hydra", "all")
# Of these the text is ours: Hydra would print a configuration that no run takes.
SHOWN = [{flag: "job", **more} for flag in ("--cfg", "-c") for more in ({}, {"--resolve": ""})]


@command
def main(words: list[str]) -> int:
    given = parse(words, FLAGS, settings=())
    sys.argv[1:] = _for_hydra(given)
    if "--version" in given.flags:
        print(f"sam_repro {__version__} (Hydra {hydra.__version__})")
        return 0
    if given.flags in SHOWN:
        sys.stdout.write(printed(given.names, resolve="--resolve" in given.flags))
        return 0
    codes = list[int]()  # of the runs that this process trained, one after the other

    @hydra.main(version_base="1.3", config_path=str(CONFIGS), config_name="config")
    def job(node: DictConfig) -> float | None:
        """What a sweeper of Hydra's compares runs by; None of a run that did not end."""
        if in_job():
            return _remote(node)
        if signals.received:  # a multirun was asked to stop: its other members wait for the next start
            return None
        code, value = _local(node)
        codes.append(code)
        return value

    try:
        job()
    except RunFailed as failure:
        complain(f"a run ended with exit code {failure.code} on its node; its log is in the launcher's submitit_folder")
        return failure.code
    except Exception as error:  # of the composition, or of a sweeper that got no value; runs tell their own
        if not any(codes):
            raise UserError(one_line(error)) from error
        if not signals.received:
            complain(one_line(error))
    code = next((code for code in codes if code), 0)
    if "RANK" in os.environ:
        end(code)
    return code


def _for_hydra(given: Words) -> list[str]:
    """The command line that Hydra's parser takes: flags first, each override as its grammar reads it."""
    flags = given.flags
    for flag in {"--cfg", "-c"} & set(flags):
        if flags[flag] not in CFG:
            raise UserError(f"{flag} {flags[flag]}: {hint(flags[flag], CFG)}")
    several = bool({"-m", "--multirun"} & set(flags))
    words = [word for flag, value in flags.items() for word in ([flag, value] if value else [flag])]
    return words + readable(given.names, several)


def _local(node: DictConfig) -> tuple[int, float | None]:
    """A run's exit code and objective. What is wrong is shown when it happens; a multirun's others get their turn."""
    try:
        return _train(node)
    except UserError as mistake:
        complain(str(mistake), every_rank=not isinstance(mistake, Shared))
        return USER_ERROR, None
    except Exception as error:
        if (told := denied(error)) is not None:
            complain(told, every_rank=True)
            return USER_ERROR, None
        traceback.print_exc()
        return 1, None


def _remote(node: DictConfig) -> float | None:
    """The same in a job of a remote launcher, which hands exceptions on to the process that has come through `main`."""
    try:
        code, value = _train(node)
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
    return value


def _train(node: DictConfig) -> tuple[int, float | None]:
    config = typed(node, HydraConfig.get().runtime.choices)
    from sam_repro.launch import launch
    from sam_repro.runs.outcome import objective

    if HydraConfig.get().mode is RunMode.MULTIRUN and os.environ.get("RANK", "0") == "0":
        job = HydraConfig.get().job
        print(f"job {job.num}: {job.override_dirname.replace(',', ' ')}", flush=True)
    # As typed: what `${oc.env:KEY}` stands for may be a secret, and these words go into the ledger.
    words = OmegaConf.to_container(HydraConfig.get().overrides.task, resolve=False)
    assert isinstance(words, list)
    code, run = launch(config, [str(word) for word in words])
    return code, objective(run) if code == 0 else None
