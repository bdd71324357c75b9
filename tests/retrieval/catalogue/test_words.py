"""Photos by their words, over SQLite and over PostgreSQL: found alike by the table of words and without it."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from index.errors import CairnError
from retrieval.catalogue import words as module
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import PhotoMove, make_tombstones, move_photos, rename_photos, unbury
from retrieval.catalogue.curation.albums import album_row, delete_album, insert_album, put_in, take_out
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.metadata_store import copy_imported, import_values, store_metadata, tidy_metadata
from retrieval.catalogue.schema import FILE, ImageRow
from retrieval.catalogue.words import has_words, make_words, write_words
from retrieval.metadata.fields import Metadata
from tests.retrieval.catalogue.test_catalogue import add

Found = Callable[..., list[int]]


@pytest.fixture(params=["sqlite", "postgresql"])
def catalogue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalogue]:
    address = request.getfixturevalue("postgresql")() if request.param == "postgresql" else str(tmp_path / "c")
    with Catalogue.open(address, create=True) as opened:
        yield opened


def forget_words(catalogue: Catalogue) -> None:
    """Make it as an earlier version left it: without the table of words."""
    with catalogue.writing() as session:
        session.execute(sa.text("DROP TABLE IF EXISTS photo_words"))


def without_words(session: Any) -> bool:
    return False


@pytest.fixture
def found(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> Found:
    """Asks for words: by the table, and by reading; both say the same."""

    def ask(words: str, **others: Any) -> list[int]:
        wanted = PhotoFilter(words=words, **others)
        assert catalogue.read(has_words)
        by_table = list(catalogue.read(numbers_of, wanted))
        with monkeypatch.context() as patch:
            patch.setattr(module, "has_words", without_words)
            assert list(catalogue.read(numbers_of, wanted)) == by_table
        total, rows = catalogue.page(0, 100, wanted)
        assert total == len(by_table) and sorted(row.number for row in rows) == by_table
        return by_table

    return ask


def photos(catalogue: Catalogue, *names: str) -> list[int]:
    return [row.number for row in add(catalogue, "000001", [f"/photos/{name}" for name in names])]


def test_words_of_every_kind_are_found(catalogue: Catalogue, found: Found) -> None:
    one, two, three = photos(catalogue, "IMG_0042.jpg", "müller.png", "c.tif")
    catalogue.write(
        store_metadata,
        [
            (one, Metadata(title="Die Alte Mühle", tags=("Wasser rad", "Bayern"), taken="1923-05-17", rating=4)),
            (two, Metadata(caption="A café by the mill", camera="Leica M3", taken="1923")),
            (three, Metadata(latitude=48.1, longitude=11.5, favourite=True)),
        ],
    )
    catalogue.write(import_values, {three: {"archive": ["Stadtarchiv Łódź", "Box 7"], "taken": ["2001-05"]}})
    assert found("0042") == found("img jpg") == found("mühl") == found("MUHLE alte") == found("mu\u0308hle") == [one]
    assert found("wasser") == found("rad") == found("bay") == [one]
    assert found("cafe") == found("CAFÉ mill") == found("leic") == found("Muller") == [two]
    assert found("stadta") == found("lodz") == found("łódź 7") == [three]
    assert found("1923") == [one, two]
    assert found("may 1923") == found("Mai 1923") == found("maggio 1923") == found("17.5.1923") == [one]
    assert found("mai") == found("05") == [one, three]
    assert found("mill water") == found("ühle") == found("rating") == found("yes") == found("48") == []
    assert found("  \t ") == [one, two, three]  # asks for nothing
    assert found("!?") == []
    assert found("m", name="png") == found("m", favourite=False, camera="leica") == [two]


def test_so_many_words_are_asked_for_at_most() -> None:
    assert PhotoFilter(words=" ".join("abcd" * 16)).words
    with pytest.raises(CairnError, match="64 words at most"):
        PhotoFilter(words=" ".join("abcde" * 13))


def test_words_follow_what_is_edited(catalogue: Catalogue, found: Found) -> None:
    one, two = photos(catalogue, "one.jpg", "two.jpg")
    catalogue.write(store_metadata, [(one, Metadata(title="First draft", tags=("old",)))])
    catalogue.write(import_values, {one: {"title": ["Second"], "tag": ["new"]}})
    assert found("first") == [] and found("second") == found("old") == found("new") == [one]
    catalogue.write(import_values, {one: {"title": [], "tag": []}})
    assert found("first") == [one] and found("second") == found("new") == []
    catalogue.write(copy_imported, one, two)
    catalogue.write(import_values, {one: {"note": ["Attic"]}}, replace=True)
    catalogue.write(copy_imported, one, two)
    assert found("attic") == [one, two]
    catalogue.write(import_values, {}, replace=True)
    assert found("attic") == []
    catalogue.write(store_metadata, [(one, Metadata())])
    assert found("first") == []


def test_words_follow_names_and_what_is_removed(catalogue: Catalogue, found: Found) -> None:
    one, two = photos(catalogue, "one.jpg", "two.jpg")
    catalogue.write(rename_photos, {one: "harbour/one.jpg"})
    assert found("harb") == [one]
    catalogue.write(move_photos, [PhotoMove(one, "/photos/three.jpg", "three.jpg", 1, 1)])
    assert found("harb") == [] and found("three") == [one]
    catalogue.write(make_tombstones, [one])
    assert found("three") == []
    with catalogue.reading() as session:  # nothing of what was removed is kept
        table, key = module._table(session)
        assert list(session.scalars(sa.select(key).select_from(table))) == [two]
    catalogue.write(unbury, {one: "back.jpg"})
    assert found("back") == [one] and found("jpg") == [one, two]


def test_albums_count_by_their_present_names(catalogue: Catalogue, found: Found) -> None:
    one, two = photos(catalogue, "one.jpg", "two.jpg")
    catalogue.write(store_metadata, [(one, Metadata(title="Wedding"))])
    with catalogue.writing() as session:
        album = insert_album(session, "Städte 1999")
        put_in(session, album, [one, two])
    assert found("stadt") == [one, two] and found("wed städte") == found("1999 one") == [one]
    with catalogue.writing() as session:
        row = album_row(session, album)
        assert row is not None
        row.name = "Wedding of Ann"
        take_out(session, album, [one])
    assert found("stadt") == [] and found("wedding") == [one, two] and found("wedding ann") == [two]
    catalogue.write(delete_album, album)
    assert found("ann") == []


def test_a_catalogue_without_words_gets_them_with_the_first_photo_that_is_written(
    catalogue: Catalogue, found: Found
) -> None:
    one, two = photos(catalogue, "one.jpg", "two.jpg")
    catalogue.write(store_metadata, [(one, Metadata(title="Old words"))])
    forget_words(catalogue)
    assert list(catalogue.read(numbers_of, PhotoFilter(words="old wor"))) == [one]  # by reading
    assert not catalogue.read(has_words)
    catalogue.write(import_values, {two: {"title": ["New words"]}})
    assert found("words") == [one, two]


def test_a_table_of_words_that_is_wrong_is_made_anew(catalogue: Catalogue, found: Found) -> None:
    one, two = photos(catalogue, "one.jpg", "two.jpg")
    assert catalogue.read(module.words_are_right)
    with catalogue.writing() as session:
        session.execute(sa.delete(module._table(session)[0]))
    assert not catalogue.read(module.words_are_right)
    assert list(catalogue.read(numbers_of, PhotoFilter(words="jpg"))) == []
    catalogue.write(tidy_metadata)
    assert found("jpg") == [one, two]
    catalogue.write(make_words)
    assert found("jpg") == [one, two] and catalogue.read(module.words_are_right)
    with catalogue.writing() as session:
        module._insert(session, [(99, ["three", "jpg"])])
    assert not catalogue.read(module.words_are_right)
    catalogue.write(write_words, [two, two, 99])
    assert catalogue.read(module.words_are_right)
    assert found("jpg") == [one, two]


def test_what_cannot_be_made_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An SQLite that is built without FTS5."""
    monkeypatch.setattr(module, "_has_full_text", without_words)
    with Catalogue.open(tmp_path, create=True) as catalogue:
        one, _ = photos(catalogue, "one.jpg", "two.jpg")
        assert not catalogue.read(has_words)
        assert list(catalogue.read(numbers_of, PhotoFilter(words="on"))) == [one]


