"""The reference of all keys is what the schema's own comments say."""

from __future__ import annotations

import sys

import pytest
from commands import ROOT

from sam_repro.cli import main
from sam_repro.config import reference
from sam_repro.config.compose import keys
from sam_repro.config.groups import groups


def test_the_page_is_the_schema() -> None:
    found = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert found == reference.page(), f"docs/reference.md is of an older schema: {reference.RENEW} renews it"


def test_every_key_stands_in_it_with_what_its_line_says() -> None:
    found = {key.name: key for section in reference.sections().values() for key in section}
    assert set(found) == {key for key in keys() if not any(other.startswith(key + ".") for other in keys())}
    batch = found["loop.batch_size"]
    assert (batch.type, batch.default) == ("int", "128")
    assert batch.meaning.startswith("samples a step, over all ranks")
    assert ("off", "the fastest kernels") in found["runtime.determinism"].choices
    assert found["on_divergence"].type == "stop|continue"
    assert found["dataset.mean"].default == "[0.5,0.5,0.5]"


@pytest.mark.parametrize("group", [*groups(), "loop", "general"])
def test_help_of_a_group(group: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["sam-repro"])
    assert main(["--help", group]) == 0
    assert capsys.readouterr().out == reference.text(group) + "\n"


def test_help_of_a_group_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help", "metod"]) == 2
    assert capsys.readouterr().err == "error: --help metod: there is no such group: did you mean 'method'?\n"
