"""A drive that is away is not so many lost photos."""

from collections.abc import Callable
from pathlib import Path

import pytest

import cairn as public
from tests.conftest import Ran
from tests.support.hostile import encode, photo

Cairn = Callable[..., Ran]


@pytest.fixture
def place(cairn: Cairn, tmp_path: Path) -> Path:
    """A collection `a.cairn` of photos on a drive, and of one elsewhere."""
    for name, shown, ending in (
        ("drive/photos", "coffee", "PNG"),
        ("drive/photos/deep", "coffee", "JPEG"),
        ("own", "rocket", "PNG"),
    ):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / f"{shown}.{ending.lower()}").write_bytes(encode(photo(shown), ending))
    made = cairn("index", tmp_path / "a.cairn", tmp_path / "drive" / "photos", tmp_path / "own", "--words", 50)
    assert "3 added" in made.out
    return tmp_path


@pytest.mark.parametrize("is_mounted", [False, True])
def test_a_drive_that_is_away_is_said_in_a_sentence_and_no_photo_is_taken_out(
    cairn: Cairn, place: Path, is_mounted: bool
) -> None:
    drive, kept = place / "drive" / "photos", place / "kept"
    drive.rename(kept)
    if is_mounted:
        drive.mkdir()
        ran = cairn("index", place / "a.cairn", drive)
        assert f"The folder {drive} is not there, or empty, with 2 photos" in ran.err
    else:
        refused = cairn("index", place / "a.cairn", drive).refused()
        assert f"The folder {drive} is not there, with 2 photos of the collection" in refused
        ran = cairn("index", place / "a.cairn", place / "drive", place / "own")
        assert ran.code == 0 and f"{drive} is not there" in ran.err
    assert "There is no file or folder" in cairn("index", place / "a.cairn", place / "nowhere").refused()
    assert "--gone" in (refused := cairn("remove", place / "a.cairn", "--missing").refused()) and str(drive) in refused
    assert cairn("info", place / "a.cairn", "--json").json["images"] == 3
    if is_mounted:
        drive.rmdir()
    kept.rename(drive)
    assert cairn("index", place / "a.cairn", drive, "--json").json["back"] == ["coffee.png", "deep/coffee.jpeg"]


def test_photos_of_a_folder_that_is_gone_for_good_are_taken_out_when_it_is_named(cairn: Cairn, place: Path) -> None:
    (place / "drive" / "photos").rename(place / "kept")
    cairn("index", place / "a.cairn", place / "drive")
    reported = cairn("remove", place / "a.cairn", "--missing", "--gone", place / "drive", "--json").json
    assert (reported["removed"], reported["images"]) == (["coffee.png", "deep/coffee.jpeg"], 1)


def test_a_deleted_photo_and_a_deleted_folder_below_are_taken_out_as_ever(cairn: Cairn, place: Path) -> None:
    (place / "drive" / "photos" / "deep" / "coffee.jpeg").unlink()
    (place / "drive" / "photos" / "deep").rmdir()
    ran = cairn("index", place / "a.cairn", place / "drive" / "photos")
    assert "1 vanished" in ran.out and "not there" not in ran.err
    assert cairn("remove", place / "a.cairn", "--missing", "--json").json["removed"] == ["deep/coffee.jpeg"]


@pytest.mark.parametrize("how", [(), ("--box", 20, 20, 300, 220), ("--engine", "tf-idf"), ("--engine", "tf-idf-sp")])
def test_a_photo_whose_file_is_away_is_searched_with_by_what_is_stored(
    cairn: Cairn, place: Path, how: tuple[object, ...]
) -> None:
    query = ("query", place / "a.cairn", "coffee.png", "--json", "--turns", 1, *how)
    before = cairn(*query).json
    (place / "drive").rename(place / "kept")
    found = cairn(*query).json
    assert found["results"] == before["results"] and len(found["results"]) >= 2
    if not how:
        with public.open(place / "a.cairn") as opened:
            assert [one.name for one in opened.search("coffee.png")][:2] == ["coffee.png", "deep/coffee.jpeg"]
            with pytest.raises(public.CairnError, match="no longer there"):
                opened.search("coffee.png", soft=2)
