"""From a name or a `Spec` to a method for these parameters."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from sam_repro import CONFIGS
from sam_repro.methods.axes import declared
from sam_repro.methods.method import Method
from sam_repro.methods.spec import Spec

FIELDS: dict[str, Any] = {name: field.type for name, field in declared().items()} | {"own": dict}


def build(
    method: str | Spec,
    model: nn.Module | Iterable[tuple[str, Tensor]],
    *,
    seed: int = 0,
    foreach: bool | None = None,
    swap: bool = True,
    rollback: bool = True,
    profile: str = "paper",
    **changes: Any,
) -> Method:
    """A method by the name of its file in configs/method, or by its `Spec`; keywords override fields.

    build("asam", model, rho=0.5); build("fsam", model.named_parameters(), geometry="elementwise", eta=0.01)

    A module is taken for the whole model. Named parameters may be some of it: those are perturbed, and the gradients
    of the others are those of the last pass. Only a module tells what its layers are.

    profile: "official" applies what the authors' released code does differently (configs/departure/official).
    The other keywords are those of `Method`.
    """
    spec = read(method, profile) if isinstance(method, str) else method
    return Method(override(spec, changes), model, seed=seed, foreach=foreach, swap=swap, rollback=rollback)


def names() -> list[str]:
    """The methods that ship: a file that names itself is one, the others are one of these with other values."""
    import yaml

    files = sorted((CONFIGS / "method").glob("*.yaml"))
    return [f.stem for f in files if yaml.safe_load(f.read_text(encoding="utf-8")).get("name") == f.stem]


def read(name: str, profile: str = "paper") -> Spec:
    """The spec of a method file. A list `defaults` names the files that it starts from, as in Hydra."""
    folder = CONFIGS / "method"
    values = _values(folder, name)
    if profile == "official":
        if (CONFIGS / "departure" / "official" / f"{name}.yaml").exists():
            values |= _values(CONFIGS / "departure", f"official/{name}")
    elif profile != "paper":
        raise ValueError(f"profile must be paper or official, is {profile!r}")
    values.pop("name", None)
    return override(Spec(), values)


def _values(folder: Path, name: str) -> dict[str, Any]:
    import yaml

    file = folder / f"{name}.yaml"
    if not file.exists():
        close = difflib.get_close_matches(name, [f.stem for f in folder.glob("*.yaml")], n=1)
        raise ValueError(f"no method {name!r}" + (f", did you mean {close[0]!r}?" if close else f" in {folder}"))
    own = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    values: dict[str, Any] = {}
    for base in own.pop("defaults", []):
        if base != "_self_":
            values |= _values(folder, base.removesuffix("@_here_"))
    return values | own


def override(spec: Spec, changes: Mapping[str, Any]) -> Spec:
    """`spec` with these fields changed, values coerced to the fields' types; None takes back what was said."""
    values = {}
    for name, value in changes.items():
        if name not in FIELDS:
            close = difflib.get_close_matches(name, FIELDS, n=1)
            raise ValueError(f"a method has no field {name!r}" + (f", did you mean {close[0]!r}?" if close else ""))
        values[name] = _coerced(name, value, FIELDS[name])
    return dataclasses.replace(spec, **values)


def _coerced(name: str, value: Any, wanted: Any) -> Any:
    if value is None:
        return None
    if isinstance(wanted, types.UnionType):  # X | None
        wanted = next(choice for choice in wanted.__args__ if choice is not type(None))
    if isinstance(value, wanted):
        return value
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if wanted is float and isinstance(value, str):
        # PyYAML reads YAML 1.1, where 5e-4 lacks a number's point and is text; Hydra makes 0.0005 of the same file.
        with contextlib.suppress(ValueError):
            return float(value)
    raise ValueError(f"method.{name} must be a {wanted.__name__}, is {value!r}")
