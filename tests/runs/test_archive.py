"""The curves that travel with the ledger."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest
from commands import TINY, command

from sam_repro.report.__main__ import main
from sam_repro.runs import archive


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run."""
    folder = tmp_path_factory.mktemp("archive")
    subprocess.run(command(*TINY), cwd=folder, env=os.environ, check=True, capture_output=True, timeout=120)
    return folder / "results"


def ledger(results: Path) -> dict[str, object]:
    return dict(json.loads((results / "ledger.jsonl").read_text()))


@pytest.mark.slow
def test_a_finished_run_leaves_its_curve(results: Path) -> None:
    (run,) = (results / "runs").iterdir()
    with gzip.open(archive.path(results, run.name)) as file:
        assert file.read() == (run / "metrics.jsonl").read_bytes()
    assert main(["verify", "--results-dir", str(results)]) == 0


@pytest.mark.slow
def test_an_altered_number_is_found(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the ledger or in the curve, with no run folder at hand."""
    entry = ledger(results)
    run = str(entry["run_id"])
    curve = archive.path(results, run)
    for name, line, content in (
        ("ledger", json.dumps(entry).replace('"last": ', '"last": 1'), curve.read_bytes()),
        ("curve", json.dumps(entry), gzip.compress(gzip.decompress(curve.read_bytes()).replace(b'y": ', b'y": 1'))),
        ("damage", json.dumps(entry), curve.read_bytes()[:-40]),
    ):
        folder = tmp_path / name
        archive.path(folder, run).parent.mkdir(parents=True)
        (folder / "ledger.jsonl").write_text(line + "\n")
        archive.path(folder, run).write_bytes(content)
        assert main(["verify", "--results-dir", str(folder)]) == 1, name
        said = capsys.readouterr().out
        assert ("is damaged" if name == "damage" else "its curve gives") in said


@pytest.mark.slow
def test_an_import_brings_the_curves_along(results: Path, tmp_path: Path) -> None:
    assert main(["import", str(results / "ledger.jsonl"), "--results-dir", str(tmp_path)]) == 0
    run = str(ledger(results)["run_id"])
    assert archive.path(tmp_path, run).read_bytes() == archive.path(results, run).read_bytes()


@pytest.mark.slow
def test_an_import_leaves_a_curve_that_contradicts_the_own_line(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two lines of one run the one that was here counts, and so does its curve, where it had none too."""
    run, line = str(ledger(results)["run_id"]), (results / "ledger.jsonl").read_text()
    own = json.loads(line)
    del own["check"]
    own["metrics"]["test_accuracy"]["last"] = 1.0
    (tmp_path / "ledger.jsonl").write_text(json.dumps(own) + "\n")
    assert main(["import", str(results / "ledger.jsonl"), "--results-dir", str(tmp_path)]) == 0
    assert not archive.path(tmp_path, run).exists()
    assert main(["verify", "--results-dir", str(tmp_path)]) == 0
