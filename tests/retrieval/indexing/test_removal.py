"""Removal: all that is asked for or nothing, by names, by folder, and of what has gone."""

from collections.abc import Callable

import pytest

from index.errors import CairnError
from retrieval.catalogue.metadata_store import import_values, metadata_of
from retrieval.catalogue.photos import all_indexed, counts_of_photos, missing_photos, numbers_of_names
from retrieval.catalogue.segment_rows import tombstones_in
from retrieval.indexing.removal import remove_photos
from tests.conftest import Ran
from tests.support.written_photos import Album


@pytest.fixture
def filled(album: Album) -> Album:
    album.put(top=0, a__one=3, a__two=6, a__b__three=9, ab__four=1)
    album.index()
    return album


def test_removed_photos_are_found_no_more_and_count_for_no_word(filled: Album) -> None:
    with filled.open() as collection:
        _ = collection.index
        assert remove_photos(collection, ["a/two.jpg", "top.jpg", "a/two.jpg"]) == ["a/two.jpg", "top.jpg"]
        assert len(collection.index.image_numbers) == 3  # the collection that is open sees it
        assert len(collection.catalogue.read(tombstones_in)) == 2
        assert collection.catalogue.read(counts_of_photos)["indexed"] == 3
    assert filled.answers() == filled.fresh(a__one=3, a__b__three=9, ab__four=1).answers()
    # Their files are where they were: who looks there again finds them.
    assert filled.index().added == 2
    assert filled.answers() == filled.fresh(top=0, a__one=3, a__two=6, a__b__three=9, ab__four=1).answers()


def test_nothing_is_removed_where_a_name_is_unknown(filled: Album) -> None:
    before = filled.held()
    with filled.open() as collection:
        revision = collection.catalogue.revision()
        for names, words in (
            (["top.jpg", "nowhere.jpg"], "no photo 'nowhere.jpg' in .*: nothing was removed"),
            (["x", "top.jpg", "y", "x", "z"], "no photo 'x' in .*, and 2 others"),
            (["one.jpg"], "no photo 'one.jpg'"),
            (["\udcff"], "no photo"),
        ):
            with pytest.raises(CairnError, match=words):
                remove_photos(collection, names)
            with pytest.raises(CairnError, match=words):
                remove_photos(collection, names, folder="a", missing=True)
        with pytest.raises(CairnError, match="Say which photos"):
            remove_photos(collection, [])
        for folder in ("", "/", "b", "a/two.jpg", "A", "top.jpg", "%"):
            with pytest.raises(CairnError, match="There is no folder"):
                remove_photos(collection, ["top.jpg"], folder=folder)
        assert collection.catalogue.revision() == revision  # nothing was written
    assert filled.held() == before


@pytest.mark.parametrize("folder", ["a", "a/"])
def test_a_folder_is_removed_with_those_below_it_and_no_other(filled: Album, folder: str) -> None:
    with filled.open() as collection:
        assert remove_photos(collection, [], folder=folder) == ["a/b/three.jpg", "a/one.jpg", "a/two.jpg"]
    assert filled.held().keys() == {"top.jpg", "ab/four.jpg"}


def test_photos_whose_files_are_gone_are_removed_at_a_word(filled: Album) -> None:
    (filled.photos / "top.jpg").unlink()
    (filled.photos / "a" / "one.jpg").unlink()
    with filled.open() as collection:
        assert remove_photos(collection, [], missing=True) == []  # nobody has looked yet
    assert sorted(filled.index().vanished) == ["a/one.jpg", "top.jpg"]
    with filled.open() as collection:
        assert remove_photos(collection, ["ab/four.jpg"], missing=True) == ["a/one.jpg", "ab/four.jpg", "top.jpg"]
        assert collection.catalogue.read(missing_photos) == []
        assert remove_photos(collection, [], missing=True) == []


def test_photos_that_are_there_again_are_not_removed_as_missing(filled: Album, cairn: Callable[..., Ran]) -> None:
    away = filled.photos.rename(filled.folder / "away")
    filled.photos.mkdir()
    filled.index()
    assert "connect the drive" in cairn("info", filled.place).out
    before = filled.held()
    filled.photos.rmdir()
    away.rename(filled.photos)
    (filled.photos / "top.jpg").unlink()
    ran = cairn("remove", filled.place, "--missing", "--dry-run")
    assert ran.code == 0 and ran.out.splitlines()[0] == "would be removed: top.jpg"
    assert cairn("remove", filled.place, "a/one.jpg", "--dry-run", "--json").json["would_remove"] == ["a/one.jpg"]
    assert filled.held() == before
    ran = cairn("remove", filled.place, "--missing")
    assert ran.code == 0 and "4 photos that were missing have been found again" in ran.out
    assert filled.held().keys() == before.keys() - {"top.jpg"}


def test_photos_that_come_back_have_what_was_imported_for_them(filled: Album) -> None:
    with filled.open() as collection:
        numbers = collection.catalogue.read(numbers_of_names, ["top.jpg", "a/one.jpg", "a/two.jpg"])
        names = {number: name for name, number in numbers.items()}
        collection.catalogue.write(import_values, {one: {"title": [name], "tag": ["x"]} for one, name in names.items()})
        remove_photos(collection, list(numbers))
    (filled.photos / "top.jpg").rename(filled.photos / "other.jpg")  # the same content elsewhere
    filled.put(a__one=12)  # another content at the same path
    assert filled.index().added == 3
    with filled.open() as collection:
        titles = {row.name: row.title for row in collection.catalogue.read(all_indexed)}
        (number,) = collection.catalogue.read(numbers_of_names, ["other.jpg"]).values()
        assert collection.catalogue.read(metadata_of, [number])[number].tags == ("x",)
    assert titles == {
        "other.jpg": "top.jpg",
        "a/one.jpg": "a/one.jpg",
        "a/two.jpg": "a/two.jpg",
        "a/b/three.jpg": None,
        "ab/four.jpg": None,
    }


def test_photos_are_removed_while_another_process_adds_some(filled: Album) -> None:
    with filled.open() as collection, filled.open() as other, other.locked():
        assert remove_photos(collection, ["top.jpg"]) == ["top.jpg"]


def test_the_command_tells_what_it_removed(filled: Album, cairn: Callable[..., Ran]) -> None:
    assert cairn("remove", filled.place, "top.jpg", "--json").json == {
        "collection": str(filled.place),
        "removed": ["top.jpg"],
        "for_good": False,
        "images": 4,
    }
    ran = cairn("remove", filled.place, "--folder", "a")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "removed: a/b/three.jpg",
        "removed: a/one.jpg",
        "removed: a/two.jpg",
        f"{filled.place}: 3 removed, 1 photos left.",
    ]
    assert "There is no photo 'top.jpg'" in cairn("remove", filled.place, "top.jpg", "ab/four.jpg").refused()
    refused = cairn("remove", filled.place, "top.jpg", "none.jpg", "nor.jpg").refused()
    assert f"in {filled.place}, and 2 others that were named are not there either: nothing was removed." in refused
    assert "Say which photos" in cairn("remove", filled.place).refused()
    assert "no collection" in cairn("remove", filled.folder / "none", "x").refused()
    assert cairn("remove", filled.place, "--missing", "--json").json["removed"] == []
    assert cairn("info", filled.place, "--json").json["images"] == 1
