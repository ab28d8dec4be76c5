"""One file over HTTP, resumed where it broke off, with a verified md5."""

from __future__ import annotations

import hashlib
import http.client
import sys
import urllib.error
import urllib.request
from pathlib import Path

TIMEOUT = 20.0  # seconds without a byte
ATTEMPTS = 4
_CHUNK = 1 << 18
_REPORT = 1 << 24


class UnreachableError(Exception):
    """An origin that gave nothing usable; the next one is tried."""


class AlteredError(UnreachableError):
    """What lies here, from an earlier attempt perhaps, is not what it should be: worth fetching anew."""


def download(address: str, path: Path, md5: str) -> None:
    """The file at `path`, complete and verified. A broken transfer goes on where it stopped, now or next time."""
    if path.is_file():
        if md5_of(path) == md5:
            return
        path.unlink()  # an earlier attempt's; whatever happened to it since
    partial = path.with_name(path.name + ".part")
    for attempt in range(ATTEMPTS):
        before = _size(partial)
        try:
            _transfer(address, partial)
            break
        except urllib.error.HTTPError as error:
            raise UnreachableError(f"{address}: {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException) as error:
            # A host that sent something is worth another try; one that never answered is not.
            if _size(partial) == before or attempt == ATTEMPTS - 1:
                raise UnreachableError(f"{address}: {getattr(error, 'reason', error)}") from None
    if (actual := md5_of(partial)) != md5:
        partial.unlink()
        raise AlteredError(f"{address}: its md5 is {actual} instead of {md5}")
    partial.rename(path)


def md5_of(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _transfer(address: str, partial: Path) -> None:
    done = _size(partial)
    request = urllib.request.Request(address, headers={"User-Agent": "sam_repro", "Accept-Encoding": "identity"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if done and error.code == 416:  # nothing lies beyond: it was complete already, and the md5 will tell
            return
        raise
    with response:
        if response.status != 206:  # the host ignored the range and starts over
            done = 0
        expected = done + int(response.headers.get("Content-Length") or 0)
        with open(partial, "ab" if done else "wb") as file:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                if (done + len(chunk)) // _REPORT > done // _REPORT:
                    print(f"  {partial.stem}: {(done + len(chunk)) >> 20} of {expected >> 20} MB", file=sys.stderr)
                done += len(chunk)
    if done < expected:
        raise OSError(f"broke off after {done} of {expected} bytes")
