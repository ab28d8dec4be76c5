"""`report judge` as other programs use it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from sam_repro.errors import UserError
from sam_repro.report.judge import judge


def test_a_line_in_a_line_out() -> None:
    lines = [
        '{"claimed": 93.82, "std": 0.17, "n": 5, "measured": [93.7, 93.9, 93.8, 93.85, 93.75], "margin": 0.5}',
        "",
        '{"claimed": 93.82, "std": null, "n": null, "measured": [90.0, 90.1, 90.05]}',
    ]
    command = [sys.executable, "-m", "sam_repro.report", "judge"]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["verdict"] == "agrees"
    assert first["difference"] == pytest.approx(-0.02)
    assert first["interval"][0] < -0.02 < first["interval"][1]
    assert second["verdict"] == "differs"
    assert "one run" in second["rule"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "line 1 is no JSON"),
        ("[1]", "must be an object"),
        ('{"claimed": 1, "measured": []}', "at least one number"),
        ('{"claimed": 1, "measured": [NaN]}', "finite number"),
        ('{"claimed": "1", "measured": [1]}', "claimed must be a finite number"),
        ('{"claimed": 1, "measured": [1, 2], "std": -1}', "of at least 0"),
        ('{"claimed": 1, "measured": [1, 2], "n": 0}', "whole number from 1"),
        ('{"claimd": 1, "measured": [1, 2]}', "Did you mean 'claimed'?"),
        ('{"claimed": 1, "claimed": 2, "measured": [1, 2]}', "twice"),
        ('{"claimed": 1, "std": 1, "n": 1%s, "measured": [1, 2]}' % ("0" * 400), "whole number from 1 to 1,000,000"),
        ('{"claimed": 1e400, "measured": [1, 2]}', "finite number"),
        ("[" * 100_000, "line 1 is no JSON"),
    ],
)
def test_what_can_not_be_read_is_named(line: str, says: str) -> None:
    with pytest.raises(UserError, match="line 1") as mistake:
        list(judge([line]))
    assert says in str(mistake.value)


@pytest.mark.parametrize("std", [0, 1e-200, 1e100])
def test_any_deviation_has_an_answer(std: float) -> None:
    for measured in ([1, 1], [1e100, -1e100], [1, 1 + 1e-15]):
        for n in (None, 1, 3):
            (answer,) = judge([json.dumps({"claimed": 1, "std": std, "n": n, "measured": measured})])
            assert json.loads(answer)["verdict"] in ("agrees", "differs", "undecided")
