"""Folders that photos are chosen from."""

from pathlib import Path

import pytest

from retrieval.collection.layout import OPTIONS
from retrieval.curation.choosing import FolderNotFound, SubFolder, folder_below, list_folder, under_known_names


def test_photos_are_indexed_again_under_the_names_that_they_had() -> None:
    album, elsewhere = Path("/photos/album"), Path("/photos/x.jpg")
    found = under_known_names([album / "a.jpg", album / "deep" / "b.jpg", album / "deep" / "c.jpg", elsewhere], [album])
    assert found == [album / "a.jpg", album, elsewhere]


def test_what_lies_in_a_folder_is_told_but_for_collections_and_what_leads_out(tmp_path: Path) -> None:
    root = tmp_path / "photos"
    for name in ("b", "A", "holiday.cairn", ".hidden"):
        (root / name).mkdir(parents=True)
    (root / "holiday.cairn" / OPTIONS).write_text("")
    (tmp_path / "secret").mkdir()
    (root / "out").symlink_to(tmp_path / "secret")
    for name in ("1.jpg", "2.PNG", "notes.txt", ".3.jpg"):
        (root / name).write_bytes(b"")
    (root / "clip.MOV").touch()
    found = list_folder([root], 0, "")
    assert (found.name, found.photos, found.more) == ("photos", 2, False)
    assert found.folders == [SubFolder("A", "A"), SubFolder("b", "b")]
    assert found.films == 1
    assert folder_below([root], 0, "b") == root / "b"
    for path in ("out", "holiday.cairn", "../secret", "/b", ".hidden", "none", "b\0"):
        with pytest.raises(FolderNotFound):
            folder_below([root], 0, path)
    with pytest.raises(FolderNotFound):
        folder_below([root], 1, "")
