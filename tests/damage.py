"""What may happen to a file of JSON: bits flip, its end is lost, a value is another's."""

import json
import random
from typing import Any

FOREIGN: list[Any] = [
    None, True, False, -1, 0, 10**400, 1e308, -1e-300, float("nan"), float("inf"), "", "x" * 5000, "Done", "\ud800",
    "a\nb", "\x1b[2J", "| --- |", "${oc.env:HOME}", "../../etc", "2099-01-01T00:00:00+00:00", [], {}, [[]], {"": {}},
    [None, 1, "a"], {"last": "high"},
]  # fmt: skip


def damaged(content: bytes, chance: random.Random) -> bytes:
    """One accident to a text of JSON objects, one a line."""
    match chance.randrange(4):
        case 0:
            return _flipped(content, chance)
        case 1:
            return content[: chance.randrange(len(content))]
        case 2:
            start = chance.randrange(len(content))
            return content[:start] + chance.randbytes(chance.randrange(1, 50)) + content[start:]
        case _:
            lines = content.splitlines(keepends=True)
            place = chance.randrange(len(lines))
            lines[place] = json.dumps(_replaced(json.loads(lines[place]), chance)).encode() + b"\n"
            return b"".join(lines)


def _flipped(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]


def _replaced(value: Any, chance: random.Random) -> Any:
    """With one value, somewhere inside, gone or another."""
    if not isinstance(value, dict | list) or not value or chance.random() < 0.1:
        return chance.choice(FOREIGN)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = chance.choice(keys)
    if chance.random() < 0.1:
        del value[key]
    else:
        value[key] = _replaced(value[key], chance)
    return value
