"""Checkpoints: verified before they are believed, two kept, nothing half-written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from commands import disk_of
from rig import CPU

from sam_repro.engine.checkpoint import Checkpoints, Misfit
from sam_repro.engine.ranks import Ranks
from sam_repro.errors import UserError

ALONE = Ranks(0, 1, CPU)


def state(step: int, size: int = 100) -> dict[str, object]:
    return {"w": torch.full((size,), float(step)), "step": step}


def loaded(folder: Path) -> tuple[int | None, list[str]]:
    stored, rejected = Checkpoints(folder, ALONE).load()
    return (None if stored is None else stored.share(0)["step"]), rejected


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


def test_of_two_kept_both_hold(tmp_path: Path) -> None:
    """The one that was fallen back to stays until two that hold are newer, and what was found not to hold goes."""
    for step in (10, 12):
        Checkpoints(tmp_path, ALONE).save(step, state(step))
    damaged("altered", tmp_path / "000000012")
    again = Checkpoints(tmp_path, ALONE)
    assert again.load()[0] is not None
    again.save(11, state(11))
    assert sorted(f.name for f in tmp_path.iterdir()) == ["000000010", "000000011"]


def test_what_is_no_checkpoint_is_left_alone(tmp_path: Path) -> None:
    """Neither foreign folders nor links are taken for checkpoints, pruned, removed or followed."""
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "checkpoints"
    elsewhere.mkdir()
    (elsewhere / "precious").touch()
    for name in ("backup", "0_notes", "zzz", "12"):
        (folder / name).mkdir(parents=True)
        (folder / name / "mine").touch()
    for name in ("000000002", "000000050", "999999999"):
        (folder / name).symlink_to(elsewhere)
    (folder / "000000003").write_text("a file")
    foreign = set(folder.rglob("*"))
    checkpoints = Checkpoints(folder, ALONE)
    for step in (1, 2, 3, 4):
        checkpoints.save(step, state(step))
        assert loaded(folder) == (step, [])
    assert set(folder.iterdir()) - foreign == {folder / "000000003+", folder / "000000004"}
    checkpoints.remove()
    assert set(folder.rglob("*")) == foreign
    assert (elsewhere / "precious").exists()


def test_a_linked_folder_of_checkpoints_is_refused_and_nothing_is_deleted_behind_it(tmp_path: Path) -> None:
    others = Checkpoints(tmp_path / "others", ALONE)
    others.save(7, state(7))
    (tmp_path / "checkpoints").symlink_to(tmp_path / "others")
    mine = Checkpoints(tmp_path / "checkpoints", ALONE)
    with pytest.raises(UserError, match="must be a folder, not a link"):
        mine.load()
    mine.remove()
    assert loaded(tmp_path / "others") == (7, [])
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="must be a folder"):
        Checkpoints(tmp_path / "file", ALONE).load()


def test_links_and_pipes_inside_a_checkpoint_are_not_followed(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "c", ALONE)
    for step in (1, 2, 3):
        checkpoints.save(step, state(step))
    share = tmp_path / "c" / "000000003" / "rank0.pt"
    share.rename(tmp_path / "moved.pt")
    share.symlink_to(tmp_path / "moved.pt")
    manifest = tmp_path / "c" / "000000002" / "manifest.json"
    manifest.unlink()
    os.mkfifo(manifest)
    step, rejected = loaded(tmp_path / "c")
    assert (step, len(rejected)) == (None, 2)


def test_code_in_a_checkpoint_is_never_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (tmp_path / "ran",))

    checkpoints = Checkpoints(tmp_path, ALONE)
    checkpoints.save(1, {"w": Evil()})
    stored, _ = checkpoints.load()
    assert stored is not None
    with pytest.raises(Misfit, match="eights"):
        stored.share(0)
    assert not (tmp_path / "ran").exists()


def test_a_full_disk_leaves_the_last_good_checkpoint(tmp_path: Path) -> None:
    with disk_of(tmp_path / "disk", "256k"):
        checkpoints = Checkpoints(tmp_path / "disk", ALONE)
        checkpoints.save(1, state(1, 20_000))
        with pytest.raises(OSError, match="No space"):
            checkpoints.save(2, state(2, 60_000))
        assert loaded(tmp_path / "disk") == (1, [])
        assert [f.name for f in (tmp_path / "disk").iterdir()] == ["000000001"]
