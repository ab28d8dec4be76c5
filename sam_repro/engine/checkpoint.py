"""Checkpoints that survive a kill at every line: whole or absent, verified before they are believed, two kept.

`<folder>/<step>/` holds one file a rank and `manifest.json`, written last, with the SHA-256 of each. Without a
manifest, or with a file that does not match it, a checkpoint does not count and the one before is taken. Files load
with `weights_only=True`: tensors, numbers and strings, no code.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import torch

from sam_repro.engine.ranks import Ranks
from sam_repro.files.atomic import write_atomic

KEEP = 2
MANIFEST = "manifest.json"

State = dict[str, Any]


class Checkpoints:
    def __init__(self, folder: Path, ranks: Ranks) -> None:
        self.folder, self.ranks = folder, ranks

    def save(self, step: int, mine: State) -> None:
        """Every rank calls it with its own share. Raises the OSError of whichever rank could not write."""
        name_ = f"{step:09d}"
        if self.ranks.main:
            # A good checkpoint of the same step stays until the new one is whole.
            while (self.folder / name_).exists() and _problem(self.folder / name_) is None:
                name_ += "+"
            shutil.rmtree(self.folder / name_, ignore_errors=True)
            (self.folder / name_).mkdir(parents=True)
        folder = self.folder / self.ranks.share(name_)
        name = f"rank{self.ranks.rank}.pt"
        error: OSError | None = None
        digest = ""
        try:
            content = io.BytesIO()
            torch.save(mine, content)
            digest = hashlib.sha256(content.getbuffer()).hexdigest()
            write_atomic(folder / name, content.getvalue())
        except OSError as e:
            error = e
        parts = self.ranks.gather((name, digest, None if error is None else (error.errno, str(error))))
        failed = next((e for _, _, e in parts if e is not None), None)
        if failed is None and self.ranks.main:
            try:
                files = {name: digest for name, digest, _ in parts}
                write_atomic(folder / MANIFEST, json.dumps({"step": step, "files": files}, indent=2))
            except OSError as e:
                failed = (e.errno, str(e))
        failed = self.ranks.share(failed)
        if failed is not None:
            if self.ranks.main:
                shutil.rmtree(folder, ignore_errors=True)
            raise OSError(*failed)
        if self.ranks.main:
            for old in self._newest_first()[KEEP:]:
                shutil.rmtree(old, ignore_errors=True)

    def load(self) -> tuple[list[State] | None, list[str]]:
        """(the shares of all ranks that wrote the newest checkpoint that holds, why newer ones did not)."""
        chosen: Path | None = None
        rejected: list[str] = []
        if self.ranks.main:
            for folder in self._newest_first():
                problem = _problem(folder)
                if problem is None:
                    chosen = folder
                    break
                rejected.append(problem)
        chosen = self.ranks.share(chosen)
        if chosen is None:
            return None, rejected
        count = len(json.loads((chosen / MANIFEST).read_text())["files"])
        shares = [torch.load(chosen / f"rank{i}.pt", map_location="cpu", weights_only=True) for i in range(count)]
        return shares, rejected

    def remove(self) -> None:
        if self.ranks.main:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.ranks.barrier()

    def _newest_first(self) -> list[Path]:
        return sorted((f for f in self.folder.glob("*") if f.is_dir()), reverse=True)


def _problem(folder: Path) -> str | None:
    """Why a checkpoint can't be believed, or None."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        for name, digest in manifest["files"].items():
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
                return f"{folder.name}/{name} is torn or was altered"
    except FileNotFoundError as error:
        return f"{folder.name} is incomplete ({Path(str(error.filename)).name} is missing)"
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return f"{folder.name}/{MANIFEST} can't be read"
    return None
