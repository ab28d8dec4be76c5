"""The notebook in docs/examples runs as a reader runs it, and says what is committed."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "docs" / "examples" / "runs.ipynb"


def test_what_it_says_of_the_committed_runs_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    # Its first two cells read the ledger alone: runs of another table may not slip into their comparison.
    monkeypatch.chdir(NOTEBOOK.parent)
    committed = nbformat.read(NOTEBOOK, as_version=4)
    committed.cells = [cell for cell in committed.cells if cell.cell_type == "code"][:2]
    executed = deepcopy(committed)
    NotebookClient(executed, timeout=400).execute()
    assert shown(committed)[0], "the notebook is committed with what it printed"
    assert shown(executed) == shown(committed)


@pytest.mark.slow
def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    # What it trains differs between machines in the last digits.
    monkeypatch.chdir(NOTEBOOK.parent)
    NotebookClient(nbformat.read(NOTEBOOK, as_version=4), timeout=400).execute()


def shown(notebook: Any) -> list[str]:
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    return ["".join(one.get("text") or one["data"].get("text/plain", "") for one in some) for some in outputs]
