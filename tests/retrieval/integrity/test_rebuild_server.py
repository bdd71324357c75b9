"""Repairs of catalogues in PostgreSQL: what was damaged there is what it was, as in an SQLite file."""

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from index.errors import CairnError
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.database import Database
from retrieval.catalogue.photos import all_indexed, count_indexed, counts_of_photos
from retrieval.catalogue.schema import Base
from retrieval.catalogue.segment_rows import tombstones_in
from retrieval.catalogue.settings import reserve_numbers
from retrieval.collection.collection import Collection
from retrieval.collection.identity import WrongCatalogueError
from retrieval.collection.layout import SEAL, SNAPSHOT
from retrieval.collection.options import CollectionOptions
from retrieval.collection.sealing import seal
from retrieval.indexing.removal import remove_photos
from retrieval.integrity.check import check_collection
from retrieval.integrity.repair import repair_collection
from tests.conftest import Ran
from tests.retrieval.integrity.test_repair import CATALOGUE, before, contents, folder, sealed
from tests.support.postgresql import Server

__all__ = ["before", "folder", "sealed"]  # fixtures

ON_SERVER = "catalogue"  # as check calls it


def copy_all(source: Database, target: Database) -> None:
    """Copy the rows of a catalogue to one that was just made."""
    with source.transaction() as old, target.transaction(write=True) as new:
        new.execute(sa.delete(Base.metadata.tables["settings"]))
        for table in Base.metadata.sorted_tables:
            rows = [dict(row) for row in old.execute(sa.select(table)).mappings()]
            if rows:
                new.execute(sa.insert(table), rows)
        new.execute(sa.text("SELECT setval('segments_id_seq', 100)"))
    source.close()
    target.close()


def move_to(folder: Path, address: str) -> None:
    """Let a collection have the rows of its SQLite catalogue in a database."""
    Catalogue.open(address, create=True).close()
    source, target = Database(f"sqlite:///{folder / CATALOGUE}"), Database(address)
    copy_all(source, target)
    for name in (CATALOGUE, SEAL, SNAPSHOT):
        (folder / name).unlink()
    with Collection.open(folder, catalogue=address) as collection:
        seal(collection)
    assert check_collection(folder, catalogue=address).ok


def execute(address: str, *statements: str) -> None:
    """Damage a database."""
    database = Database(address)  # which knows the schema
    with contextlib.closing(database), database.transaction(write=True) as session:
        for statement in statements:
            session.execute(sa.text(statement))


@pytest.fixture
def address(folder: Path, postgresql: Callable[[], str]) -> str:
    """Where the catalogue of the collection is."""
    address = f"{postgresql()}&schema=photos"
    move_to(folder, address)
    return address


WITHOUT_LOSS = {
    "rows are missing": ["DELETE FROM images WHERE number IN (6, 7, 8)"],
    "all photos of a segment are missing": [
        "DELETE FROM images WHERE segment_id = (SELECT min(id) FROM segments) AND number NOT IN (2, 3, 5)"
    ],
    "numbers of features are wrong": ["UPDATE images SET features = features + 1 WHERE number = 4"],
    "contents are wrong": ["UPDATE images SET sha256 = repeat('0', 64) WHERE number < 4"],
    "a path is not what was written": ["UPDATE images SET path = '/elsewhere' WHERE number = 6"],
    "positions are exchanged": ["UPDATE images SET position = 1 - position WHERE position < 2"],
    "a photo is in no segment": ["UPDATE images SET segment_id = NULL WHERE number = 6"],
    "a segment is missing": [
        "UPDATE images SET segment_id = NULL WHERE segment_id = (SELECT max(id) FROM segments)",
        "DELETE FROM segments WHERE id = (SELECT max(id) FROM segments)",
    ],
    "a segment says another size": ["UPDATE segments SET images = images + 1"],
    "the next number was given": ["UPDATE settings SET value = '3' WHERE key = 'cairn.next_number'"],
    "the next number is lost": ["DELETE FROM settings WHERE key = 'cairn.next_number'"],
    "the revisions differ": ["UPDATE settings SET value = '3' WHERE key = 'cairn.revision_copy'"],
    "all settings are lost": ["DELETE FROM settings"],
    "the table of settings is lost": ["DROP TABLE settings"],
    "the table of the revisions is lost": ["DROP TABLE alembic_version"],
    "the table of links is lost": ["DROP TABLE links"],
}


