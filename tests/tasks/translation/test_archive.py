"""IWSLT'14 from the official archive's layout, and from folders of aligned files."""

import gzip
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from sam_repro.errors import UserError
from sam_repro.tasks.translation.archive import TESTS, fetch_iwslt14
from sam_repro.tasks.translation.corpus import Corpus
from sam_repro.tasks.translation.prepare import Preparation, prepared
from sam_repro.tasks.translation.text import lines_of

PAIRS = [(f"Das ist Satz {i}.", f"This is sentence {i}.") for i in range(50)]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def official(pairs: list[tuple[str, str]] = PAIRS) -> dict[str, bytes]:
    """The archive's files. Among the sentences stand what is no text, tags, a long line and one without a partner."""
    files = {}
    for side, language in enumerate(("de", "en")):
        lines = ["<url>http://a</url>", "<talkid>1</talkid>", "<title>Ein Titel</title>"]
        lines += [pair[side] for pair in pairs[:20]]
        lines += ["", "a " * 176, "eins" if side == 0 else "one two three four"]
        lines += [pair[side] for pair in pairs[20:]]
        files[f"train.tags.de-en.{language}"] = "".join(line + "\n" for line in lines).encode()
        for number, name in enumerate(TESTS):
            text = f'<doc>\n<seg id="1"> It’s {name} </seg>\n<seg id="2">two {number}</seg>\n</doc>\n'
            files[f"IWSLT14.{name}.de-en.{language}.xml"] = text.encode()
    return files


def packed(path: Path, files: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"de-en/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(f"de-en/{name}")
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return path


def test_the_official_archive_is_cleaned_and_split(tmp_path: Path) -> None:
    folder = fetch_iwslt14(packed(tmp_path / "de-en.tgz", official()), tmp_path / "data")
    train, valid, test = ([lines_of(folder / f"{split}.{language}") for language in ("de", "en")]
                          for split in ("train", "valid", "test"))  # fmt: skip
    assert train[0][0] == "Ein Titel", "a title is text, its tags are not"
    clean = ["Ein Titel", *(de for de, _ in PAIRS)]
    assert valid[0] == clean[22::23]
    assert train[0] == [line for i, line in enumerate(clean, start=1) if i % 23]
    assert len(train[0]) == len(train[1])
    assert test[1][:3] == ["It's TED.dev2010", "two 0", "It's TEDX.dev2012"]
    assert len(test[0]) == 10
    corpus = Corpus(prepared(folder, Preparation()))
    assert len(corpus.pairs("train")) == len(train[0])
    assert corpus.target.decode(corpus.pairs("train").target[1]) == ("this is sentence 0 .", "this is sentence 0.")


def test_an_unpacked_archive_and_aligned_files_give_the_same(tmp_path: Path) -> None:
    first = fetch_iwslt14(packed(tmp_path / "de-en.tgz", official()), tmp_path / "data")
    unpacked, aligned = tmp_path / "unpacked", tmp_path / "aligned"
    unpacked.mkdir()
    aligned.mkdir()
    for name, content in official().items():
        (unpacked / name).write_bytes(content)
    for file in first.glob("*.??"):
        (aligned / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    made = prepared(first, Preparation())
    for i, path in enumerate((unpacked, aligned)):
        assert prepared(fetch_iwslt14(path, tmp_path / f"data{i}"), Preparation()) == made


def test_a_link_is_no_file_of_the_archive(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a\n")
    files = official()
    del files["train.tags.de-en.en"]
    archive = packed(tmp_path / "de-en.tgz", files, {"train.tags.de-en.en": str(secret)})
    with pytest.raises(UserError, match=r"no file train\.tags\.de-en\.en"):
        fetch_iwslt14(archive, tmp_path / "data")


def test_names_that_lead_elsewhere_write_nothing_there(tmp_path: Path) -> None:
    files = official() | {"../../evil": b"x", "../../../train.tags.de-en.xx": b"x"}
    (tmp_path / "a" / "b").mkdir(parents=True)
    fetch_iwslt14(packed(tmp_path / "a" / "b" / "de-en.tgz", files), tmp_path / "a" / "b")
    assert not list(tmp_path.rglob("evil"))


def test_sides_that_do_not_match_and_damage_are_one_line(tmp_path: Path) -> None:
    files = official()
    files["train.tags.de-en.en"] += b"one more\n"
    with pytest.raises(UserError, match=r"train\.tags\.de-en\.de has .* line 55 has no partner"):
        fetch_iwslt14(packed(tmp_path / "de-en.tgz", files), tmp_path / "data")
    cut = tmp_path / "cut.tgz"
    cut.write_bytes((tmp_path / "de-en.tgz").read_bytes()[:300])
    with pytest.raises(UserError, match="no archive that can be read"):
        fetch_iwslt14(cut, tmp_path / "data")
    with pytest.raises(UserError, match="too few"):
        fetch_iwslt14(packed(tmp_path / "few.tgz", official(PAIRS[:5])), tmp_path / "data")


def test_the_command_names_its_folder_or_its_mistake(tmp_path: Path) -> None:
    def fetch(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "sam_repro", "fetch", "iwslt14", "--root", str(tmp_path / "data"), *words]
        return subprocess.run(command, capture_output=True, text=True)

    done = fetch("--from", str(packed(tmp_path / "de-en.tgz", official())))
    assert (done.returncode, done.stdout.strip()) == (0, str(tmp_path / "data" / "iwslt14"))
    for words, said in ((("--from", str(tmp_path / "none")), "no such file or folder"), ((), "--from PATH")):
        done = fetch(*words)
        assert done.returncode == 2
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