def test_a_catalogue_that_may_only_be_read_is_asked_without_words(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path, create=True) as catalogue:
        one, _ = photos(catalogue, "one.jpg", "two.jpg")
        forget_words(catalogue)
    before = (tmp_path / FILE).read_bytes()
    with Catalogue.open(f"sqlite:///file:{tmp_path / FILE}?mode=ro&uri=true") as catalogue:
        assert list(catalogue.read(numbers_of, PhotoFilter(words="on"))) == [one]
    assert (tmp_path / FILE).read_bytes() == before


def test_damaged_words_are_said(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path, create=True) as catalogue:
        photos(catalogue, "one.jpg", "two.jpg")
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute("UPDATE photo_words_data SET block = x'ffffffffffffffffffff'")
        connection.commit()
    with Catalogue.open(tmp_path) as catalogue, pytest.raises(CairnError, match="cannot be used"):
        catalogue.read(numbers_of, PhotoFilter(words="on"))


TEXTS = st.lists(st.sampled_from(["a", "ab", "Äb", "B", "may", "é", "e\u0301", "7", "東", "x_y", "*", '"']), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(titles=st.lists(TEXTS.map(" ".join), min_size=3, max_size=3), asked=TEXTS.map(" ".join))
def test_what_is_found_is_what_reading_finds(catalogue: Catalogue, found: Found, titles: list[str], asked: str) -> None:
    with catalogue.reading() as session:
        numbers = list(session.scalars(sa.select(ImageRow.number))) or None
    numbers = numbers or photos(catalogue, "1.jpg", "2.jpg", "3.jpg")
    catalogue.write(import_values, {one: {"title": [title]} for one, title in zip(numbers, titles, strict=True)})
    found(asked)
