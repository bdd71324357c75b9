"""Motifs: what a saved search finds among all photos, by book and page, and the categories that it is put into."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import cairn as library
from index.errors import CairnError
from retrieval.catalogue.curation.saved import Find, keep_finds
from retrieval.catalogue.metadata_store import import_values
from retrieval.library import shared_books
from retrieval.library.motifs import book_pages
from retrieval.library.photos import Photo
from tests.conftest import Ran


def photo(number: int, name: str, page: int | None = None, **known: Any) -> Photo:
    return Photo(number, name, f"/{name}", 10, 10, 5, page=page, **known)


def test_books_are_told_by_manifest_item_file_and_folder() -> None:
    pages = [
        photo(1, "iiif/x/1.jpg", others={"IIIF manifest": ("https://x/1",), "item": ("Fools",), "Page": ("f. 1r",)}),
        photo(2, "iiif/x/2.jpg", others={"IIIF manifest": ("https://x/2",), "Item": ("Fools",)}, taken="1494"),
        photo(3, "a/book.tif", others={"Druckort": ("Basel", "Lyon")}),
        photo(4, "a/book.tif#7", 7),
        photo(5, "a/p1.tif", latitude=47.5, longitude=7.6),
        photo(6, "a/p2.tif"),
        photo(7, "loose.jpg"),
    ]
    # Page 2 of book.tif is in the collection, and shows nothing that was asked for.
    catalogue = Mock(read=lambda question, names: {name: 9 for name in names if name == "a/book.tif#2"})
    found = book_pages(catalogue, pages)
    facts = {number: (one.key, one.book, one.page) for number, one in found.items()}
    assert facts == {
        1: ("https://x/1", "Fools", "f. 1r"),
        2: ("https://x/2", "Fools", "2"),
        3: ("a/book.tif", "book", "1"),
        4: ("a/book.tif", "book", "7"),
        5: ("a", "a", "p1"),
        6: ("a", "a", "p2"),
        7: ("loose.jpg", "loose", "loose"),
    }
    assert (found[2].date, found[3].place, found[5].place) == ("1494", "Basel, Lyon", "47.5000, 7.6000")


def test_a_search_is_asked_of_all_photos_and_its_finds_are_categorised(
    linked: Path, tmp_path: Path, cairn: Callable[..., Ran]
) -> None:
    folder = Path(shutil.copytree(linked, tmp_path / "copy.cairn"))
    with library.open(folder) as collection:
        motif = collection.save_search("Face", "astronaut_0.png", (150, 30, 330, 260), standing=True, tag="x", turns=1)
        assert collection.occurrences("Face") == []
        (reported,) = collection.ask_searches("Face")
        everything = collection.search("astronaut_0.png", (150, 30, 330, 260), top=100, turns=1)
        expected = {one.name: one for one in everything if one.probability >= 0.8}
        assert set(reported.found) == set(expected) >= {"astronaut_0.png", "astronaut_1.png", "astronaut_2.png"}
        found = {one.name: one for one in collection.occurrences(motif.id)}
        assert found.keys() == expected.keys()
        assert found["astronaut_1.png"].region == [list(point) for point in expected["astronaut_1.png"].region]
        # Somebody sees them: they are not new, and get no tag; the standing search goes on as it was.
        assert [(one.found, one.new) for one in collection.saved_searches()] == [(len(expected), 0)]
        assert collection.photo("astronaut_1.png").tags == () and collection.ask_searches()[0].asked == 0

        collection.occurrences("Face", out=tmp_path / "face.xml")
        assert (tmp_path / "face.xml").read_text().count('<bibl facs="#z') == len(expected)

        collection.categorise("Face", ["astronaut_1.png", "coffee_0.png"], " same\nblock ")
        collection.reject("astronaut_0.png", ["astronaut_1.png", "astronaut_2.png"])
        collection.ask_searches("Face")  # what has a category stays
        kept = {one.name: (one.category, one.probability is None) for one in collection.occurrences("Face")}
        assert kept.pop("coffee_0.png") == ("same block", True)
        assert kept.pop("astronaut_1.png") == ("same block", False)
        assert kept.keys() == expected.keys() - {"astronaut_1.png", "astronaut_2.png"}
        with pytest.raises(library.PhotoNotFound):
            collection.categorise("Face", ["coffee_0.png", "none.png"], "copy")
        with pytest.raises(CairnError, match="No saved searches are called 'Hand'"):
            collection.occurrences("Hand")

    ran = cairn("searches", "categorise", folder, motif.id, "", "coffee_0.png", "--json")
    assert ran.json["photos"] == ["coffee_0.png"]
    ran = cairn("searches", "found", folder, motif.id, "--json")
    assert {one["name"]: one["category"] for one in ran.json["occurrences"]}["coffee_0.png"] is None
    table = tmp_path / "face.csv"
    ran = cairn("searches", "found", folder, "Face", "--category", "same block", "--out", table)
    assert "astronaut_1 | same block" in ran.out and "Face: 1 photos." in ran.out
    with table.open(encoding="utf-8-sig", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["photo"], row["category"], row["date"]) == ("astronaut_1.png", "same block", "")
    x, y, width, height = (int(value) for value in row["region"].split(","))
    assert x >= 0 and y >= 0 and width > 50 and height > 50
    assert cairn("searches", "found", folder, "Hand").code == 2


def test_books_share_what_groups_link_and_what_searches_have_found(
    linked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cairn: Callable[..., Ran]
) -> None:
    folder = Path(shutil.copytree(linked, tmp_path / "copy.cairn"))
    with library.open(folder) as collection:
        catalogue = collection.opened.catalogue
        face, same_face, third, cup, same_cup = (
            collection.photo(f"{name}.png").number
            for name in ("astronaut_0", "astronaut_1", "astronaut_2", "coffee_0", "coffee_1")
        )
        books = {face: "Late", cup: "Late", same_face: "Early", same_cup: "Early", third: "Third"}
        dates = {"Late": "1500", "Early": "1480", "Third": "1490"}
        known = {number: {"item": [book], "taken": [dates[book]]} for number, book in books.items()}
        catalogue.write(import_values, known, labels={"item": "Item"})
        square = [[10.0, 20.0], [50.0, 20.0], [50.0, 60.0], [10.0, 60.0]]
        finds = [Find(face, 1.0, None), Find(same_face, 0.99, square), Find(third, 0.85, None)]
        one, other = (collection.save_search(name, "astronaut_0.png").id for name in ("Face", "Hand"))
        catalogue.write(keep_finds, one, finds, None)
        monkeypatch.setattr(shared_books, "_linked", lambda _: ([(face, same_face), (cup, same_cup)], True))

        def pictures(**how: Any) -> dict[tuple[str, str], int]:
            return {(pair.first, pair.second): pair.pictures for pair in collection.shared_books(**how).pairs}

        # The face is found by a group and a search, and counts once.
        assert pictures() == {("Early", "Late"): 2}
        (pair,) = collection.shared_books().pairs
        facts = {page.numbers: (page.searches, page.box) for page in pair.pages}
        assert facts == {(same_face, face): (("Face",), (10, 20, 50, 60)), (same_cup, cup): ((), None)}
        collection.categorise("Face", third, "copy")  # likely, and now said to be one
        assert pictures() == {("Early", "Late"): 2, ("Early", "Third"): 1, ("Third", "Late"): 1}
        assert pictures(category="copy") == {("Third", "Late"): 1}
        table = tmp_path / "matrix.csv"
        collection.shared_books(out=table)
        with table.open(encoding="utf-8-sig", newline="") as file:
            assert list(csv.reader(file)) == [
                ["", "Early", "Third", "Late"],
                ["Early", "", "1", "2"],
                ["Third", "1", "", "1"],
                ["Late", "2", "1", ""],
            ]
        collection.categorise("Face", third, "not related")
        catalogue.write(keep_finds, other, finds[:2], None)  # a second motif on the same two pages
        assert pictures() == {("Early", "Late"): 3}
        collection.reject(cup, same_cup)
        assert pictures() == {("Early", "Late"): 2}
        monkeypatch.undo()
    pages = tmp_path / "pages.csv"
    ran = cairn("books", folder, "--pages", pages)
    assert "Early | Late" in ran.out and "Groups have not been searched for" in ran.out
    with pages.open(encoding="utf-8-sig", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["photo"], row["other_photo"], row["searches"]) == ("astronaut_1.png", "astronaut_0.png", "Face; Hand")
