"""Uploads: names that every system may have, and that nothing is overwritten."""

from pathlib import Path, PurePosixPath

import pytest

from retrieval.curation import uploads
from retrieval.curation.uploads import (
    LeadsElsewhereError,
    NoRoomError,
    NotAPhotoError,
    check_room,
    incoming_folder,
    keep_uploads,
    safe_folder,
    safe_name,
)


def test_names_are_safe_everywhere() -> None:
    assert safe_name("a/b\\c d.JPEG") == "c d.JPEG"
    assert safe_name("con.jpg") == "con_.jpg"
    assert safe_name("...hidden.png") == "hidden.png"
    assert safe_name("gpj.\u202eexe.jpg") == "gpj.exe.jpg"
    assert safe_name("<img onerror=x>.jpg") == "_img onerror=x_.jpg"
    assert len(safe_name("ü" * 500 + ".jpg").encode()) < 200
    with pytest.raises(NotAPhotoError):
        safe_name("a.php")
    assert safe_folder("C:\\Users\\con\\ .. \\Bilder\u202e").as_posix() == "C_/Users/con_/Bilder"
    assert len(safe_folder("/".join(["ü" * 500] * 99)).as_posix().encode()) < 500


def received(folder: Path, *contents: bytes) -> list[Path]:
    incoming = incoming_folder(folder)
    for place, content in enumerate(contents):
        (incoming / str(place)).write_bytes(content)
    return [incoming / str(place) for place in range(len(contents))]


def test_nothing_is_overwritten_and_one_photo_is_kept_once(tmp_path: Path) -> None:
    files, names = received(tmp_path, b"one", b"two", b"one"), ["a.jpg", "a.jpg", "a.jpg"]
    kept = keep_uploads(tmp_path, files, names, PurePosixPath("Summer"))
    assert [name.partition("/")[2] for name in kept] == ["Summer/a.jpg", "Summer/a (2).jpg", "Summer/a.jpg"]
    assert [(tmp_path / "uploads" / name).read_bytes() for name in kept] == [b"one", b"two", b"one"]


def test_where_there_is_no_room_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    incoming = incoming_folder(tmp_path)
    check_room(incoming, 0)
    monkeypatch.setattr(uploads, "SPARE", 0)
    with pytest.raises(NoRoomError, match="nearly full"):
        check_room(incoming, 1 << 60)
    (files,) = [received(tmp_path, b"one")]
    (tmp_path / "uploads" / "elsewhere").write_bytes(b"")
    monkeypatch.setattr(uploads, "UPLOADS", "uploads/elsewhere")
    with pytest.raises(NoRoomError, match="cannot store"):
        keep_uploads(tmp_path, files, ["a.jpg"], PurePosixPath())


def test_a_folder_of_uploads_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    collection = tmp_path / "c"
    collection.mkdir()
    (collection / "uploads").symlink_to(tmp_path / "other")
    with pytest.raises(LeadsElsewhereError, match="is a link to another place"):
        incoming_folder(collection)
    assert not [*(tmp_path / "other").iterdir()]
