"""Catalogues of earlier formats, over SQLite and over PostgreSQL: they are migrated, or left as they are."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from index.errors import CairnError
from retrieval.catalogue.browsing import folders_of
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import Rewritten, make_tombstones, replace_segments
from retrieval.catalogue.database import Database
from retrieval.catalogue.exclusions import exclusions_in
from retrieval.catalogue.failures import Failure, forget_failures, keep_failures
from retrieval.catalogue.link_store import links_in
from retrieval.catalogue.metadata_store import import_values
from retrieval.catalogue.migrations import upgrade
from retrieval.catalogue.photos import all_indexed, counts_of_photos, first_and_last_added, rows_of
from retrieval.catalogue.schema import (
    DECIDED,
    FORMAT,
    AlbumPhotoRow,
    AlbumRow,
    Base,
    HiddenRow,
    ImageRow,
    MetadataRow,
    QueryRejectionRow,
    RejectionRow,
    SavedFindRow,
    SavedSearchRow,
    SegmentRow,
)
from retrieval.catalogue.segment_rows import commit_segment, segments_and_tombstones, segments_in, tombstones_in
from retrieval.catalogue.settings import keep_setting, reserve_numbers
from retrieval.catalogue.sqlite.full_text import WORDS
from tests.support.catalogues_of_format_1 import KNOWN_PATH, Rows, make_format_1, rows_in, rows_of_format_1
from tests.support.paths import ROOT

ROWS = rows_of_format_1()
FEW_ROWS = rows_of_format_1(40)

NewAddress = Callable[[], str]


@pytest.fixture(params=["sqlite", "postgresql"])
def new_address(request: pytest.FixtureRequest, tmp_path: Path) -> NewAddress:
    """Gives the address of another empty database at each call."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgresql")
    made: list[Path] = []

    def make() -> str:
        made.append(tmp_path / f"{len(made)} %41 é.cairn")  # an escape and a letter that Alembic's settings must keep
        made[-1].mkdir()
        return sa.URL.create("sqlite", database=str(made[-1] / "catalogue.sqlite")).render_as_string()

    return make


# A catalogue of format 1 goes through all steps on both.
most_on_sqlite = pytest.mark.parametrize(
    "new_address", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)


@pytest.fixture
def old(new_address: NewAddress) -> str:
    """The address of a small catalogue of format 1."""
    address = new_address()
    make_format_1(address, FEW_ROWS)
    return address


def tables_of(address: str) -> dict[str, Any]:
    """All that a database tells of its tables, the order of columns included."""
    engine = sa.create_engine(address)
    inspector = sa.inspect(engine)
    reported: dict[str, Any] = {
        name: {
            "columns": [{**column, "type": str(column["type"])} for column in inspector.get_columns(name)],
            "key": inspector.get_pk_constraint(name),
            "foreign keys": inspector.get_foreign_keys(name),
            # As text: SQLite's conditions of indexes are objects, each unlike every other.
            "indexes": sorted(
                str({**index, "dialect_options": {key: str(value) for key, value in index["dialect_options"].items()}})
                for index in inspector.get_indexes(name)
            ),
            "unique": inspector.get_unique_constraints(name),
            "checks": inspector.get_check_constraints(name),
        }
        for name in inspector.get_table_names()
    }
    engine.dispose()
    if address.startswith("sqlite") and "segments" in reported:
        # The number of a row, which is never null; the first format did not say so.
        reported["segments"]["columns"][0]["nullable"] = False
    return reported


def everything_in(address: str) -> dict[str, Any]:
    """All tables and all rows of a database."""
    engine = sa.create_engine(address)
    tables = sa.MetaData()
    tables.reflect(engine)
    with engine.connect() as connection:
        rows = {name: sorted(map(repr, connection.execute(sa.select(table)))) for name, table in tables.tables.items()}
    engine.dispose()
    return {"tables": tables_of(address), "rows": rows}


def is_of_words(difference: Any) -> bool:
    """Whether a table or index is that of words, which SQLAlchemy knows nothing of."""
    return str(difference[0]).startswith("remove_") and WORDS in str(getattr(difference[1], "name", ""))


def differences(address: str) -> list[Any]:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    engine = sa.create_engine(address)
    with engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection), Base.metadata)
    engine.dispose()
    found = [one for one in found if not is_of_words(one)]
    if address.startswith("sqlite"):
        found = [one for one in found if one[0][:4] != ("modify_nullable", None, "segments", "id")]  # see tables_of
    return found


