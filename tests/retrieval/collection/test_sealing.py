"""Sealing: a full disk, and several commands at once, leave a seal and a snapshot that fit the catalogue."""

import errno
import itertools
import os
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from index.arrays import hash_file
from index.errors import CairnError, DatabaseError
from index.vocabulary import CENTRES_FILE
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.database import Database
from retrieval.catalogue.link_store import links_in
from retrieval.catalogue.photos import names_in_order
from retrieval.catalogue.settings import keep_setting
from retrieval.collection import sealing, snapshot
from retrieval.collection.collection import Collection
from retrieval.collection.layout import OPTIONS, SEAL, SNAPSHOT, VOCABULARY, VOCABULARY_KEY
from retrieval.collection.options import write_options
from retrieval.collection.seal import Seal, is_as_sealed, read_seal
from retrieval.collection.sealing import COPIES_KEY, read_copies, seal, sealed_afterwards
from retrieval.collection.snapshot import read_snapshot
from retrieval.groups import links
from retrieval.groups.groups import group_photos
from retrieval.groups.links import Link
from retrieval.indexing.compaction import compact
from retrieval.indexing.removal import remove_photos
from retrieval.integrity.check import check_collection
from tests.conftest import Ran
from tests.support.patience import patience


def change(folder: Path, value: str) -> Seal:
    """Write to a catalogue and seal it, as a command does."""
    with Collection.open(folder) as collection:
        collection.catalogue.write(keep_setting, "some", value)
        return seal(collection)


