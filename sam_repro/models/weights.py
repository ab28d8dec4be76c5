"""Weights from a local file. Files come from outside: safetensors, or torch files read without running their code."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from zipfile import ZipFile, is_zipfile

import torch
from torch import Tensor, nn

from sam_repro.errors import UserError
from sam_repro.files.digest import file_sha256

WRAPPERS = ("state_dict", "model")  # keys under which training scripts put the weights, beside their optimizer
PREFIXES = ("module.", "_orig_mod.")  # left by DDP and by torch.compile


def read_weights(path: str, sha256: str | None = None) -> dict[str, Tensor]:
    """Name -> tensor, on the CPU, free of the wrappers of common training scripts. sha256: what the file must hold."""
    if not Path(path).is_file():
        raise UserError(f"model.weights={path}: there is no such file")
    if sha256 is not None and file_sha256(path) != sha256:
        raise UserError(f"model.weights={path} is not the file that the run was made with: start the command again")
    try:
        if path.endswith(".safetensors"):
            from safetensors.torch import load_file

            state: object = load_file(path)
        else:
            _refuse_bomb(path)
            with warnings.catch_warnings(action="ignore"):
                state = torch.load(path, map_location="cpu", weights_only=True)
    except UserError:
        raise
    except Exception as error:  # torch and safetensors raise half a dozen types for a file that is not theirs
        raise UserError(f"model.weights={path} is refused: not a plain file of tensors ({_why(error)})") from error
    for key in WRAPPERS:
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    if not isinstance(state, dict) or not state or not all(isinstance(v, Tensor) for v in state.values()):
        raise UserError(f"model.weights={path} is refused: no table of named tensors")
    return {_bare(name): tensor for name, tensor in state.items()}


def _why(error: Exception) -> str:
    """In our words: torch's are those of its parser, or advise to run what is in the file."""
    if found := re.search(r"unsupported global:? (?:GLOBAL )?([\w.]+)", str(error), re.IGNORECASE):
        return f"it holds a {found[1]}"
    return "torch.save(model.state_dict(), FILE) writes one"


def _refuse_bomb(path: str) -> None:
    """torch stores tensors uncompressed; a few compressed megabytes could unfold to more than there is memory."""
    if is_zipfile(path):
        with ZipFile(path) as archive:
            members = archive.infolist()
        if sum(member.file_size for member in members) > Path(path).stat().st_size:
            raise UserError(
                f"model.weights={path} is refused: its tensors are compressed; save it anew with torch.save"
            )


def _bare(name: str) -> str:
    while name.startswith(PREFIXES):
        name = name.partition(".")[2]
    return name


def last_linear(model: nn.Module) -> tuple[str, ...]:
    """The head of every model that is not known by timm; empty where a model of one's own has no linear layer."""
    linears: list[str] = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    return tuple(linears[-1:])


def keep_own_head(state: dict[str, Tensor], model: nn.Module, heads: tuple[str, ...]) -> dict[str, Tensor]:
    """`state` with the model's own, fresh head if the file's is missing or made for another number of classes."""
    own = model.state_dict()
    names = [name for name in own if name.rpartition(".")[0] in heads]
    if all(name in state and state[name].shape == own[name].shape for name in names):
        return state
    return state | {name: own[name] for name in names}


def load_weights(model: nn.Module, path: str, sha256: str | None = None) -> None:
    """Everything must fit but the head."""
    state = keep_own_head(read_weights(path, sha256), model, last_linear(model))
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise misfit(path, error) from error


def misfit(path: str, error: Exception) -> UserError:
    lines = [line.strip() for line in str(error).splitlines()]
    first = lines[1] if len(lines) > 1 else lines[0]
    return UserError(f"model.weights={path} is of another model ({first[:200]})")