def migrated(rows: Rows) -> Rows:
    """Rows of format 1 after the migration, as far as their columns go."""
    settings = {str(row["key"]): row["value"] for row in rows["settings"]}
    settings |= {"cairn.format": str(FORMAT), "cairn.revision": "1", "cairn.revision_copy": "1"}
    return {**rows, "settings": [{"key": key, "value": settings[key]} for key in sorted(settings)]}


def test_revisions_and_tables_agree(new_address: NewAddress) -> None:
    made, from_nothing, from_format_1 = new_address(), new_address(), new_address()
    Catalogue.open(made, create=True).close()
    database = Database(from_nothing)
    with database.transaction(write=True) as session:
        upgrade(session.connection(), None)
    database.close()
    make_format_1(from_format_1, FEW_ROWS)
    Catalogue.open(from_format_1).close()

    assert set(tables_of(made)) == {"alembic_version", *Base.metadata.tables}
    for address in (made, from_nothing, from_format_1):
        assert differences(address) == []
        assert tables_of(address) == tables_of(made)
        assert everything_in(address)["rows"]["alembic_version"] == [f"('{FORMAT:04d}',)"]
    with Catalogue.open(made) as one, Catalogue.open(from_nothing) as other:
        for key in ("cairn.format", "cairn.next_number"):
            assert one.setting(key) == other.setting(key)
        assert one.revision() == 1


def test_a_catalogue_of_format_1_keeps_everything(new_address: NewAddress) -> None:
    address = new_address()
    make_format_1(address, ROWS)
    with Catalogue.open(address) as catalogue:
        assert rows_in(address, ROWS) == migrated(ROWS)
        assert catalogue.revision() == 1
        assert catalogue.read(counts_of_photos) | {"features": 0} == {
            "indexed": 2000,
            "failed": 1000,
            "removed": 1000,
            "features": 0,
        }
        images = catalogue.read(all_indexed)
        columns = ("missing_since", "quantisation_error", "taken", "latitude", "longitude", "camera", "title")
        columns = (*columns, "date_added")
        assert {getattr(image, column) for image in images for column in columns} == {None}
        assert {segment.sha256 for segment in catalogue.read(segments_in)} == {None}
        assert [image for image in images if image.path == KNOWN_PATH] == [images[0]]

        # It is one to work with: numbers and ids go on, and what belongs together is held together.
        first = catalogue.write(reserve_numbers, 1)
        assert first == 9000
        new = SegmentRow(
            folder="000006", images=1, features=1, bytes=1, vocabulary_fingerprint="a", descriptor_fingerprint="b"
        )
        catalogue.write(
            commit_segment, new, [ImageRow(number=first, path=KNOWN_PATH, position=0, latitude=-12.345678901234)]
        )
        assert catalogue.read(segments_in)[-1].id == 6
        assert catalogue.read(rows_of, [first])[0].latitude == -12.345678901234
        assert 0 in catalogue.read(tombstones_in)
        assert catalogue.revision() == 3
        with pytest.raises(CairnError, match=r"(?i)foreign key"), catalogue.writing() as session:
            session.add(ImageRow(number=first + 1, path="/x", segment_id=99))


def make_format_8(address: str) -> None:
    """Take from a catalogue what format 9 added."""
    write(address, "ALTER TABLE saved_finds DROP COLUMN category")
    write(address, "UPDATE settings SET value = '8' WHERE key = 'cairn.format'")
    write(address, "UPDATE alembic_version SET version_num = '0008'")


def make_format_7(address: str) -> None:
    """Take from a catalogue what format 8 added."""
    for kind in reversed(DECIDED):
        write(address, f"DROP TABLE {kind.__tablename__}")
    write(address, "UPDATE settings SET value = '7' WHERE key = 'cairn.format'")
    write(address, "UPDATE alembic_version SET version_num = '0007'")


