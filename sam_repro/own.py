"""Code of the user's own, named `package.module:attribute` and found on Python's path.

A run is known by what stands in the attribute's module, not by where it lies: `source_sha256` is found when the run is
made and stored with its configuration, so that a module edited since is another run. Other modules that this one
imports are not part of it. Imports no torch; the user's module may.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sam_repro.errors import UserError, nearest
from sam_repro.files.digest import file_sha256


def is_named(name: str) -> bool:
    """Whether it has the form package.module:attribute."""
    module, colon, attribute = name.partition(":")
    return bool(colon) and attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))


def source_sha256(key: str, name: str) -> str:
    return file_sha256(_source(key, name))


def load(key: str, name: str, sha256: str | None = None) -> Callable[..., Any]:
    """What `key=name` names. sha256: what its module's source must hold. Raises `UserError` for all that is wrong."""
    source = _source(key, name)
    if sha256 is not None and file_sha256(source) != sha256:
        raise UserError(f"{key}={name}: {source} was edited since the run was made: put it back, or start a run anew")
    module_name, _, attribute = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # the user's module may raise anything while it is imported
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(f"{key}={name}: {module_name} can't be imported ({type(error).__name__}: {reason})") from error
    found = getattr(module, attribute, None)
    if found is None:
        close = nearest(attribute, [known for known in vars(module) if not known.startswith("_")])
        raise UserError(f"{key}={name}: {source} has no {attribute}.{close}")
    if not callable(found):
        raise UserError(f"{key}={name} is not callable, but a {type(found).__name__}: name a function or a class")
    loaded: Callable[..., Any] = found
    return loaded


def _source(key: str, name: str) -> Path:
    module = name.partition(":")[0]
    try:
        spec = importlib.util.find_spec(module)
    except Exception as error:  # its packages are imported to find it
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(
            f"{key}={name}: there is no module {module} ({reason}): put its folder on PYTHONPATH"
        ) from error
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise UserError(f"{key}={name}: there is no module {module} on Python's path: put its folder on PYTHONPATH")
    return Path(spec.origin)
