"""What people decide about photos, in Python and on the command line: as on the pages, and nothing by halves."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

import cairn as library
from retrieval.catalogue.filters import PhotoFilter, fields_of
from retrieval.catalogue.words import has_words, lacks_words
from retrieval.collection.sealing import seal
from retrieval.library.filters import filter_of
from tests.conftest import Indexed, Ran

ONE, TWO, THREE = "coffee_001.jpg", "coffee_002.jpg", "cat_001.jpg"


@pytest.fixture
def copied(indexed: Indexed, tmp_path: Path) -> Path:
    return Path(shutil.copytree(indexed.folder, tmp_path / "copy.cairn"))


@pytest.fixture
def collection(copied: Path) -> Iterator[library.Collection]:
    with library.open(copied) as opened:
        yield opened


def names(collection: library.Collection, **where: object) -> list[str]:
    return [photo.name for photo in collection.photos(where)]


def test_titles_tags_and_stars_are_edited_found_and_taken_back(collection: library.Collection) -> None:
    done = collection.edit([ONE, TWO], title="Café", add_tags="morning", rating=4, favourite=True, taken="1923-05")
    assert (done.changed, done.kept) == (2, 0)
    photo = collection.photo(ONE)
    assert (photo.title, photo.tags, photo.rating, photo.favourite) == ("Café", ("morning",), 4, True)
    assert photo.taken == "1923-05"
    assert names(collection, words="cafe mor may 1923") == names(collection, rating=4) == [ONE, TWO]
    other = collection.edit(collection.photo(TWO), rating=0, remove_tags=["MORNING"], favourite=False)
    assert names(collection, words="morning") == names(collection, favourite=True) == [ONE]
    assert collection.undo(other) == 1 and names(collection, words="morning", rating=4) == [ONE, TWO]
    assert collection.undo(done) == 2
    assert collection.photo(ONE) == collection.photo(ONE) and not collection.photo(ONE).tags
    for wrong in ({"rating": 6}, {"rating": -1}, {"taken": "yesterday"}):
        with pytest.raises(library.CairnError):
            collection.edit(ONE, **wrong)  # type: ignore[arg-type]
    with pytest.raises(library.PhotoNotFound):
        collection.edit([ONE, "nowhere.jpg"], title="Half")
    assert collection.photo(ONE).title is None
    assert collection.check().ok


def test_albums(collection: library.Collection) -> None:
    album = collection.add_to_album("Sömmer", [TWO, ONE])
    assert (album.name, album.photos) == ("Sömmer", 2)
    assert collection.add_to_album("sömmer", THREE).photos == 3
    assert names(collection, album=album.id) == names(collection, words="somm") == [THREE, ONE, TWO]
    assert collection.remove_from_album("Sömmer", [ONE, ONE]).photos == 2
    assert collection.rename_album("Sömmer", "Winter").name == "Winter"
    assert [one.to_dict()["name"] for one in collection.albums()] == ["Winter"]
    assert names(collection, words="somm") == [] and names(collection, words="wint") == [THREE, TWO]
    made = collection.share_album("winter", expires="2031-02-03")
    assert str(made.path).startswith("/shared/cairn_") and (made.album, made.expires) == ("Winter", "2031-02-03")
    assert [(one.id, one.path, one.over) for one in collection.shared_albums()] == [(made.id, None, False)]
    assert collection.end_shared_album(made.id).album == "Winter" and collection.shared_albums() == []
    for act in (
        lambda: collection.share_album("Sömmer"),
        lambda: collection.share_album("Winter", days=1, expires="2031-02-03"),
        lambda: collection.end_shared_album(made.id),
        lambda: collection.delete_album("Sömmer"),
        lambda: collection.rename_album("Winter", " "),
        lambda: collection.remove_from_album("None", ONE),
    ):
        with pytest.raises(library.CairnError):
            act()
    assert collection.delete_album("winter").photos == 2 and collection.albums() == []


def test_hidden_photos_and_photos_that_are_no_match(collection: library.Collection, indexed: Indexed) -> None:
    assert collection.hide([TWO, TWO]) == [TWO] and collection.hide(TWO) == []
    assert names(collection, hidden=True) == [TWO] and TWO not in [one.name for one in collection.search(ONE)]
    assert collection.show([ONE, TWO]) == [TWO] and names(collection, hidden=True) == []
    other = "coffee_003.jpg"
    assert other in [one.name for one in collection.search(ONE).found]
    assert collection.reject(ONE, [other, ONE]) == [other] == collection.rejected(ONE)
    assert other not in [one.name for one in collection.search(ONE)]
    assert collection.rejected(other) == [ONE]
    assert collection.accept(ONE, [other, TWO]) == [other] and collection.rejected(ONE) == []
    # A photo from elsewhere is known by its content.
    elsewhere = collection.folder.parent / "elsewhere.jpg"
    elsewhere.write_bytes((indexed.photos / ONE).read_bytes() + b"\0")
    assert collection.reject(elsewhere, other) == [other]
    assert other not in [one.name for one in collection.search(elsewhere.read_bytes())]
    assert collection.accept(elsewhere.read_bytes(), other) == [other]


def test_searches_are_kept_and_asked_of_new_photos(
    collection: library.Collection, indexed: Indexed, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere.jpg"
    elsewhere.write_bytes((indexed.photos / ONE).read_bytes() + b"\0")
    where = {"words": "new", "tags": ["a"], "near": (48.5, 2.25, 3), "where": {"archive": "Berlin"}, "album": 0}
    kept = collection.save_search("Filtered", [ONE, elsewhere], where=where, turns=1, match_all=True)
    assert kept.query["queries"] == [{"photo": collection.photo(ONE).number}, {"name": "elsewhere.jpg"}]
    assert kept.query["options"]["words"] == "new" and kept.query["options"]["match"] == "all"
    cups = collection.save_search("Cups", elsewhere, standing=True, tag="cup")
    assert [one.name for one in collection.saved_searches()] == ["Cups", "Filtered"]
    assert collection.ask_searches() == [library.AskedSearch(cups.id, "Cups", 0, [], None)]
    new = tmp_path / "more"
    new.mkdir()
    (new / "new.jpg").write_bytes((indexed.photos / TWO).read_bytes() + b"\0")
    collection.add(new)
    (requested,) = collection.ask_searches()
    assert (requested.asked, requested.found, requested.problem) == (1, ["new.jpg"], None)
    assert collection.photo("new.jpg").tags == ("cup",)
    changed = collection.change_search("Cups", name="Mugs", standing=False, tag="")
    assert (changed.id, changed.name, changed.standing, changed.favourite, changed.tag) == (
        cups.id,
        "Mugs",
        False,
        False,
        None,
    )
    assert collection.change_search("Mugs", name="Cups", favourite=True).favourite
    assert collection.delete_search("Cups").found == 1 and collection.delete_search(kept.id).name == "Filtered"
    with pytest.raises(library.CairnError, match="No saved searches"):
        collection.delete_search("Cups")
    with pytest.raises(library.CairnError, match="can have only one photo"):
        collection.save_search("Two", [elsewhere, elsewhere.read_bytes()])


@pytest.mark.parametrize(
    "wanted",
    [
        PhotoFilter(),
        PhotoFilter(words="a b", name="x", folder="y", taken_from="1923", tags=("a", "b"), without_tags=("c",)),
        PhotoFilter(near=(1.5, -2.25, 3), where={"archiv": "Köln=1"}, album=7, hidden=True, rating=3, favourite=True),  # type: ignore[arg-type]
        PhotoFilter(within=(1, 2, 3, 4), album=0),  # type: ignore[arg-type]
    ],
)
def test_a_filter_is_kept_as_addresses_have_it(wanted: PhotoFilter) -> None:
    assert filter_of(fields_of(wanted)) == wanted


def test_commands_decide_the_same(cairn: Callable[..., Ran], copied: Path) -> None:
    edit = ("edit", copied, ONE, TWO, "--title", "Mill", "--tag", "a", "--tag", "b", "--rating", 5, "--favourite")
    assert cairn(*edit, "--json").json == {"collection": str(copied), "changed": 2, "kept": 0}
    found = cairn("query", copied, ONE, "--words", "mil a", "--json").json
    assert {one["name"] for one in found["results"]} == {ONE, TWO} and found["filter"] == {"words": "mil a"}
    assert "1 photos changed" in cairn("edit", copied, TWO, "--remove-tag", "A", "--no-favourite").out
    assert "Say what to change" in cairn("edit", copied, ONE).refused()
    assert "nowhere" in cairn("edit", copied, "nowhere.jpg", "--title", "x").refused()

    assert cairn("album", "add", copied, "Trip", ONE, "--json").json["album"]["photos"] == 1
    assert "Trip: 2 photos." in cairn("album", "add", copied, "trip", TWO).out
    assert cairn("album", "list", copied, "trip", "--json").json["photos"] == [ONE, TWO]
    assert "Trip: 2 photos." in cairn("album", "arrange", copied, "Trip", TWO, "--before", ONE, "--cover", TWO).out
    assert cairn("album", "list", copied, "Trip").out.split()[-2:] == [TWO, ONE]
    assert cairn("album", "arrange", copied, "Trip", "--order", "name").code == 0
    assert cairn("album", "list", copied, "Trip").out.split()[-2:] == [ONE, TWO]
    for wrong in ((), ("--order", "size"), ("--cover", "nowhere.jpg"), ("--order", "name", "--before", ONE)):
        assert cairn("album", "arrange", copied, "Trip", *wrong).refused()
    assert cairn("album", "remove", copied, "Trip", ONE, "--json").json["album"]["photos"] == 1
    assert "not in the album" in cairn("album", "arrange", copied, "Trip", ONE).refused()
    assert cairn("album", "rename", copied, "Trip", "Tour", "--json").json["album"]["name"] == "Tour"
    assert "1 photos  Tour" in cairn("album", "list", copied).out
    assert cairn("album", "delete", copied, "Tour", "--json").json["album"]["name"] == "Tour"
    assert cairn("album", "list", copied, "--json").json["albums"] == []
    assert "no album" in cairn("album", "delete", copied, "Tour").refused()

    assert (
        cairn("hide", copied, TWO, "--json").json["photos"] == [TWO] == cairn("hide", copied, "--json").json["photos"]
    )
    assert "shown again" in cairn("hide", copied, TWO, "--show").out
    assert "--show" in cairn("hide", copied, "--show").refused()

    assert cairn("reject", copied, ONE, TWO, "--json").json["photos"] == [TWO]
    assert f"  {TWO}" in cairn("reject", copied, ONE).out
    assert cairn("reject", copied, ONE, TWO, "--undo", "--json").json["photos"] == [TWO]
    assert "--undo" in cairn("reject", copied, ONE, "--undo").refused()

    saved = cairn(
        "searches", "save", copied, "Cups", ONE, "--standing", "--words", "mill", "--give-tag", "cup", "--json"
    )
    assert (saved.json["search"]["standing"], saved.json["search"]["tag"]) == (True, "cup")
    assert saved.json["search"]["query"]["options"]["words"] == "mill"
    assert "Cups, standing" in cairn("searches", "list", copied).out
    number = str(saved.json["search"]["id"])
    change = ("searches", "change", copied)
    changed = cairn(*change, "Cups", "--name", "Mugs", "--not-standing", "--first", "--json").json["search"]
    assert (changed["name"], changed["standing"], changed["favourite"], changed["tag"]) == ("Mugs", False, True, "cup")
    assert "is changed" in cairn(*change, number, "--name", "Cups", "--give-tag", "").out
    assert "Say what to change" in cairn(*change, number).refused()
    assert "is forgotten" in cairn("searches", "delete", copied, number).out
    assert "No saved searches are called" in cairn("searches", "delete", copied, "Cups").refused()


def test_indexing_gives_a_collection_of_an_earlier_version_its_words(collection: library.Collection) -> None:
    catalogue = collection.opened.catalogue
    with catalogue.writing() as session:
        session.execute(sa.text("DROP TABLE photo_words"))
    seal(collection.opened)
    assert names(collection, words="coffee") == names(collection, name="coffee")
    assert catalogue.read(lacks_words)
    collection.add([])
    assert catalogue.read(has_words) and names(collection, words="coff 001") == [ONE]
    before = catalogue.revision()
    collection.add([])
    assert catalogue.revision() == before and collection.check().ok


def test_words_of_photos_that_are_not_there_find_none(collection: library.Collection) -> None:
    """A catalogue may come from anybody."""
    with collection.opened.catalogue.writing() as session:
        session.execute(sa.text("INSERT INTO photo_words (rowid, text) VALUES (:number, 'coffee')"), {"number": 10**9})
    expected = {"coffee_001.jpg", "coffee_002.jpg", "coffee_003.jpg"}
    assert set(names(collection, words="coffee")) == expected
    assert {one.name for one in collection.search(ONE, where={"words": "coffee"})} == expected