def make_format_6(address: str) -> None:
    """Take from a catalogue what format 7 added."""
    make_format_7(address)
    of_images = [f"images_{name}" for name in ("unnamed", "added", "taken", "place", "camera", "titled")]
    for index in (*of_images, "metadata_value", "metadata_imported"):
        write(address, f"DROP INDEX ix_{index}")
    write(address, "CREATE INDEX ix_images_taken ON images (taken)")
    write(address, "CREATE INDEX ix_metadata_key_value_hash ON metadata (key, value_hash)")
    if address.startswith("postgresql"):
        for name, length in (("name", 1024), ("folder", 1024), ("taken", 19)):
            write(address, f'ALTER TABLE images ALTER COLUMN {name} TYPE VARCHAR({length}) COLLATE "default"')
    write(address, "UPDATE settings SET value = '6' WHERE key = 'cairn.format'")
    write(address, "UPDATE alembic_version SET version_num = '0006'")


def make_format_5(address: str) -> None:
    """Take from a catalogue what format 6 added."""
    make_format_6(address)
    for index in ("counted", "missing", "folder"):
        write(address, f"DROP INDEX ix_images_{index}")
    write(address, "ALTER TABLE images DROP COLUMN folder")
    write(address, "UPDATE settings SET value = '5' WHERE key = 'cairn.format'")
    write(address, "UPDATE alembic_version SET version_num = '0005'")


def undated(rows: list[str]) -> list[str]:
    """Rows of images that failed, of which nobody knows when they were added."""
    return [f"{row.removesuffix(')')}, None, None)" for row in rows]


@most_on_sqlite
def test_a_catalogue_of_format_5_gets_the_folders_of_its_names(new_address: NewAddress) -> None:
    address = new_address()
    names = ["a.jpg", "b/c.jpg", "b/c/d.jpg", "b//e.jpg", "ü/日本/f g.jpg", "b/b/b.b"]
    with Catalogue.open(address, create=True) as catalogue:
        first = catalogue.write(reserve_numbers, len(names) + 1)
        rows = [
            ImageRow(number=first + i, path=f"/{i}", name=name, position=i)
            for i, name in enumerate([*names, "gone.jpg"])
        ]
        values: dict[str, Any] = {"images": len(rows), "features": 0, "bytes": 0}
        segment = SegmentRow(
            folder="000001", vocabulary_fingerprint="v" * 64, descriptor_fingerprint="d" * 64, **values
        )
        catalogue.write(commit_segment, segment, rows)
        catalogue.write(make_tombstones, [first + len(names)])
        catalogue.write(keep_failures, [Failure("/a.jpg", "It is empty.")])
        counted = catalogue.read(folders_of)
    assert counted == [("", 1), ("b", 1), ("b/", 1), ("b/b", 1), ("b/c", 1), ("ü/日本", 1)]
    before = everything_in(address)
    make_format_5(address)
    Catalogue.open(address).close()
    after = everything_in(address)
    assert after["rows"]["images"] == before["rows"]["images"]
    assert after["tables"] == before["tables"] and differences(address) == []


@most_on_sqlite
def test_a_catalogue_of_format_7_keeps_everything_and_takes_decisions(new_address: NewAddress) -> None:
    address = new_address()
    with Catalogue.open(address, create=True) as catalogue:
        first = catalogue.write(reserve_numbers, 3)
        rows = [ImageRow(number=first + i, path=f"/{i}.jpg", position=i, sha256=f"{i:064}") for i in range(3)]
        values: dict[str, Any] = {"images": len(rows), "features": 0, "bytes": 0}
        segment = SegmentRow(folder="1", vocabulary_fingerprint="v", descriptor_fingerprint="d", **values)
        catalogue.write(commit_segment, segment, rows)
        catalogue.write(import_values, {first: {"title": ["Bridge"]}})
    before = everything_in(address)
    make_format_7(address)
    assert everything_in(address)["tables"] != before["tables"]
    with Catalogue.open(address) as catalogue:
        after = everything_in(address)
        assert after["tables"] == before["tables"] and differences(address) == []
        known = {"images", "metadata", "segments", "alembic_version"}
        assert all(after["rows"][name] == before["rows"][name] for name in known)
        with catalogue.writing() as session:
            session.add(AlbumRow(name="Bridges", cover=first))
            session.flush()
            session.add_all(AlbumPhotoRow(album=1, number=first + i, position=i) for i in range(2))
            session.add(SavedSearchRow(name="red", query="{}", photo=b"\xff\x00", standing=True))
            session.flush()
            session.add(SavedFindRow(search=1, number=first, probability=0.5))
        with pytest.raises(CairnError, match=r"(?i)foreign key"), catalogue.writing() as session:
            session.add(HiddenRow(number=99, because="a copy"))
        with catalogue.reading() as session:
            (search,) = session.scalars(sa.select(SavedSearchRow))
            assert (search.photo, search.standing, search.favourite, search.asked_to) == (b"\xff\x00", True, False, 0)


