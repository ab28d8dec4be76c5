"""Code of the user's own, named `package.module:attribute` and found on Python's path.

What may be named so: a task, a model, a reader of data, and a method's direction, geometry and descent. A run is known
by what stands in the attribute's module, not by where it lies: when the run is made the name gets a digest of it,
`package.module:attribute@digest`, and keeps it wherever the configuration goes. So a module edited since is another
run, and a stored run refuses to be opened with it. Other modules that this one imports are not part of it. Imports no
torch; the user's module may.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from sam_repro.errors import UserError, nearest
from sam_repro.files.digest import file_sha256

_DIGITS = 12  # of the digest, as many as a run's id has


def is_named(name: str) -> bool:
    """Whether it has the form package.module:attribute, with a digest or without."""
    module, colon, attribute = name.partition("@")[0].partition(":")
    return bool(colon) and attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))


def pinned(key: str, name: str) -> str:
    """The name with what stands in its module. Raises `UserError` for all that is wrong with `key=name`.

    A module of this project has no digest: whatever changes its numbers raises the recipe's version.
    """
    load(key, name)
    if name.startswith("sam_repro."):
        return name.partition("@")[0]
    return f"{name.partition('@')[0]}@{_digest(_source(key, name))}"


def load(key: str, name: str) -> Any:
    """What `key=name` names. Raises `UserError` where there is none, or where its module has not the name's digest."""
    if not is_named(name):
        raise UserError(f"{key}={name} must be package.module:attribute")
    source, (bare, _, digest) = _source(key, name), name.partition("@")
    if digest and _digest(source) != digest:
        raise UserError(f"{key}={bare}: {source} was edited since the run was made: put it back, or start a run anew")
    module_name, _, attribute = bare.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # the user's module may raise anything while it is imported
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(f"{key}={bare}: {module_name} can't be imported ({type(error).__name__}: {reason})") from error
    found = getattr(module, attribute, None)
    if found is None:
        close = nearest(attribute, [known for known in vars(module) if not known.startswith("_")])
        raise UserError(f"{key}={bare}: {source} has no {attribute}.{close}")
    if not callable(found):
        raise UserError(f"{key}={bare} is not callable, but a {type(found).__name__}: name a function or a class")
    return found


def _digest(source: Path) -> str:
    return file_sha256(source)[:_DIGITS]


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
