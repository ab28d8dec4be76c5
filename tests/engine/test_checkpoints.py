"""Checkpoints: verified before they are believed, two kept, nothing half-written."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from rig import CPU

from sam_repro.engine.checkpoint import Checkpoints
from sam_repro.engine.ranks import Ranks

ALONE = Ranks(0, 1, CPU)


def state(step: int, size: int = 100) -> dict[str, object]:
    return {"w": torch.full((size,), float(step)), "step": step}


def loaded(folder: Path) -> tuple[int | None, list[str]]:
    shares, rejected = Checkpoints(folder, ALONE).load()
    return (None if shares is None else shares[0]["step"]), rejected


def test_the_two_newest_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, ALONE)
    for step in (1, 2, 30):
        checkpoints.save(step, state(step))
    assert sorted(f.name for f in tmp_path.iterdir()) == ["000000002", "000000030"]
    assert loaded(tmp_path) == (30, [])


def damaged(kind: str, newest: Path) -> None:
    file = newest / "rank0.pt"
    if kind == "torn":
        file.write_bytes(file.read_bytes()[:-50])
    elif kind == "altered":
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    elif kind == "missing":
        file.unlink()
    elif kind == "no manifest":
        (newest / "manifest.json").unlink()
    elif kind == "torn manifest":
        (newest / "manifest.json").write_text('{"step"')
    elif kind == "strange manifest":
        (newest / "manifest.json").write_text("[1]")


@pytest.mark.parametrize("kind", ["torn", "altered", "missing", "no manifest", "torn manifest", "strange manifest"])
def test_a_damaged_newest_falls_back_and_says_so(tmp_path: Path, kind: str) -> None:
    checkpoints = Checkpoints(tmp_path, ALONE)
    checkpoints.save(1, state(1))
    checkpoints.save(2, state(2))
    damaged(kind, tmp_path / "000000002")
    step, rejected = loaded(tmp_path)
    assert step == 1
    assert len(rejected) == 1
    assert "000000002" in rejected[0]
    checkpoints.save(2, state(2))
    assert loaded(tmp_path) == (2, [])


def test_code_in_a_checkpoint_is_never_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (tmp_path / "ran",))

    checkpoints = Checkpoints(tmp_path, ALONE)
    checkpoints.save(1, {"w": Evil()})
    with pytest.raises(Exception, match="eights"):
        checkpoints.load()
    assert not (tmp_path / "ran").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_the_last_good_checkpoint(small_disk: Path) -> None:
    checkpoints = Checkpoints(small_disk, ALONE)
    checkpoints.save(1, state(1, 20_000))
    with pytest.raises(OSError, match="No space"):
        checkpoints.save(2, state(2, 60_000))
    assert loaded(small_disk) == (1, [])
    assert [f.name for f in small_disk.iterdir()] == ["000000001"]