@most_on_sqlite
def test_a_catalogue_of_format_8_keeps_what_searches_have_found(new_address: NewAddress) -> None:
    address = new_address()
    with Catalogue.open(address, create=True) as catalogue:
        number = catalogue.write(reserve_numbers, 1)
        values: dict[str, Any] = {"images": 1, "features": 0, "bytes": 0}
        segment = SegmentRow(folder="1", vocabulary_fingerprint="v", descriptor_fingerprint="d", **values)
        catalogue.write(commit_segment, segment, [ImageRow(number=number, path="/0.jpg", position=0)])
        with catalogue.writing() as session:
            session.add(SavedSearchRow(name="red", query="{}"))
            session.flush()
            session.add(SavedFindRow(search=1, number=number, probability=0.5, region="[]", seen=True))
    before = everything_in(address)
    make_format_8(address)
    Catalogue.open(address).close()
    after = everything_in(address)
    assert after["tables"] == before["tables"] and differences(address) == []
    assert after["rows"]["saved_finds"] == before["rows"]["saved_finds"]


def test_what_was_decided_about_a_photo_is_kept_when_its_file_changes(new_address: NewAddress) -> None:
    with Catalogue.open(new_address(), create=True) as catalogue:

        def segment_of(folder: str) -> SegmentRow:
            values: dict[str, Any] = {"images": 1, "features": 0, "bytes": 0}
            return SegmentRow(folder=folder, vocabulary_fingerprint="v", descriptor_fingerprint="d", **values)

        def add(folder: str, *paths: str) -> list[int]:
            first = catalogue.write(reserve_numbers, len(paths))
            rows = [ImageRow(number=first + i, path=path, position=i) for i, path in enumerate(paths)]
            catalogue.write(commit_segment, segment_of(folder), rows)
            return [row.number for row in rows]

        a, b, c = add("1", "/a.jpg", "/b.jpg", "/c.jpg")
        with catalogue.writing() as session:
            session.add(AlbumRow(name="x", cover=b))
            session.flush()
            session.add_all(AlbumPhotoRow(album=1, number=one, position=i) for i, one in enumerate((b, a)))
            session.add(HiddenRow(number=a, because="a copy"))
            session.add_all([RejectionRow(one=a, other=b), RejectionRow(one=b, other=c)])
            session.add(QueryRejectionRow(sha256="0" * 64, number=b))
        catalogue.write(make_tombstones, [b])
        new_a, new_b = add("2", "/a.jpg", "/b.jpg")  # one was changed, one removed and added again
        everything = {c, new_a, new_b}
        with catalogue.reading() as session:
            there = list(session.execute(sa.select(AlbumPhotoRow.number, AlbumPhotoRow.position)))
            assert {one: at for one, at in there if one in everything} == {new_b: 0, new_a: 1}
            assert session.scalars(sa.select(AlbumRow.cover)).all() == [new_b]
            assert everything & set(session.scalars(sa.select(HiddenRow.number))) == {new_a}
            assert everything & set(session.scalars(sa.select(QueryRejectionRow.number))) == {new_b}
            pairs = {(row.one, row.other) for row in session.scalars(sa.select(RejectionRow))}
            assert {pair for pair in pairs if everything.issuperset(pair)} == {(new_a, new_b), (c, new_b)}
        catalogue.write(replace_segments, [1], [Rewritten(segment_of("3"), np.array([c]))])
        with catalogue.reading() as session:  # the old ones are gone, with what was decided about them
            assert set(session.scalars(sa.select(AlbumPhotoRow.number))) == {new_a, new_b}
            pairs = {(row.one, row.other) for row in session.scalars(sa.select(RejectionRow))}
            assert pairs == {(new_a, new_b), (c, new_b)}


