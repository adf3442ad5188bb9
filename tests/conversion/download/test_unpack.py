"""Archives that mean harm, and archives that are only damaged: refused with a reason, and nothing is left behind."""

from __future__ import annotations

import errno
import gzip
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.conversion.download import fetch
from eraser_hub.conversion.download.unpack import DiskFull, Limits, unpack
from eraser_hub.records.errors import BusyError, DataError
from eraser_hub.records.files import hold_lock

from ...refusals import refused

pytestmark = pytest.mark.unit

Add = Callable[[tarfile.TarFile], None]


def member(name: str, content: bytes = b"x", **attributes: object) -> Add:
    def add(tar: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        for key, value in attributes.items():
            setattr(info, key, value)
        tar.addfile(info, io.BytesIO(content) if info.isreg() else None)

    return add


def write(path: Path, *adds: Add, kind: int = tarfile.PAX_FORMAT) -> Path:
    with tarfile.open(path, "w:gz", format=kind) as tar:
        for add in adds:
            add(tar)
    return path


GOOD = (member("movies/val.jsonl", b"{}\n"), member("movies/docs/a.txt", b"a ."))


def test_a_good_archive_gives_the_corpus_folder(tmp_path):
    archive = write(tmp_path / "movies.tar.gz", member("movies", b"", type=tarfile.DIRTYPE), *GOOD)
    folder = unpack(archive, tmp_path / "out")
    assert folder == tmp_path / "out" / "movies"
    assert (folder / "docs" / "a.txt").read_bytes() == b"a ."
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755


def test_an_archive_without_a_folder_of_its_own(tmp_path):
    archive = write(tmp_path / "a.tar.gz", member("./val.jsonl"), member("./docs/a"))
    assert unpack(archive, tmp_path / "out") == tmp_path / "out"
    assert (tmp_path / "out" / "docs" / "a").is_file()


@pytest.mark.parametrize(
    ("bad", "mentions"),
    [
        (member("../outside.txt"), ("'../outside.txt'",)),
        (member("movies/../../outside.txt"), ("'movies/../../outside.txt'",)),
        (member("movies/docs/.."), ("'movies/docs/..'",)),
        (member("/outside.txt"), ("'/outside.txt'",)),
        (member("//outside.txt"), ("'//outside.txt'",)),
        (member("C:\\outside.txt"), (repr("C:\\outside.txt"),)),
        (member("movies/docs/b", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"), ("link", "'/etc/passwd'")),
        (member("movies/docs", b"", type=tarfile.SYMTYPE, linkname="../.."), ("link", "'../..'")),
        (member("movies/docs/b", b"", type=tarfile.SYMTYPE, linkname="a.txt"), ("link", "'a.txt'")),
        (member("movies/docs/b", b"", type=tarfile.LNKTYPE, linkname="../../../outside.txt"), ("link", "outside.txt'")),
        (member("movies/docs/b", b"", type=tarfile.LNKTYPE, linkname="movies/docs/a.txt"), ("link", "docs/a.txt'")),
        (member("movies/docs/b", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=5), ("'movies/docs/b'", "neither")),
        (member("movies/docs/b", b"", type=tarfile.BLKTYPE, devmajor=8), ("'movies/docs/b'", "neither")),
        (member("movies/docs/b", b"", type=tarfile.FIFOTYPE), ("'movies/docs/b'", "neither")),
        (member("movies/val.jsonl"), ("'movies/val.jsonl'", "twice")),
        (member("./movies//val.jsonl"), ("'./movies//val.jsonl'", "twice")),
        (member("movies/val.jsonl/below"), (os.strerror(errno.ENOTDIR),)),
        (member("movies/docs/" + "n" * 300), (os.strerror(errno.ENAMETOOLONG),)),
    ],
)
def test_hostile_members_are_refused_and_nothing_is_left(tmp_path, bad, mentions):
    room = tmp_path / "room"
    room.mkdir()
    archive = write(room / "movies.tar.gz", *GOOD, bad)
    with refused(*mentions, file=archive):
        unpack(archive, room / "out")
    assert sorted(path.name for path in room.iterdir()) == ["movies.tar.gz"]
    assert not (tmp_path / "outside.txt").exists()


@pytest.mark.parametrize(("size", "mentioned"), [(10**12, 8 << 30), (9, "docs/b'")])
def test_a_sparse_member_is_refused(tmp_path, size, mentioned):
    headers = {"GNU.sparse.size": str(size), "GNU.sparse.map": "0,1"}
    with refused(mentioned, file="a.tar.gz"):
        unpack(
            write(tmp_path / "a.tar.gz", *GOOD, member("movies/docs/b", b"x", pax_headers=headers)), tmp_path / "out"
        )


@pytest.mark.parametrize(
    "headers",
    [
        {"GNU.sparse.size": "many", "GNU.sparse.map": "0,1"},
        {"GNU.sparse.size": "9", "GNU.sparse.map": "0,x"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "9" * 5000},
        {"size": "-1"},
    ],
)
def test_headers_that_lie_are_refused(tmp_path, headers):
    lie = member("movies/docs/b", b"x" * 600, pax_headers=headers)
    with refused(file="a.tar.gz"):
        unpack(write(tmp_path / "a.tar.gz", *GOOD, lie), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("deep", [40, 3000])
def test_a_member_thousands_of_folders_deep_is_refused(tmp_path, deep):
    for one in (member("movies/" + "a/" * deep + "b"), member("movies/" + "a/" * deep, b"", type=tarfile.DIRTYPE)):
        with refused("folders deep", file="a.tar.gz"):
            unpack(write(tmp_path / "a.tar.gz", *GOOD, one), tmp_path / "out")
        assert [path.name for path in tmp_path.iterdir()] == ["a.tar.gz"]


def test_too_many_members(tmp_path):
    archive = write(tmp_path / "a.tar.gz", *(member(f"movies/docs/{n}") for n in range(50)))
    with refused("20 members", file=archive):
        unpack(archive, tmp_path / "out", Limits(members=20))
    assert not (tmp_path / "out").exists()


def zeros(path: Path, size: int, name: str = "movies/val.jsonl") -> Path:
    """A small archive of one large file."""
    info = tarfile.TarInfo(name)
    info.size = size
    with gzip.open(path, "wb", compresslevel=9) as out:
        out.write(info.tobuf())
        for _ in range(size >> 20):
            out.write(bytes(1 << 20))
        out.write(bytes(1024))
    return path


def test_a_bomb_by_ratio_and_one_by_size(tmp_path):
    archive = zeros(tmp_path / "a.tar.gz", 24 << 20)
    assert archive.stat().st_size < 100_000
    with refused(archive.stat().st_size, file=archive):
        unpack(archive, tmp_path / "out", Limits(free_bytes=1 << 20))
    with refused(1 << 20, file=archive):
        unpack(archive, tmp_path / "out", Limits(total_bytes=1 << 20))
    assert not (tmp_path / "out").exists()
    assert list(tmp_path.glob(".out.unpacking*")) == []


def test_a_bomb_behind_the_end_of_the_archive(tmp_path):
    archive = write(tmp_path / "a.tar.gz", *GOOD)
    tail = io.BytesIO()
    with gzip.open(tail, "wb") as out:
        out.write(bytes(8 << 20))
    archive.write_bytes(archive.read_bytes() + tail.getvalue())
    with refused(1 << 20, file=archive):
        unpack(archive, tmp_path / "out", Limits(total_bytes=1 << 20))


def test_a_header_that_asks_for_all_memory(tmp_path):
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 5 << 30
    with gzip.open(tmp_path / "a.tar.gz", "wb") as out:
        out.write(info.tobuf(format=tarfile.GNU_FORMAT))
        out.write(bytes(1 << 20))
    with refused(5 << 30, 1 << 20, file="a.tar.gz"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "out")


def test_a_member_that_claims_more_than_there_is(tmp_path):
    info = tarfile.TarInfo("movies/val.jsonl")
    info.size = 1 << 50
    with gzip.open(tmp_path / "a.tar.gz", "wb") as out:
        out.write(info.tobuf(format=tarfile.GNU_FORMAT))
    with refused(8 << 30, file="a.tar.gz"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "out")


@pytest.mark.parametrize(
    "content", [b"", b"<html>not found</html>", gzip.compress(b"", mtime=0), gzip.compress(b"hello" * 200, mtime=0)]
)
def test_what_is_no_archive(tmp_path, content):
    (tmp_path / "a.tar.gz").write_bytes(content)
    with refused(file="a.tar.gz"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_archive_cut_anywhere_is_an_error(tmp_path):
    whole = write(tmp_path / "a.tar.gz", *(member(f"movies/docs/{n}", os.urandom(700)) for n in range(9)), *GOOD)
    content = whole.read_bytes()
    for length in range(0, len(content) - 1, 97):
        whole.write_bytes(content[:length])
        with refused(file=whole):
            unpack(whole, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_tar_cut_inside_a_whole_gzip_is_an_error(tmp_path):
    whole = write(tmp_path / "a.tar.gz", *(member(f"movies/docs/{n}", b"a ." * 300) for n in range(9)), *GOOD)
    tar = gzip.decompress(whole.read_bytes())
    end = len(tar.rstrip(b"\0"))
    for length in [512, 1024, 1025, 1536, 3000, 512 * 7, end - 600, end + 1]:
        whole.write_bytes(gzip.compress(tar[:length]))
        with refused(file=whole):
            unpack(whole, tmp_path / "out")
    damaged = bytearray(tar)
    damaged[1536:1540] = b"\xff\xff\xff\xff"  # the second header: tarfile alone would take it for the end
    whole.write_bytes(gzip.compress(bytes(damaged)))
    with refused(file=whole):
        unpack(whole, tmp_path / "out")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_flipped_byte_is_an_error_or_changes_nothing(tmp_path_factory, flips):
    folder = tmp_path_factory.mktemp("flipped")
    archive = write(folder / "a.tar.gz", *GOOD, member("movies/docs/b", bytes(range(256)) * 8))
    content = bytearray(archive.read_bytes())
    for place, byte in flips:
        content[place % len(content)] = byte
    archive.write_bytes(content)
    try:
        found = unpack(archive, folder / "out")
    except DataError:
        assert not (folder / "out").exists()
    else:
        assert (found / "docs" / "b").read_bytes() == bytes(range(256)) * 8
    assert list(folder.glob(".out.unpacking*")) == []


def test_names_are_data(tmp_path):
    names = ["Penélope", "Harrow_Co.", "O'Hara", "a b", "-rf", "~", "$HOME", "..hidden", "a\nb", "nul\u200b", "._real"]
    archive = write(tmp_path / "a.tar.gz", *GOOD, *(member(f"movies/docs/{name}") for name in names))
    folder = unpack(archive, tmp_path / "out")
    assert {path.name for path in (folder / "docs").iterdir()} == {*names, "a.txt"}


def test_the_files_that_macos_adds_are_left_out(tmp_path):
    apple = member("movies/docs/._a.txt", b"\x00\x05\x16\x07\x00\x02rest")
    folder = unpack(write(tmp_path / "a.tar.gz", *GOOD, apple), tmp_path / "out")
    assert [path.name for path in (folder / "docs").iterdir()] == ["a.txt"]


def test_modes_and_owners_of_the_archive_do_not_matter(tmp_path):
    archive = write(tmp_path / "a.tar.gz", *GOOD, member("movies/docs/s", b"x", mode=0o4777, uid=0, gid=0))
    mode = (unpack(archive, tmp_path / "out") / "docs" / "s").stat().st_mode
    assert not mode & 0o7111


def test_nothing_is_unpacked_over_a_folder(tmp_path):
    archive = write(tmp_path / "a.tar.gz", *GOOD)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    with refused(file=tmp_path / "out"):
        unpack(archive, tmp_path / "out")
    assert (tmp_path / "out" / "mine").read_text() == "mine"
    (tmp_path / "out" / "mine").unlink()
    assert unpack(archive, tmp_path / "out").name == "movies"


def test_what_a_killed_run_left_is_removed(tmp_path):
    archive = write(tmp_path / "a.tar.gz", *GOOD)
    left = tmp_path / ".out.unpacking" / "movies"
    left.mkdir(parents=True)
    unpack(archive, tmp_path / "out")
    assert not left.exists()


def test_two_at_a_time(tmp_path):
    archive = write(tmp_path / "a.tar.gz", *GOOD)
    with hold_lock(tmp_path / ".out.lock", ""), refused(tmp_path / ".out.lock", type=BusyError):
        unpack(archive, tmp_path / "out")


def test_a_full_disk_is_said(tmp_path, monkeypatch):
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "extract", full)
    with refused(tmp_path, file="a.tar.gz", type=DiskFull):
        unpack(write(tmp_path / "a.tar.gz", *GOOD), tmp_path / "out")


def test_a_users_archive_is_unpacked_once(tmp_path):
    archive = write(tmp_path / "movies.tar.gz", *GOOD)
    folder = fetch.unpack_archive(archive, tmp_path / "cache")
    assert fetch.find_corpus(folder, "movies") == folder / "movies"
    (folder / "movies" / "mark").touch()
    assert fetch.unpack_archive(archive, tmp_path / "cache") == folder
    assert (folder / "movies" / "mark").exists()
    assert fetch.find_corpus(folder, "cose") is None
