"""Folders that photos were indexed with, moved and called otherwise without indexing again."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import cairn as public
from tests.conftest import Ran
from tests.support.hostile import encode, photo

Cairn = Callable[..., Ran]


@pytest.fixture
def place(cairn: Cairn, tmp_path: Path) -> Path:
    """A collection `a.cairn` of two years of photos, each year indexed by itself, one photo of each in a folder."""
    for year, shown in (("2020", "coffee"), ("2021", "rocket")):
        (tmp_path / "photos" / year / "trip").mkdir(parents=True)
        (tmp_path / "photos" / year / "trip" / f"{shown}.png").write_bytes(encode(photo(shown), "PNG"))
        (tmp_path / "photos" / year / f"{shown}.jpg").write_bytes(encode(photo(shown), "JPEG"))
        cairn("index", tmp_path / "a.cairn", tmp_path / "photos" / year, "--words", 50)
    return tmp_path


def roots_of(place: Path) -> dict[str, tuple[int, bool]]:
    with public.open(place / "a.cairn") as collection:
        return {one.folder: (one.photos, one.there) for one in collection.roots()}


def test_folders_are_listed_and_whether_they_are_there(cairn: Cairn, place: Path) -> None:
    first, second = place / "photos" / "2020", place / "photos" / "2021"
    assert roots_of(place) == {str(first): (2, True), str(second): (2, True)}
    second.rename(place / "elsewhere")
    assert roots_of(place) == {str(first): (2, True), str(second): (2, False)}
    assert f"2 photos  {second}  (not there, or empty)" in cairn("roots", place / "a.cairn").out


def test_what_has_moved_is_found_by_one_answer_and_is_what_it_was(cairn: Cairn, place: Path) -> None:
    photos, moved = place / "photos", place / "drive" / "all"
    moved.parent.mkdir()
    photos.rename(moved)
    os.utime(moved / "2020" / "coffee.jpg")  # it is read then
    edited = moved / "2021" / "trip" / "rocket.png"
    edited.write_bytes(encode(photo("coffee"), "PNG"))
    reported = cairn("roots", place / "a.cairn", "--moved", photos, moved, "--json").json
    assert sorted(reported["moved"]) == ["coffee.jpg", "rocket.jpg", "trip/coffee.png"]
    assert reported["left"] == ["trip/rocket.png"]
    assert {one["folder"]: one["photos"] for one in reported["roots"]} == {
        str(moved / "2020"): 2,
        str(moved / "2021"): 1,
        str(photos / "2021"): 1,
    }
    assert cairn("check", place / "a.cairn").code == 0
    again = cairn("index", place / "a.cairn", moved / "2020", "--json").json
    assert (again["added"], again["unchanged"], again["moved"]) == (0, 2, [])
    found = cairn("query", place / "a.cairn", "coffee.jpg", "--json").json["results"]
    assert "trip/coffee.png" in {one["name"] for one in found if one["found"]}


def test_a_place_that_another_photo_has_is_left_to_it(cairn: Cairn, place: Path) -> None:
    shutil.copytree(place / "photos" / "2020", place / "copy")
    assert cairn("index", place / "a.cairn", place / "copy", "--json").json["added"] == 2
    refused = cairn("roots", place / "a.cairn", "--moved", place / "photos" / "2020", place / "copy").refused()
    assert "None of the 2 photos" in refused
    assert roots_of(place)[str(place / "photos" / "2020")] == (2, True)


def test_photos_get_names_from_an_outer_folder_and_keep_them(cairn: Cairn, place: Path) -> None:
    reported = cairn("roots", place / "a.cairn", "--names-from", place / "photos", "--json").json
    assert reported["renamed"] == {
        "coffee.jpg": "2020/coffee.jpg",
        "trip/coffee.png": "2020/trip/coffee.png",
        "rocket.jpg": "2021/rocket.jpg",
        "trip/rocket.png": "2021/trip/rocket.png",
    }
    assert reported["roots"] == [{"folder": str(place / "photos"), "photos": 4, "there": True}]
    assert cairn("index", place / "a.cairn", place / "photos", "--json").json["unchanged"] == 4
    with public.open(place / "a.cairn") as collection:
        assert {one.name for one in collection.photos()} == {*reported["renamed"].values()}
        assert collection.name_from(place / "photos") == {}
        renamed = collection.name_from(place / "photos" / "2020" / "trip")
    assert renamed == {"2020/trip/coffee.png": "coffee.png"}


def test_names_that_others_have_are_not_taken_twice(cairn: Cairn, place: Path) -> None:
    with public.open(place / "a.cairn") as collection:
        collection.name_from(place / "photos")
        shutil.copy(place / "photos" / "2021" / "rocket.jpg", place / "photos" / "2020" / "rocket.jpg")
    cairn("index", place / "a.cairn", place / "photos")
    with public.open(place / "a.cairn") as collection:
        assert collection.name_from(place / "photos" / "2020")["2020/rocket.jpg"] == "rocket.jpg"
        # A photo whose name another one has is called by its folder too, as it is already.
        assert collection.name_from(place / "photos" / "2021") == {"2021/trip/rocket.png": "trip/rocket.png"}
        names = {one.name for one in collection.photos()}
    assert names == {"coffee.jpg", "trip/coffee.png", "rocket.jpg", "2021/rocket.jpg", "trip/rocket.png"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--moved", "nowhere", "photos"), "lies below"),
        (("--moved", "photos", "nowhere"), "There is no folder"),
        (("--moved", "photos", "empty"), "None of the 4 photos"),
        (("--names-from", "empty"), "lies below"),
        (("--names-from", "photos", "--moved", "photos", "empty"), "Give either --moved or --names-from."),
    ],
)
def test_what_is_wrong_is_one_sentence_and_changes_nothing(
    cairn: Cairn, place: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    (place / "empty").mkdir()
    before = roots_of(place)
    given = [one if one.startswith("--") else place / one for one in arguments]
    assert sentence in cairn("roots", place / "a.cairn", *given).refused()
    assert roots_of(place) == before