@most_on_sqlite
def test_a_catalogue_of_format_6_compares_names_by_their_bytes(new_address: NewAddress) -> None:
    address = new_address()
    names = ["a/Ä.jpg", "a/b.jpg", "a-b.jpg", "A.jpg", "a/B.jpg", "ä.jpg"]
    with Catalogue.open(address, create=True) as catalogue:
        first = catalogue.write(reserve_numbers, len(names))
        rows = [ImageRow(number=first + i, path=f"/{i}", name=name, position=i) for i, name in enumerate(names)]
        values: dict[str, Any] = {"images": len(rows), "features": 0, "bytes": 0}
        segment = SegmentRow(folder="1", vocabulary_fingerprint="v", descriptor_fingerprint="d", **values)
        catalogue.write(commit_segment, segment, rows)
    before = everything_in(address)
    make_format_6(address)
    assert everything_in(address)["tables"] != before["tables"]
    with Catalogue.open(address) as catalogue:
        assert [row.name for row in catalogue.page(0, 9)[1]] == sorted(names, key=str.encode)
    after = everything_in(address)
    assert after["tables"] == before["tables"] and differences(address) == []
    assert after["rows"]["images"] == before["rows"]["images"]


@most_on_sqlite
def test_a_catalogue_of_format_4_keeps_everything(new_address: NewAddress) -> None:
    address = new_address()
    with Catalogue.open(address, create=True) as catalogue:
        catalogue.write(keep_failures, [Failure("/a.jpg", "It is empty.")])
    make_format_5(address)
    write(address, "ALTER TABLE images DROP COLUMN date_added")
    write(address, "UPDATE settings SET value = '4' WHERE key = 'cairn.format'")
    write(address, "UPDATE alembic_version SET version_num = '0004'")
    before = everything_in(address)["rows"]
    with Catalogue.open(address) as catalogue:
        assert catalogue.read(first_and_last_added) is None
    after = everything_in(address)["rows"]
    assert after["images"] == undated(before["images"]) and differences(address) == []


@most_on_sqlite
def test_a_catalogue_of_format_2_keeps_everything(new_address: NewAddress) -> None:
    address = new_address()
    with Catalogue.open(address, create=True) as catalogue:
        catalogue.write(keep_failures, [Failure("/a.jpg", "It is empty.")])
        catalogue.write(keep_setting, "key", "value")
    make_format_5(address)
    for statement in (
        "DROP TABLE excluded",
        "DROP TABLE links",
        "ALTER TABLE images DROP COLUMN date_added",
        "DELETE FROM settings WHERE key = 'cairn.revision_copy'",
        "UPDATE settings SET value = '2' WHERE key = 'cairn.format'",
        "UPDATE alembic_version SET version_num = '0002'",
    ):
        write(address, statement)
    before = everything_in(address)["rows"]
    with Catalogue.open(address) as catalogue:
        assert catalogue.read(exclusions_in) == [] and catalogue.setting("key") == "value"
    after = everything_in(address)["rows"]
    assert {name: after[name] for name in ("segments", "metadata")} == {
        name: before[name] for name in ("segments", "metadata")
    }
    assert after["images"] == undated(before["images"])
    assert differences(address) == []


@pytest.mark.parametrize("has_copy", [True, False])
def test_a_catalogue_of_format_3_keeps_everything(new_address: NewAddress, has_copy: bool) -> None:
    """Those that were sealed have the revision twice."""
    address = new_address()
    with Catalogue.open(address, create=True) as catalogue:
        catalogue.write(keep_failures, [Failure("/a.jpg", "It is empty.")])
        catalogue.write(keep_setting, "key", "value")
    write(address, "DROP TABLE links")
    make_format_5(address)
    write(address, "ALTER TABLE images DROP COLUMN date_added")
    if not has_copy:
        write(address, "DELETE FROM settings WHERE key = 'cairn.revision_copy'")
    write(address, "UPDATE settings SET value = '3' WHERE key = 'cairn.format'")
    write(address, "UPDATE alembic_version SET version_num = '0003'")
    before = everything_in(address)["rows"]
    with Catalogue.open(address) as catalogue:
        assert catalogue.read(links_in) == {} and catalogue.setting("key") == "value"
        assert catalogue.revision() == 4 and catalogue.setting("cairn.revision_copy") == "4"
    after = everything_in(address)["rows"]
    assert all(after[name] == before[name] for name in ("segments", "metadata", "excluded"))
    assert after["images"] == undated(before["images"])
    assert differences(address) == []


