"""Those whose name holds the regular expression `pattern`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sam_repro.methods.option import Problem, value
from sam_repro.methods.scopes import Scope

if TYPE_CHECKING:
    from sam_repro.methods.axes import Point
    from sam_repro.methods.leaves import Leaf


@dataclass(frozen=True)
class Pattern(Scope):
    pattern: str | None = value(None, "regular expression; a parameter is perturbed whose name holds a match of it")

    def problems(self, point: Point) -> Iterator[Problem]:
        if not self.pattern:
            yield (
                "pattern",
                "must be said with scope=pattern; head|bn takes the parameters with either in their names",
            )
            return
        try:
            re.compile(self.pattern)
        except (re.error, RecursionError, OverflowError) as error:
            yield "pattern", f"{self.pattern!r} is no regular expression: {error}"

    def holds(self, leaf: Leaf) -> bool:
        assert self.pattern
        return re.search(self.pattern, leaf.name) is not None

    def __str__(self) -> str:
        return f"pattern={self.pattern}"
