"""The bin: files are moved, never over others, put back, and lost at no moment."""

import contextlib
import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from index.arrays import hash_file
from retrieval.catalogue.photos import count_indexed, photo_of_name, rows_of
from retrieval.catalogue.schema import ImageRow
from retrieval.curation import bin as bins
from retrieval.curation.bin import FILE_FOLDER, RECORD, FileNotMoved, binned, find_binned, forget, move_to_bin, put_back
from retrieval.curation.discarding import discard, restore
from tests.support.written_photos import Album

HOSTILE = "..%2f\n<img src=x onerror=alert(1)>;rm -rf ~ 'ü\"$(x).jpg"


class Killed(BaseException):
    """Stands for the end of the process."""


def row_of(path: Path) -> ImageRow:
    return ImageRow(number=7, path=str(path), name=f"a/{path.name}", sha256=hash_file(path))


def kept(folder: Path, contents: bytes) -> list[Path]:
    """Whole files of some contents below a folder."""
    return [one for one in folder.rglob("*") if one.is_file() and one.read_bytes() == contents]


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photos" / HOSTILE
    path.parent.mkdir()
    path.write_bytes(b"pixels")
    return path


@pytest.fixture(params=["one file system", "two file systems", "no links"])
def drive(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How two folders lie to each other."""
    link = os.link

    def refuse(source: Path, target: Path, **how: bool) -> None:
        if request.param == "no links" or Path(source).parent != Path(target).parent:
            raise OSError(errno.EXDEV, "another file system")
        link(source, target, **how)

    if request.param != "one file system":
        monkeypatch.setattr(os, "link", refuse)
    return str(request.param)


def test_a_file_is_moved_and_put_back(photo: Path, tmp_path: Path, drive: str) -> None:
    folder = tmp_path / "bin"
    os.utime(photo, ns=(10**18, 10**18))
    one = move_to_bin(row_of(photo), folder, tmp_path / "c.cairn")
    assert not photo.exists() and kept(folder, b"pixels") == [folder / one.id / FILE_FOLDER / HOSTILE]
    assert list(binned(folder)) == [one] == [find_binned(folder, one.id)] and one.path == str(photo)
    for _ in range(2):  # a second time where the first one was killed before all was done
        put_back(one, folder)
        assert photo.read_bytes() == b"pixels" and photo.stat().st_mtime_ns == 10**18
    forget(one, folder)
    assert photo.read_bytes() == b"pixels"
    assert not list(folder.iterdir()) and not list(binned(folder))


def test_nothing_is_written_over(photo: Path, tmp_path: Path, drive: str) -> None:
    folder = tmp_path / "bin"
    row = row_of(photo)
    one = move_to_bin(row, folder, tmp_path)
    photo.write_bytes(b"another")
    with pytest.raises(FileNotMoved, match="now another file"):
        put_back(one, folder)
    with pytest.raises(FileNotMoved, match="no longer what was indexed"):
        move_to_bin(row, folder, tmp_path)
    with pytest.raises(OSError):
        bins._move(folder / one.id / FILE_FOLDER / HOSTILE, photo, one.sha256)
    assert photo.read_bytes() == b"another" and len(kept(folder, b"pixels")) == 1
    photo.unlink()
    photo.symlink_to(folder / one.id / FILE_FOLDER / HOSTILE)
    with pytest.raises(FileNotMoved, match="now another file"):
        put_back(one, folder)
    assert photo.read_bytes() == b"pixels", "the link leads to what is in the bin still"
    photo.unlink()
    inside = folder / one.id / FILE_FOLDER
    (tmp_path / "linked").symlink_to(inside, target_is_directory=True)
    with pytest.raises(FileNotMoved, match="now another file"):
        put_back(replace(one, path=str(tmp_path / "linked" / HOSTILE)), folder)
    assert (inside / HOSTILE).read_bytes() == b"pixels"
    photo.symlink_to("/etc/passwd")
    with pytest.raises(FileNotMoved, match="a link"):
        move_to_bin(row, folder, tmp_path)


@pytest.mark.parametrize("step", range(8))
def test_what_is_killed_between_two_steps_loses_nothing(
    photo: Path, tmp_path: Path, drive: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, row, left = tmp_path / "bin", row_of(photo), step

    def interrupted(name: str, real: object) -> object:
        def call(*arguments: object, **how: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed(name)
            return real(*arguments, **how)  # type: ignore[operator]

        return call

    with monkeypatch.context() as patch:
        for owner, name in ((Path, "unlink"), (bins.shutil, "copyfileobj"), (bins.shutil, "copystat"), (bins, "_sync")):
            patch.setattr(owner, name, interrupted(name, getattr(owner, name)))
        patch.setattr(bins.shutil, "rmtree", lambda *_, **__: None)  # a killed process tidies nothing
        with contextlib.suppress(Killed):
            move_to_bin(row, folder, tmp_path)
    assert kept(tmp_path, b"pixels")
    # Asked for again, it is done.
    one = move_to_bin(row, folder, tmp_path)
    assert not photo.exists() and find_binned(folder, one.id) == one
    put_back(one, folder)
    assert photo.read_bytes() == b"pixels"


def test_what_is_no_record_of_the_bin_is_passed_over(photo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    one = move_to_bin(row_of(photo), folder, tmp_path)
    for place, (key, value) in enumerate(
        [
            ("path", "relative.jpg"),
            ("number", "7"),
            ("id", "../x"),
            ("path", 5),
            ("others", 5),
            ("others", [["1", "x"]]),
        ]
    ):
        other = folder / f"20260101T00000{place}-{'0' * 16}"
        shutil.copytree(folder / one.id, other)
        record = json.loads((other / RECORD).read_text()) | {"id": other.name, key: value}
        (other / RECORD).write_text(json.dumps(record))
    (folder / ("20260101T000009-" + "0" * 16)).mkdir()
    (folder / "notes.txt").write_text("mine")
    assert list(binned(folder)) == [one]
    assert all(find_binned(folder, name) is None for name in ("", "..", f"../bin/{one.id}", "notes.txt"))


def test_a_photo_leaves_the_collection_when_its_file_is_in_the_bin(album: Album, tmp_path: Path) -> None:
    album.put(a__one=0, a__two=3, top=6)
    album.index()
    with album.open() as collection:
        catalogue, folder = collection.catalogue, tmp_path / "bin"
        one, gone = (catalogue.read(photo_of_name, name) for name in ("a/one.jpg", "top.jpg"))
        assert one is not None and gone is not None
        Path(gone.path).unlink()
        reported = discard(catalogue, [one.number, gone.number, 999], folder, collection.folder)
        assert [entry.number for entry in reported.moved] == [one.number] and not Path(one.path).exists()
        assert list(reported.failed) == [gone.number] and "no longer there" in str(reported.failed[gone.number])
        assert catalogue.read(count_indexed) == 2 and catalogue.read(photo_of_name, "a/one.jpg") is None
        collection.forget()
        assert one.number not in collection.index.image_numbers
        back = restore(catalogue, [reported.moved[0].id, "../x"], folder)
        assert [entry.number for entry in back.moved] == [one.number] and Path(one.path).is_file()
        assert catalogue.read(rows_of, [one.number]) == [one]
        collection.forget()
        assert one.number in collection.index.image_numbers
        # Killed after the file was moved: the photo is there, and goes when it is asked for again.
        entry = move_to_bin(one, folder, collection.folder)
        assert catalogue.read(count_indexed) == 3
        assert discard(catalogue, [one.number], folder, collection.folder).moved == (entry,)
        assert catalogue.read(count_indexed) == 2