def test_metadata_go_with_their_image(old: str) -> None:
    with Catalogue.open(old) as catalogue:
        (failed, *_) = (image for image in FEW_ROWS["images"] if image["state"] == "failed")
        number, path, kept = failed["number"], str(failed["path"]), 0
        with catalogue.writing() as session:
            for of in (number, kept):
                session.add_all(
                    MetadataRow(number=of, source="file", key="tag", position=i, value=f"Ä{i}") for i in range(3)
                )
        catalogue.write(forget_failures, [path])
        with catalogue.reading() as session:
            left = session.scalars(sa.select(MetadataRow).order_by(MetadataRow.position)).all()
            assert [(row.number, row.value) for row in left] == [(kept, "Ä0"), (kept, "Ä1"), (kept, "Ä2")]
            assert left[0].value_hash == MetadataRow(number=1, source="import", key="tag", value="ä0").value_hash
        with pytest.raises(CairnError, match=r"(?i)foreign key"), catalogue.writing() as session:
            session.add(MetadataRow(number=number, source="file", key="tag", value="of none"))


KILLED = """
import os, signal, sys
import sqlalchemy as sa
from retrieval.catalogue.catalogue import Catalogue

address, when = sys.argv[1:]
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
def die_at(connection, cursor, statement, *_):
    if when in statement:
        die()
if when == "commit":
    @sa.event.listens_for(sa.Engine, "after_cursor_execute")
    def migrated(connection, cursor, statement, *_):
        if statement.startswith("UPDATE alembic_version"):
            sa.event.listen(sa.Engine, "commit", die)
else:
    sa.event.listen(sa.Engine, "after_cursor_execute", die_at)
Catalogue.open(address)
"""


@pytest.mark.parametrize(
    "when",
    [
        pytest.param("ADD COLUMN sha256", marks=pytest.mark.slow),
        "CREATE TABLE metadata",
        pytest.param("commit", marks=pytest.mark.slow),
    ],
)
def test_a_process_killed_while_it_migrates(old: str, when: str) -> None:
    before = everything_in(old)
    done = subprocess.run([sys.executable, "-c", KILLED, old, when], cwd=ROOT, timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert everything_in(old) == before
    Catalogue.open(old).close()
    assert rows_in(old, FEW_ROWS) == migrated(FEW_ROWS)
    assert differences(old) == []


OPENED = """
import sys
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.settings import keep_setting

print("ready", flush=True)
sys.stdin.readline()
for address in sys.argv[1:]:
    with Catalogue.open(address, create=True) as catalogue:
        catalogue.write(keep_setting, "opened", "yes")
"""


@pytest.mark.slow
def test_processes_that_open_at_once_all_succeed(old: str, new_address: NewAddress) -> None:
    new, count = new_address(), 3
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPENED, old, new],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    for address in (old, new):
        assert differences(address) == []
        with Catalogue.open(address) as catalogue:
            assert catalogue.revision() == 1 + count  # it was made, or migrated, once
    assert rows_in(old, {"images": FEW_ROWS["images"]}) == {"images": FEW_ROWS["images"]}


def test_threads_migrate_several_catalogues_at_once(new_address: NewAddress) -> None:
    addresses = [new_address() for _ in range(3)]
    for address in addresses:
        make_format_1(address, FEW_ROWS)
    threads = [threading.Thread(target=lambda at=address: Catalogue.open(at).close()) for address in addresses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for address in addresses:
        assert rows_in(address, FEW_ROWS) == migrated(FEW_ROWS)


def write(address: str, statement: str) -> None:
    engine = sa.create_engine(address)
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("UPDATE settings SET value = '10' WHERE key = 'cairn.format'", "later version"),
        ("UPDATE settings SET value = '999999999' WHERE key = 'cairn.format'", "later version"),
        ("UPDATE settings SET value = '0' WHERE key = 'cairn.format'", "another program"),
        ("UPDATE settings SET value = '1e9' WHERE key = 'cairn.format'", "another program"),
        ("DELETE FROM settings WHERE key = 'cairn.format'", "another program"),
        ("UPDATE settings SET value = '1' WHERE key = 'cairn.format'", r"revision .* \('0009'\)"),
        ("UPDATE alembic_version SET version_num = 'fa1afe1'", r"revision .* \('fa1afe1'\)"),
        ("UPDATE alembic_version SET version_num = '0002'", "revision"),
        ("INSERT INTO alembic_version VALUES ('0001')", "revision"),
        ("DELETE FROM alembic_version", r"revision .* \(none\)"),
        ("DROP TABLE alembic_version", "revision"),
    ],
)
def test_what_is_not_known_is_refused_and_left_alone(tmp_path: Path, change: str, sentence: str) -> None:
    address = f"sqlite:///{tmp_path}/catalogue.sqlite"
    Catalogue.open(address, create=True).close()
    write(address, change)
    before = everything_in(address)
    for create in (False, True):
        with pytest.raises(CairnError, match=sentence):
            Catalogue.open(address, create=create)
    assert everything_in(address) == before