class _Full(sqlite3.Connection):
    """A connection whose backup finds a full disk."""

    def backup(self, *_: object, **__: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error


@pytest.mark.parametrize("how", ["SQLite", "ENOSPC"])
def test_where_the_disk_is_too_full_for_a_snapshot_the_earlier_one_stays(
    folder: Path, how: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, digest = read_snapshot(folder / SNAPSHOT), hash_file(folder / SNAPSHOT)

    def full(*rest: Any, **more: Any) -> sqlite3.Connection:
        return sqlite3.connect(*rest, **more, factory=_Full)

    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        if how == "SQLite":
            patch.setattr(snapshot, "connect_for_reading", full)
        else:
            patch.setattr(snapshot, "os", SimpleNamespace(**{**vars(os), "fsync": refuse}))
        with Collection.open(folder) as collection:
            collection.catalogue.write(keep_setting, "some", how)
            made = seal(collection)
            assert made.revision == collection.catalogue.revision() and made.catalogue is not None
    reported = capsys.readouterr().err
    assert reported.count("\n") == 1 and "disk is too full" in reported
    assert made.snapshot == before and hash_file(folder / SNAPSHOT) == digest
    assert read_seal(folder / SEAL) == made
    report = check_collection(folder)
    assert report.ok and report.notes == []
    assert change(folder, "room again").snapshot == read_snapshot(folder / SNAPSHOT) != before
    assert capsys.readouterr().err == ""


def test_of_two_commands_that_seal_at_once_the_later_wins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examine = snapshot._examine
    has_copied, has_ended = threading.Event(), threading.Event()

    def slow(copy: Path) -> int:
        if not has_copied.is_set():
            has_copied.set()
            has_ended.wait(1.0)
        return examine(copy)

    monkeypatch.setattr(snapshot, "_examine", slow)
    first = threading.Thread(target=change, args=(folder, "first"))
    first.start()
    assert has_copied.wait(patience(30))
    change(folder, "second")
    has_ended.set()
    first.join()
    kept = read_seal(folder / SEAL)
    with Collection.open(folder) as collection:
        revision = collection.catalogue.revision()
    assert kept is not None and kept.revision == kept.snapshot == read_snapshot(folder / SNAPSHOT) == revision
    report = check_collection(folder)
    assert report.ok and report.notes == []


def test_a_vocabulary_may_be_replaced_while_it_is_sealed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As cairn retrain does, while cairn group ends."""
    sealed, new = sealing._sealed, f"{VOCABULARY}-000001"
    with Collection.open(folder) as collection:

        def replace(*rest: object) -> object:
            if not (folder / new).exists():
                (folder / VOCABULARY).rename(folder / new)
                collection.catalogue.write(keep_setting, VOCABULARY_KEY, new)
            return sealed(*rest)  # type: ignore[arg-type]

        monkeypatch.setattr(sealing, "_sealed", replace)
        made = seal(collection)
        copies = read_copies(collection.catalogue.setting(COPIES_KEY))
    assert made.vocabulary == new
    for names in (made.files, copies):
        assert {name.partition("/")[0] for name in names if "/" in name} == {new}
    assert check_collection(folder).ok


def test_a_seal_of_another_command_does_not_outlive_a_compaction(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It seals when the catalogue has been counted and is not yet written again; then the compaction is killed."""
    shrink = Database.shrink

    def seal_first(database: Database) -> None:
        with Collection.open(folder) as other:
            seal(other)
        shrink(database)

    with Collection.open(folder) as collection:
        remove_photos(
            collection, collection.catalogue.read(names_in_order, collection.catalogue.read(numbers_of).tolist())[:1]
        )
    monkeypatch.setattr(Database, "shrink", seal_first)
    monkeypatch.setattr("retrieval.collection.sealing.seal", _killed)
    with Collection.open(folder) as collection, pytest.raises(KeyboardInterrupt):
        compact(collection)
    assert check_collection(folder).damaged == ()


def test_groups_that_are_interrupted_are_sealed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask, requested = links._ask, itertools.count(1)

    def stop(*rest: Any) -> list[Link]:
        if next(requested) == 3:
            raise KeyboardInterrupt
        return ask(*rest)

    monkeypatch.setattr(links, "_ask", stop)
    with Collection.open(folder) as collection:
        with pytest.raises(KeyboardInterrupt):
            group_photos(collection)
        assert len(collection.catalogue.read(links_in)) == 2
    report = check_collection(folder)
    assert report.ok and report.notes == []


def test_what_was_written_before_an_error_is_sealed(folder: Path, tmp_path: Path, cairn: Callable[..., Ran]) -> None:
    table = tmp_path / "bad.csv"
    table.write_text("name\n")
    before = read_seal(folder / SEAL)
    cairn("metadata", folder, "--refresh", table, "--map", "date=Nothing").refused()
    assert read_seal(folder / SEAL) != before
    report = check_collection(folder)
    assert report.ok and report.notes == []


def test_an_error_before_anything_is_written_seals_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "seal", _killed)
    with Collection.open(folder) as collection:
        with pytest.raises(CairnError, match="wrong"), sealed_afterwards(collection):
            raise CairnError("wrong")
        # What fails in the catalogue itself may be damage, which must not be sealed as sound.
        with pytest.raises(DatabaseError), sealed_afterwards(collection):
            collection.catalogue.write(keep_setting, "some", "thing")
            raise DatabaseError("damaged")


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_copy_is_sealed_with_its_own_times_and_damage_with_none(folder: Path) -> None:
    name = f"{VOCABULARY}/{CENTRES_FILE}"
    file = folder / name
    before = change(folder, "1").files[name]
    os.utime(file, ns=(1, 1))
    after = change(folder, "2").files[name]
    assert (after.sha256, after.bytes, after.mtime_ns) == (before.sha256, before.bytes, 1)
    flip_last_byte(file)
    os.utime(file, ns=(2, 2))
    assert change(folder, "3").files[name] == after


def test_a_vocabulary_is_looked_through_where_it_may_have_changed_since_it_was_sealed(folder: Path) -> None:
    file = folder / VOCABULARY / CENTRES_FILE
    state = file.stat()
    assert is_as_sealed(folder, VOCABULARY)
    flip_last_byte(file)
    assert not is_as_sealed(folder, VOCABULARY)
    with Collection.open(folder) as collection, pytest.raises(CairnError, match="other points"):
        _ = collection.vocabulary
    # A disk that forgets leaves the times as they are: that is found by who looks, and by who writes words.
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    with Collection.open(folder) as collection:
        assert collection.vocabulary.words
        with pytest.raises(CairnError, match="other points"):
            collection.check_vocabulary()
    assert [one.file for one in check_collection(folder).damaged] == [f"{VOCABULARY}/{CENTRES_FILE}"]
    # Nothing is known without a seal, nor of a file more or less.
    (folder / VOCABULARY / "search.json").rename(folder / VOCABULARY / "other.json")
    assert not is_as_sealed(folder, VOCABULARY)
    (folder / VOCABULARY / "other.json").rename(folder / VOCABULARY / "search.json")
    assert is_as_sealed(folder, VOCABULARY)
    (folder / SEAL).unlink()
    assert not is_as_sealed(folder, VOCABULARY)


def test_facts_of_a_vocabulary_are_believed_as_it_is(folder: Path) -> None:
    file = folder / VOCABULARY / CENTRES_FILE
    with Collection.open(folder) as collection:
        facts = collection.vocabulary_facts
        assert collection._read.vocabulary is None  # it was not read
        assert facts == collection.vocabulary.facts == collection.vocabulary_facts
    flip_last_byte(file)
    with Collection.open(folder) as collection, pytest.raises(CairnError, match="other points"):
        _ = collection.vocabulary_facts
    options = replace(collection.options, descriptor="sift")
    flip_last_byte(file)
    change(folder, "4")
    assert is_as_sealed(folder, VOCABULARY)
    write_options(folder / OPTIONS, options)
    with Collection.open(folder) as collection, pytest.raises(CairnError, match="another descriptor"):
        _ = collection.vocabulary_facts


def flip_last_byte(file: Path) -> None:
    contents = bytearray(file.read_bytes())
    contents[-1] ^= 1
    file.write_bytes(contents)
