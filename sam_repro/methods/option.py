"""What an option of an axis declares: its fields with defaults and ranges, its rules, what it keeps, what it costs.

An option is one file and one frozen dataclass in the folder of its axis; the file's name is the option's name in a
configuration. Its fields are the configuration's: they need not be written down anywhere else. Imports no torch: an
equation imports it when it is called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from sam_repro.methods.axes import Point

Problem = tuple[str, str]  # a field, and what is wrong with it and how to mend it


@dataclass(frozen=True)
class Option:
    axis: ClassVar[str]  # the field that chooses among the options of the folder
    default: ClassVar[str]  # the option that is taken where nothing is said
    name: ClassVar[str]
    # The kinds of state that change in place, which a snapshot must copy. What is replaced needs no copy.
    copied: ClassVar[tuple[str, ...]] = ()

    by_kernel: ClassVar[bool] = False  # whether the numbers depend on what a parameter's kernels are

    def __init_subclass__(cls) -> None:
        cls.name = cls.__module__.rpartition(".")[2]

    def problems(self, point: Point) -> Iterator[Problem]:
        """The rules towards the other axes."""
        yield from ()

    @property
    def vectors(self) -> int:
        """Parameter-sized tensors that a step holds for it, beside weights and gradient."""
        return 0


@dataclass(frozen=True)
class Range:
    holds: Callable[[Any], bool]
    text: str  # what a value must be; {} is the value that it is

    def broken_by(self, value: Any) -> str | None:
        shown = f"{value:g}" if isinstance(value, float) else repr(value) if isinstance(value, str) else str(value)
        return None if self.holds(value) else self.text.format(shown)


NOT_NEGATIVE = Range(lambda v: 0 <= v < math.inf, "must be a finite number, not negative; is {}")
SHARE = Range(lambda v: 0 < v <= 1, "must be in (0, 1], is {}")
UP_TO_ONE = Range(lambda v: 0 <= v <= 1, "must be in [0, 1], is {}")
BELOW_ONE = Range(lambda v: 0 <= v < 1, "must be in [0, 1), is {}")
COUNT = Range(lambda v: v >= 1, "must be at least 1, is {}")
ANYTHING = Range(lambda _: True, "")


def value(default: Any, doc: str, allowed: Range = ANYTHING, choices: tuple[str, ...] = ()) -> Any:
    """A field of an option. A default of None means that the field may stay unsaid, and is not checked then."""
    return field(default=default, metadata={"doc": doc, "allowed": allowed, "choices": choices})


def choice(names: tuple[str, ...], doc: str) -> Any:
    """A field that is one of these names, the first where nothing is said."""
    return value(names[0], doc, Range(lambda v: v in names, f"must be one of {', '.join(names)}, is {{}}"), names)