def test_another_programs_revisions_are_left_alone(new_address: NewAddress) -> None:
    address = new_address()
    write(address, "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    with pytest.raises(CairnError, match="another program"):
        Catalogue.open(address, create=True)
    assert set(tables_of(address)) == {"alembic_version"}


def test_a_catalogue_that_may_only_be_read(old: str) -> None:
    if old.startswith("sqlite"):
        read_only = old.replace("sqlite:///", "sqlite:///file:").replace("%", "%25") + "?mode=ro&uri=true"
    else:
        read_only = old + "&options=-c%20default_transaction_read_only%3Don"
    before = everything_in(old)
    with pytest.raises(CairnError, match=r"earlier version of Cairn \(format 1\).*is writable\.$"):
        Catalogue.open(read_only)
    assert everything_in(old) == before
    Catalogue.open(old).close()
    with Catalogue.open(read_only) as catalogue:
        assert len(catalogue.read(all_indexed)) == 20
        with pytest.raises(CairnError, match="writable"):
            catalogue.write(keep_setting, "a", "b")


OPENS_CURRENT = """
import sys
import sqlalchemy as sa
from retrieval.catalogue.catalogue import Catalogue

Catalogue.open(sys.argv[1], create=True).close()
statements = []
sa.event.listen(sa.Engine, "before_cursor_execute", lambda c, cursor, statement, *_: statements.append(statement))
for create in (True, False):
    Catalogue.open(sys.argv[1], create=create).close()
print("alembic" in sys.modules, len(statements))
"""


@pytest.mark.slow
def test_opening_a_current_catalogue_is_cheap(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OPENS_CURRENT, str(tmp_path)], cwd=ROOT, timeout=120, capture_output=True, text=True
    )
    assert done.stdout == "False 8\n", done.stderr  # twice: begin, names of tables, format and revision


def test_every_write_is_counted(new_address: NewAddress) -> None:
    with Catalogue.open(new_address(), create=True) as catalogue:
        assert catalogue.revision() == 1
        catalogue.write(reserve_numbers, 3)
        catalogue.write(keep_failures, [Failure("/a.jpg", "It is empty.")])
        catalogue.write(forget_failures, ["/a.jpg"])
        catalogue.write(keep_setting, "key", "value")
        assert catalogue.revision() == 5
        row = SegmentRow(
            folder="1", images=1, features=1, bytes=1, vocabulary_fingerprint="a", descriptor_fingerprint="b"
        )
        with pytest.raises(ValueError, match="reserved"):
            catalogue.write(commit_segment, row, [ImageRow(number=99, path="/b.jpg")])
        (
            catalogue.known(),
            catalogue.read(segments_in),
            catalogue.read(segments_and_tombstones),
            catalogue.read(counts_of_photos),
        )
        assert catalogue.revision() == 5


@pytest.mark.parametrize("key", ["cairn.revision", "cairn.next_number"])
@pytest.mark.parametrize("change", ["UPDATE settings SET value = 'x' WHERE key = '{}'", "DELETE FROM settings"])
def test_counters_that_are_damaged(tmp_path: Path, key: str, change: str) -> None:
    address = f"sqlite:///{tmp_path}/catalogue.sqlite"
    with Catalogue.open(address, create=True) as catalogue:
        write(address, change.format(key))
        with pytest.raises(CairnError):
            catalogue.revision() if key == "cairn.revision" else catalogue.write(reserve_numbers, 1)


def test_what_is_read_together_is_of_one_moment(old: str) -> None:
    with Catalogue.open(old) as catalogue, Catalogue.open(old) as other:
        segments, removed = catalogue.read(segments_and_tombstones)
        with catalogue.reading() as session:
            assert [row.folder for row in segments_in(session)] == [row.folder for row in segments]
            other.write(make_tombstones, [0])
            assert tombstones_in(session) == removed
        assert catalogue.read(segments_and_tombstones)[1] == removed | {0}
        # The next one to use the connection is not bound to an old moment.
        with catalogue.writing() as session:
            level = session.connection().get_isolation_level()
        assert level in ("SERIALIZABLE", "READ COMMITTED")