_QUICK = ("a segment says another size", "the table of settings is lost")  # the others take as long each


@pytest.mark.parametrize(
    "what", [pytest.param(one, marks=[] if one in _QUICK else [pytest.mark.slow]) for one in WITHOUT_LOSS]
)
def test_what_segments_know_too_is_restored(folder: Path, address: str, before: dict[str, Any], what: str) -> None:
    execute(address, *WITHOUT_LOSS[what])
    found = check_collection(folder, catalogue=address)
    assert [one.file for one in found.damaged] == [ON_SERVER], found
    assert "the same --catalogue" in found.damaged[0].remedy
    report = repair_collection(folder, catalogue=address)
    assert not report.damaged and not report.lost, report
    assert {"file": ON_SERVER, "how": "restored from its rows that can be read and the segments"} in report.repaired
    assert contents(folder, address) == before
    assert check_collection(folder, catalogue=address).ok
    with Catalogue.open(address) as catalogue:
        numbers = [row.number for row in catalogue.read(all_indexed)]
        assert catalogue.write(reserve_numbers, 1) > max(numbers)
        assert catalogue.read(tombstones_in) <= {5} and catalogue.read(counts_of_photos)["indexed"] == len(numbers)


@pytest.mark.slow
def test_what_was_there_is_kept_beside_it(folder: Path, address: str) -> None:
    for number in (1, 2):
        execute(address, "UPDATE images SET features = 99999 WHERE number = 4")
        report = repair_collection(folder, catalogue=address)
        note = (
            f"The damaged tables were moved to the schema photos_damaged_{number}: drop it when it is no longer needed."
        )
        assert not report.damaged and note in report.notes
        engine = sa.create_engine(address.replace("&schema=photos", ""))
        with engine.connect() as connection:
            kept = connection.scalar(sa.text(f"SELECT features FROM photos_damaged_{number}.images WHERE number = 4"))
        engine.dispose()
        assert kept == 99999


@pytest.mark.slow
def test_a_lost_table_of_photos_costs_what_only_it_knew(folder: Path, address: str, before: dict[str, Any]) -> None:
    execute(address, "DROP TABLE images CASCADE")
    found = check_collection(folder, catalogue=address)
    assert [(one.file, one.what) for one in found.damaged] == [(ON_SERVER, "It lacks the table 'images'.")]
    report = repair_collection(folder, catalogue=address)
    assert not report.damaged and len(report.lapses) == 1 and "Not all of the damaged catalogue" in report.lapses[0]
    after = contents(folder, address)
    # What files say is read from them again; what was imported is where it was.
    assert [one[:7] for one in after["photos"]] == [one[:7] for one in before["photos"]]
    assert after["metadata"][3] == before["metadata"][3] and after["metadata"][3].title == "A fountain"
    assert all(after[key] == before[key] for key in ("features", "excluded", "found"))
    assert after["failures"] == []


def test_a_lost_database_is_made_from_the_segments(folder: Path, address: str, before: dict[str, Any]) -> None:
    execute(address, "DROP SCHEMA photos CASCADE")
    found = check_collection(folder, catalogue=address)
    assert [one.file for one in found.damaged] == [ON_SERVER] and "check the address" in found.damaged[0].what
    with pytest.raises(CairnError, match="holds no collection"):
        Collection.open(folder, catalogue=address)
    report = repair_collection(folder, catalogue=address)
    assert not report.damaged and "no sound snapshot" in report.lapses[0]
    after = contents(folder, address)
    assert after["features"].items() >= before["features"].items()
    assert check_collection(folder, catalogue=address).ok


