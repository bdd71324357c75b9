"""What an SQLite file may hold: Cairn's own tables and indexes, of any version, and values of their columns' kinds."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from index.errors import CairnError, LaterVersion
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.database import Database, ForeignObject, connect_for_reading
from retrieval.catalogue.migrations import upgrade
from retrieval.catalogue.photos import all_indexed
from retrieval.catalogue.schema import FILE, ImageRow, SegmentRow
from retrieval.catalogue.segment_rows import commit_segment, segments_in
from retrieval.catalogue.settings import reserve_numbers
from retrieval.catalogue.sqlite.full_text import ENTRIES
from retrieval.catalogue.sqlite.objects import foreign_object, is_own


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A catalogue with a photo in it."""
    with Catalogue.open(tmp_path, create=True) as catalogue:
        number = catalogue.write(reserve_numbers, 1)
        values = {"images": 1, "features": 1, "bytes": 1, "vocabulary_fingerprint": "v", "descriptor_fingerprint": "d"}
        row = ImageRow(number=number, path="/photos/a.jpg", sha256="0" * 64, width=3, height=4, position=0)
        catalogue.write(commit_segment, SegmentRow(folder="000001", **values), [row])
    return tmp_path


def test_catalogues_that_are_made_and_migrated_are_own(folder: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        assert foreign_object(connection, "it") is None
    with closing(sqlite3.connect(tmp_path / "migrated")) as connection:
        engine = sa.create_engine("sqlite://", creator=lambda: connection, poolclass=sa.pool.StaticPool)
        with engine.begin() as made:
            upgrade(made, None)
        assert foreign_object(connection, "it") is None
        entries = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
        assert len(entries) > 20 and all(map(is_own, entries))


def test_the_table_of_words_is_own_letter_by_letter(folder: Path) -> None:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        query = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name GLOB 'photo_words*' ORDER BY name"
        entries = connection.execute(query).fetchall()
    assert set(entries) == ENTRIES and all(map(is_own, entries))
    for kind, name, table, sql in entries:
        for other in (sql + " ", sql.replace("photo_words", "images"), sql.lower().replace("create", "CREATE"), None):
            assert other == sql or not is_own((kind, name, table, other)), (name, other)
        assert not is_own((kind, name, "images", sql)) and not is_own(("view", name, table, sql))
    made = "CREATE VIRTUAL TABLE photo_words USING fts5(text, content='images', content_rowid='number')"
    assert not is_own(("table", "photo_words", "photo_words", made))
    assert not is_own(
        (
            "table",
            "photo_words_docsize",
            "photo_words_docsize",
            "CREATE TABLE 'photo_words_docsize'(id INTEGER PRIMARY KEY)",
        )
    )
    trigger = "CREATE TRIGGER photo_words AFTER INSERT ON photo_words_content BEGIN SELECT 1; END"
    assert not is_own(("trigger", "photo_words", "photo_words_content", trigger))


def test_the_file_of_another_program_is_none_of_our_business(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other")) as connection:
        connection.executescript("CREATE TABLE one (two); CREATE VIEW three AS SELECT 1;")
        assert foreign_object(connection, "it") is None


@pytest.mark.parametrize(
    "entry",
    [
        ("table", "images", "images", "CREATE TABLE images (number BIGINT DEFAULT (randomblob(9)))"),
        ("table", "images", "images", "CREATE VIRTUAL TABLE images USING fts5(number)"),
        ("table", "images", "images", "CREATE TABLE images (number BIGINT /* settings */)"),
        ("table", "images", "images", "CREATE TABLE images (number BIGINT, CHECK (state IN ('other')))"),
        ("view", "images", "images", "CREATE VIEW images AS SELECT 1"),
        ("index", "odd", "images", "CREATE INDEX odd ON images (number)"),
        ("index", "odd", "images", None),
        ("trigger", "images", "images", "CREATE TRIGGER images AFTER INSERT ON images BEGIN SELECT 1; END"),
        ("table", "images", "images", b"CREATE TABLE images (number BIGINT)"),
        ("table", "odd", "odd", "CREATE TABLE odd (number BIGINT)"),
    ],
)
def test_anything_else_is_foreign(entry: tuple[object, object, object, object]) -> None:
    assert not is_own(entry)


def test_no_connection_is_given_to_a_foreign_catalogue(folder: Path) -> None:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute("CREATE TRIGGER odd AFTER UPDATE ON settings BEGIN DELETE FROM images; END")
        connection.commit()
    said = "It holds the trigger 'odd', which Cairn has not made"
    for look in (
        lambda: connect_for_reading(folder / FILE),
        lambda: Database(f"sqlite:///{folder / FILE}").value_of("SELECT 1"),
        lambda: Catalogue.open(folder),
        lambda: Catalogue.open(folder, create=True),
    ):
        with pytest.raises(ForeignObject, match=said):
            look()
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute("UPDATE settings SET value = '99' WHERE key = 'cairn.format'")
        connection.execute("DROP TRIGGER odd")
        connection.execute("CREATE TABLE later (one)")
        connection.commit()
    with pytest.raises(LaterVersion, match="format 99"):
        connect_for_reading(folder / FILE)


@pytest.mark.parametrize(
    "change",
    [
        *(f"UPDATE segments SET folder = {value}" for value in ("'../other'", "'/tmp'", "''", "x'00'")),
        *(f"UPDATE segments SET features = {value}" for value in ("'many'", "x'00'", "1.5")),
        *(f"UPDATE images SET width = {value}" for value in ("'wide'", "2.5", "x'00'")),
        *(f"UPDATE images SET path = {value}" for value in ("x'00'", "'a' || char(0)")),
        "UPDATE images SET quantisation_error = 'small'",
    ],
)
def test_values_are_of_the_kind_of_their_columns(folder: Path, change: str) -> None:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute(change)
        connection.commit()
    with (
        Catalogue.open(folder) as catalogue,
        pytest.raises(CairnError, match=r"^The catalogue holds .* cairn repair\."),
    ):
        print(catalogue.read(segments_in), catalogue.read(all_indexed))
