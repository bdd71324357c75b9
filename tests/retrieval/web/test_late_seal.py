"""The seal of a collection that a server writes to."""

import logging
import shutil
import sqlite3
from pathlib import Path

import pytest

from retrieval.catalogue.metadata_store import import_values
from retrieval.collection.collection import Collection
from retrieval.collection.layout import SEAL
from retrieval.collection.locking import lock_folder
from retrieval.collection.seal import read_seal
from retrieval.integrity.check import check_collection
from retrieval.web.late_seal import LateSeal
from tests.conftest import Indexed
from tests.support.live import until


@pytest.fixture
def collection(indexed: Indexed, tmp_path: Path) -> Collection:
    folder = tmp_path / "demo.cairn"
    shutil.copytree(indexed.folder, folder)
    return Collection.open(folder)


def sealed_revision(collection: Collection) -> int | None:
    kept = read_seal(collection.folder / SEAL)
    assert kept is not None
    return kept.revision


def test_many_writes_are_sealed_once_beside_a_command_that_indexes(collection: Collection) -> None:
    before = sealed_revision(collection)
    sealing = LateSeal(collection, quiet=0.2)
    with lock_folder(collection.folder):  # as a command holds it
        for i in range(5):
            collection.catalogue.write(import_values, {0: {"title": [f"Bridge {i}"]}})
            sealing.wrote()
            assert sealed_revision(collection) == before
        until(lambda: sealing.sealed)
    assert sealing.sealed == 1 and sealed_revision(collection) == collection.catalogue.revision()
    collection.catalogue.write(import_values, {0: {"title": ["Arch"]}})
    sealing.wrote()
    sealing.close()  # at the end too, and at once
    assert sealing.sealed == 2
    report = check_collection(collection.folder)
    assert report.ok and not report.notes, report


def test_a_catalogue_that_was_damaged_before_is_not_sealed(
    collection: Collection, caplog: pytest.LogCaptureFixture
) -> None:
    before = sealed_revision(collection)
    catalogue = sqlite3.connect(collection.folder / "catalogue.sqlite")
    catalogue.execute("UPDATE images SET name = 'other.jpg' WHERE number = 1")
    catalogue.commit()
    catalogue.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    catalogue.close()
    with caplog.at_level(logging.ERROR):
        sealing = LateSeal(collection, quiet=0.0)
        until(lambda: "damaged" in caplog.text)
        sealing.wrote()
        sealing.close()
    assert "damaged" in caplog.text and sealing.sealed == 0 and sealed_revision(collection) == before