@pytest.mark.slow
def test_blocks_that_cannot_be_read_hide_no_others(folder: Path, own_server: Server, before: dict[str, Any]) -> None:
    address = own_server.new_database()
    move_to(folder, address)
    # Two blocks of metadata of photos that there are, and one of the photos'.
    padding = "INSERT INTO metadata SELECT 4, 'import', 'k' || i, 0, repeat('x', 200), 0 FROM generate_series(1, 90) i"
    execute(address, padding)
    hashed = sa.text("UPDATE metadata SET value_hash = :hash WHERE key LIKE 'k%'")
    from retrieval.catalogue.schema import value_hash_of

    database = Database(address)
    with contextlib.closing(database), database.transaction(write=True) as session:
        session.execute(hashed, {"hash": value_hash_of("x" * 200)})
        path = session.scalar(sa.text("SELECT pg_relation_filepath('images')"))
        blocks = session.scalar(sa.text("SELECT pg_relation_size('images') / 8192"))
    own_server.stop("fast")
    file = own_server.data / str(path)
    contents_before = file.read_bytes()
    with file.open("r+b") as opened:
        opened.write(os.urandom(8192))
    own_server.start()
    found = check_collection(folder, catalogue=address)
    assert [one.file for one in found.damaged] == [ON_SERVER] and len(contents_before) == 8192 * int(blocks or 0)
    report = repair_collection(folder, catalogue=address)
    assert not report.damaged and "Not all of the damaged catalogue" in report.lapses[0], report
    after = contents(folder, address)
    assert [photo[:5] for photo in after["photos"]] == [photo[:5] for photo in before["photos"]]
    assert after["features"] == before["features"] and after["excluded"] == before["excluded"]
    assert check_collection(folder, catalogue=address).ok


def test_another_collections_database_is_never_repaired(
    folder: Path, address: str, tmp_path: Path, postgresql: Callable[[], str]
) -> None:
    other = postgresql()
    with Collection.create(tmp_path / "other", CollectionOptions(signature="none"), catalogue=other):
        pass
    with pytest.raises(WrongCatalogueError):
        repair_collection(folder, catalogue=other)
    execute(other, "DROP TABLE images CASCADE")
    with pytest.raises(CairnError, match="another program"):
        repair_collection(folder, catalogue=other)
    foreign = postgresql()
    execute(foreign, "CREATE TABLE images (id int)")
    with pytest.raises(CairnError, match="another program"):
        repair_collection(folder, catalogue=foreign)
    assert check_collection(folder, catalogue=address).ok


def test_a_server_that_does_not_answer_is_no_damage(folder: Path, address: str, tmp_path: Path) -> None:
    with pytest.raises(CairnError, match="cannot be used"):
        repair_collection(folder, catalogue=f"postgresql+psycopg://me@/x?host={tmp_path}")
    assert check_collection(folder, catalogue=address).ok


@pytest.mark.slow
def test_two_collections_in_one_database_are_changed_and_repaired_apart(
    folder: Path, address: str, tmp_path: Path, before: dict[str, Any], cairn: Callable[..., Ran]
) -> None:
    other = Path(shutil.copytree(folder, tmp_path / "other.cairn"))
    (other / "collection.id").unlink()
    second = address.replace("schema=photos", "schema=others")
    with Collection.open(folder, catalogue=address):
        pass
    source, target = Database(address), Database(second)
    Catalogue.open(second, create=True).close()
    copy_all(source, target)
    execute(second, "DELETE FROM settings WHERE key = 'cairn.identity'")
    with Collection.open(other, catalogue=second) as collection:
        names = [row.name for row in collection.catalogue.read(all_indexed)][:2]
        remove_photos(collection, names)
        seal(collection)
        left = collection.catalogue.read(count_indexed)
    assert contents(folder, address) == before
    execute(second, "UPDATE images SET features = 77777 WHERE number = 4")
    assert check_collection(folder, catalogue=address).ok
    assert cairn("check", other, "--catalogue", second).code == 1
    assert cairn("repair", other, "--catalogue", second).code == 0
    with Collection.open(other, catalogue=second) as collection:
        assert collection.catalogue.read(count_indexed) == left
    assert contents(folder, address) == before
    execute(address, "DELETE FROM images WHERE number IN (6, 7)")
    assert not repair_collection(folder, catalogue=address).damaged
    assert contents(folder, address) == before
    with Collection.open(other, catalogue=second) as collection:
        assert collection.catalogue.read(count_indexed) == left
