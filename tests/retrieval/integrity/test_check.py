"""Checks of collections: a byte that is another is found in every file, and nothing is in what is only unfinished."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from index.arrays import fingerprint, save_json
from index.errors import CairnError
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import make_tombstones
from retrieval.catalogue.link_store import begin_links, keep_links
from retrieval.catalogue.photos import all_indexed, names_in_order
from retrieval.catalogue.segment_rows import commit_segment, segments_in, tombstones_in
from retrieval.catalogue.settings import keep_setting, reserve_numbers
from retrieval.collection import sealing as seals
from retrieval.collection import snapshot
from retrieval.collection.collection import Collection
from retrieval.collection.layout import SEAL, SNAPSHOT
from retrieval.collection.seal import read_seal, write_seal
from retrieval.collection.sealing import seal
from retrieval.groups.links import Link, encode_links
from retrieval.indexing.compaction import compact
from retrieval.integrity import check_catalogue, check_segments
from retrieval.integrity.check import check_collection
from retrieval.integrity.check_catalogue import check_sqlite
from retrieval.integrity.report import Check
from retrieval.photos.thumbnails import encode_jpeg, is_whole, is_without_checksum, thumbnail
from tests.conftest import Indexed, Ran
from tests.support.paths import ROOT

CATALOGUE = "catalogue.sqlite"


@pytest.fixture(scope="module")
def sealed(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small collection with all caches, sealed; nobody may change it."""
    folder = tmp_path_factory.mktemp("sealed") / "demo.cairn"
    shutil.copytree(indexed.folder, folder)
    with Collection.open(folder) as collection:
        add_caches(collection)
        seal(collection)
    return folder


@pytest.fixture
def folder(sealed: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(sealed, tmp_path / "demo.cairn"))


def add_caches(collection: Collection) -> None:
    """Give a collection groups, links and thumbnails, without the time that grouping takes."""
    rows = collection.catalogue.read(all_indexed)
    links = {row.number: [Link(row.number, 5, 30, (1.0, 0.125, -0.25, 0.0, 1.0, 0.5))] for row in rows[:4]}
    collection.catalogue.write(begin_links, "{}")
    collection.catalogue.write(keep_links, "{}", {number: encode_links(found) for number, found in links.items()})
    thumbnail(Path(rows[0].path), rows[0].sha256, 128, collection.folder / "cache")
    groups = {"format": 1, "state": "", "inliers": 20, "photos": 4, "groups": []}
    save_json(collection.folder / "groups.json", {**groups, "sha256": fingerprint({}, groups)})


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)


def name_of(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()


def flip(path: Path, place: int, change: int = 0xFF) -> None:
    contents = bytearray(path.read_bytes())
    contents[place] ^= change
    path.write_bytes(contents)


def damaged(folder: Path) -> list[str]:
    return sorted(one.file for one in check_collection(folder).damaged)


def test_a_sound_collection_is_sound(sealed: Path, cairn: Callable[..., Ran]) -> None:
    report = cairn("check", sealed, "--json")
    assert report.code == 0
    reported = report.json
    assert (reported["ok"], reported["damaged"], reported["notes"]) == (True, [], [])
    files = files_of(sealed)
    assert reported["files"] == len(files)
    assert reported["bytes"] == sum(path.stat().st_size for path in files)
    assert "sound" in cairn("check", sealed).out


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_byte_is_found_in_every_file(
    folder: Path, sealed: Path, seed: int, cairn: Callable[..., Ran]
) -> None:
    rng = np.random.default_rng(seed)
    # What a segment says of its files, and the seal, decide what is known of others: these are damaged apart.
    groups: list[list[str]] = [[], [], []]
    for path in files_of(folder):
        name = name_of(folder, path)
        if name == SEAL or (name.endswith("/meta.json") and name.startswith("segments")):
            groups[1].append(name)
        elif name == CATALOGUE:
            groups[2].append(name)
        else:
            groups[0].append(name)
    for group in groups:
        assert group
        for name in group:
            path = folder / name
            flip(path, (0, -1, int(rng.integers(path.stat().st_size)))[seed], int(rng.integers(1, 256)))
        ran = cairn("check", folder, "--json")
        assert ran.code == 1
        assert sorted(one["file"] for one in ran.json["damaged"]) == sorted(group)
        assert all("Run cairn " in one["remedy"] for one in ran.json["damaged"])
        for name in group:
            shutil.copy2(sealed / name, folder / name)
    assert damaged(folder) == []


@pytest.mark.parametrize("place", [0, 18, 24, -1])
def test_the_head_and_the_end_of_the_catalogue_are_checked(folder: Path, place: int) -> None:
    flip(folder / CATALOGUE, place, 3)
    contents = (folder / CATALOGUE).read_bytes()
    assert damaged(folder) == [CATALOGUE]
    assert (folder / CATALOGUE).read_bytes() == contents  # it was not opened for writing


def test_a_damaged_revision_is_not_taken_for_a_later_one(folder: Path) -> None:
    """A flipped digit would make the seal look stale, and what it says of the catalogue would not count."""
    with Catalogue.open(folder) as catalogue:
        later = str(catalogue.revision() + 1)
    path = folder / CATALOGUE
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE settings SET value = ? WHERE key = 'cairn.revision'", [later])
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert damaged(folder) == [CATALOGUE]


def test_truncated_missing_and_exchanged_files_are_found(folder: Path, sealed: Path) -> None:
    for path in files_of(folder):
        name = name_of(folder, path)
        caches = name.startswith("cache") or name in ("groups.json", "collection.statistics")
        contents = path.read_bytes()
        if not caches and not name.startswith("segments"):
            path.unlink()
            assert damaged(folder) == [name], name
            path.write_bytes(contents[: len(contents) // 2])
            assert damaged(folder) == [name], name
            path.write_bytes(contents)
    segment = folder / "segments/000001"
    (segment / "notes.npy").unlink()
    (segment / "word_lists.npy").write_bytes((segment / "word_lists.npy").read_bytes()[:-1])
    shutil.copy(segment / "offsets.npy", segment / "column_geometry.npy")
    assert damaged(folder) == [f"segments/000001/{name}.npy" for name in ("column_geometry", "notes", "word_lists")]
    shutil.rmtree(segment)
    report = check_collection(folder)
    assert [(one.file, one.what) for one in report.damaged] == [("segments/000001", "The segment is missing.")]
    assert "cairn repair" in report.damaged[0].remedy


@pytest.mark.slow
def test_a_stale_seal_is_no_damage_and_what_it_cannot_tell_is_found_otherwise(folder: Path) -> None:
    with Collection.open(folder) as collection:
        collection.catalogue.write(keep_setting, "some", "thing")
    report = check_collection(folder)
    assert report.ok
    assert len(report.notes) == 1 and "older than the catalogue" in report.notes[0]
    flip(folder / "vocabulary/meta.json", -3)
    assert damaged(folder) == ["vocabulary/meta.json"]
    flip(folder / "vocabulary/meta.json", -3)
    for change in (
        "UPDATE images SET features = features + 1 WHERE number = 3",
        "UPDATE images SET position = 14 WHERE number = 3",
        "UPDATE images SET path = path || 'x' WHERE number = 3",
        "UPDATE images SET sha256 = 'ab' WHERE number = 3",
        "UPDATE images SET number = 300 WHERE number = 3",
        "UPDATE images SET segment_id = NULL WHERE number = 3",
        "UPDATE images SET name = NULL WHERE number = 3",
        "UPDATE images SET features = 'many' WHERE number = 3",
        "UPDATE segments SET sha256 = 'ab'",
        "UPDATE segments SET folder = '../segments'",
        "UPDATE segments SET features = 5",
        "UPDATE segments SET vocabulary_fingerprint = 'ab'",
        "UPDATE settings SET value = '2' WHERE key = 'cairn.next_number'",
        "DELETE FROM settings WHERE key = 'cairn.revision'",
        "INSERT INTO metadata VALUES (3, 'file', 'title', 0, 'A fountain', 1)",
        "INSERT INTO metadata VALUES (999, 'file', 'title', 0, 'A fountain', 1)",
        "UPDATE links SET found = x'00' WHERE number = 3",
        "UPDATE links SET number = 333 WHERE number = 3",
    ):
        before = (folder / CATALOGUE).read_bytes()
        with contextlib.closing(sqlite3.connect(folder / CATALOGUE)) as connection:
            connection.execute(change)
            connection.commit()
        found = damaged(folder)
        expected = "segments/000001/meta.json" if "SET sha256 = 'ab'" in change and "segments" in change else CATALOGUE
        assert found == [expected], change
        (folder / CATALOGUE).write_bytes(before)
    assert damaged(folder) == []


def test_a_collection_without_a_seal_is_one_of_an_earlier_version(indexed: Indexed, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(indexed.folder, tmp_path / "demo.cairn"))
    (folder / SEAL).unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(folder / CATALOGUE)) as connection:
        connection.execute("DELETE FROM settings WHERE key IN ('cairn.copies', 'cairn.revision_copy')")
        connection.commit()
    report = check_collection(folder)
    assert report.ok
    assert len(report.notes) == 1 and "missing" in report.notes[0]
    flip(folder / "vocabulary/centres.npy", 5000)
    assert damaged(folder) == ["vocabulary"]


@pytest.mark.parametrize(
    "step",
    [
        "_keep_copies",
        "write_seal",
        *(pytest.param(step, marks=pytest.mark.slow) for step in ("write_snapshot", "hash_catalogue")),
    ],
)
def test_a_kill_while_it_is_sealed_is_no_damage(
    indexed: Indexed, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(indexed.folder, tmp_path / "demo.cairn"))
    (folder / SEAL).unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(folder / CATALOGUE)) as connection:
        connection.execute("DELETE FROM settings WHERE key IN ('cairn.copies', 'cairn.revision_copy')")
        connection.commit()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    for _ in range(2):  # the first seal, and one that follows a change
        with Collection.open(folder) as collection:
            collection.catalogue.write(keep_setting, "some", "thing")
            with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
                patch.setattr(seals, step, killed)
                seal(collection)
            assert check_collection(folder).ok
            seal(collection)
        report = check_collection(folder)
        assert report.ok and report.notes == []


def test_a_command_does_not_write_to_a_damaged_catalogue(folder: Path, cairn: Callable[..., Ran]) -> None:
    """Else the damage would be sealed, and the snapshot, from which it can be undone, be lost."""
    with contextlib.closing(sqlite3.connect(folder / CATALOGUE)) as connection:
        connection.execute("UPDATE images SET mtime_ns = 1 WHERE number = 3")
        connection.commit()
    before = (folder / SNAPSHOT).read_bytes()
    with Collection.open(folder) as collection:
        name = collection.catalogue.read(names_in_order, [4])[0]
    for command in (
        ["remove", folder, name],
        ["compact", folder],
        ["metadata", folder, "--refresh"],
        ["group", folder],
    ):
        assert "is damaged: run cairn check, then cairn repair" in cairn(*command).refused()
    assert (folder / SNAPSHOT).read_bytes() == before
    assert cairn("repair", folder).code == 0
    assert cairn("remove", folder, name).code == 0 and check_collection(folder).ok


def test_a_collection_without_a_snapshot_gets_one_when_it_is_written_to(folder: Path) -> None:
    """As one of an earlier version, whose seal knows of none."""
    (folder / SNAPSHOT).unlink()
    kept = read_seal(folder / SEAL)
    assert kept is not None
    write_seal(folder / SEAL, replace(kept, snapshot=None))
    report = check_collection(folder)
    assert report.ok and report.notes == []
    with Collection.open(folder) as collection:
        seal(collection)
    assert (folder / SNAPSHOT).is_file() and check_collection(folder).ok


def test_of_a_large_catalogue_a_snapshot_is_made_when_commands_have_worked_for_ten_times_as_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "_ALWAYS", 0)
    size = (folder / CATALOGUE).stat().st_size
    for seconds, due in ((0.0, False), (6.0, False), (3.0, False), (2.0, True), (9.0, False), (11.0, True)):
        monkeypatch.setattr(seals, "_BYTES_PER_SECOND", size)
        monkeypatch.setattr(seals, "_seconds_of_work", lambda _, seconds=seconds: seconds)
        before = (folder / SNAPSHOT).read_bytes()
        with Collection.open(folder) as collection:
            collection.catalogue.write(keep_setting, "some", f"thing {seconds}")
            seal(collection)
        assert ((folder / SNAPSHOT).read_bytes() != before) == due, seconds
        assert check_collection(folder).ok


def test_links_do_not_make_a_catalogue_large(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "_ALWAYS", (folder / CATALOGUE).stat().st_size + 10_000)
    monkeypatch.setattr(seals, "_BYTES_PER_SECOND", 1)
    for number, key, due in ((0, "links", True), (1, "setting", False)):
        before = (folder / SNAPSHOT).read_bytes()
        with Collection.open(folder) as collection:
            if key == "links":
                collection.catalogue.write(keep_links, "{}", {number: bytes(1_000_000)})
            else:
                collection.catalogue.write(keep_setting, "some", "thing" * 10_000)
            seal(collection)
        assert ((folder / SNAPSHOT).read_bytes() != before) == due, key
        assert check_collection(folder).ok


def test_where_another_process_clears_the_copy_away_the_next_command_makes_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one does that removes what killed processes have left: sealing needs no lock."""
    examine = snapshot._examine

    def clear_away(copy: Path) -> int:
        revision = examine(copy)
        copy.unlink()
        return revision

    before = (folder / SNAPSHOT).read_bytes()
    for is_cleared in (True, False):
        with Collection.open(folder) as collection, monkeypatch.context() as patch:
            if is_cleared:
                patch.setattr(snapshot, "_examine", clear_away)
            collection.catalogue.write(keep_setting, "some", f"thing {is_cleared}")
            seal(collection)
        assert ((folder / SNAPSHOT).read_bytes() == before) == is_cleared
        assert check_collection(folder).ok


def test_a_snapshot_that_is_older_than_the_seal_says_is_damage(folder: Path, cairn: Callable[..., Ran]) -> None:
    before = (folder / SNAPSHOT).read_bytes()
    with Collection.open(folder) as collection:
        collection.catalogue.write(keep_setting, "some", "thing")
        seal(collection)
    assert check_collection(folder).ok
    (folder / SNAPSHOT).write_bytes(before)
    assert damaged(folder) == [SNAPSHOT]
    assert cairn("repair", folder).code == 0 and check_collection(folder).ok
    assert (folder / SNAPSHOT).read_bytes() != before


def test_damage_is_found_while_another_process_writes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As cairn group does, once a second: longer than that a large catalogue is looked at."""
    settings = check_catalogue._settings
    with contextlib.closing(sqlite3.connect(folder / CATALOGUE)) as writer:
        writer.execute("INSERT INTO metadata VALUES (999, 'file', 'title', 0, 'A fountain', 1)")

        def write(connection: sqlite3.Connection) -> dict[str, str]:
            writer.execute("UPDATE settings SET value = value + 1 WHERE key LIKE 'cairn.revision%'")
            writer.commit()
            return settings(connection)

        with monkeypatch.context() as patch:
            patch.setattr(check_catalogue, "_settings", write)
            found = check_sqlite(folder / CATALOGUE, folder / SEAL, lambda _: None)
    assert found.damage is not None and "'metadata'" in found.damage


def test_a_catalogue_too_large_to_be_hashed_is_looked_through(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "_LARGEST_HASHED", 100)
    with Collection.open(folder) as collection:
        assert seal(collection).catalogue is None
    assert check_collection(folder).ok
    flip(folder / CATALOGUE, 4100)
    assert damaged(folder) == [CATALOGUE]


def test_an_older_catalogue_than_the_seal_is_damage(folder: Path, sealed: Path) -> None:
    with Collection.open(folder) as collection:
        collection.catalogue.write(make_tombstones, [3])
        seal(collection)
    shutil.copy(sealed / CATALOGUE, folder / CATALOGUE)
    report = check_collection(folder)
    assert [one.file for one in report.damaged] == [CATALOGUE]
    assert "lost" in report.damaged[0].what


def test_damage_is_never_sealed(folder: Path) -> None:
    for name in ("collection.toml", "vocabulary/centres.npy", "vocabulary/search.json"):
        flip(folder / name, -2, 1)
    with contextlib.suppress(CairnError), Collection.open(folder) as collection:
        collection.catalogue.write(keep_setting, "some", "thing")
        seal(collection)
    assert damaged(folder) == ["collection.toml", "vocabulary/centres.npy", "vocabulary/search.json"]


def test_options_of_a_collection_without_a_vocabulary_may_change(tmp_path: Path) -> None:
    from retrieval.collection.options import CollectionOptions

    folder = tmp_path / "new.cairn"
    for seed in (1, 2):
        with Collection.create(folder, CollectionOptions(seed=seed, signature="none")) as collection:
            assert check_collection(folder).ok
            seal(collection)
        assert check_collection(folder).ok
    flip(folder / "collection.toml", -2, 1)
    assert damaged(folder) == ["collection.toml"]


def test_leftovers_and_strangers_are_notes(folder: Path) -> None:
    (folder / "staging").mkdir()
    (folder / "retrain").mkdir()
    (folder / ".centres.npy.0123abcd.tmp").write_bytes(b"half")
    (folder / "segments/000002.0123abcd.writing").mkdir()
    (folder / "segments/000001/mine.txt").write_text("mine")
    (folder / "holiday.txt").write_text("sun")
    report = check_collection(folder)
    assert report.ok
    reported = "\n".join(report.notes)
    for name in ("staging", "retrain", ".tmp", "000002", "000001/mine.txt", "holiday.txt"):
        assert name in reported


@pytest.mark.slow
def test_a_search_for_damage_while_others_write_finds_none(folder: Path) -> None:
    """Sealing, removing and merging segments in a loop, in a thread: each state that is met is a sound one."""
    stop = threading.Event()
    errors: list[BaseException] = []

    def write() -> None:
        try:
            with Collection.open(folder) as collection:
                numbers = collection.catalogue.read(numbers_of).tolist()
                while not stop.is_set():
                    if len(numbers) > 4:
                        collection.catalogue.write(make_tombstones, [numbers.pop()])
                        compact(collection)
                    collection.catalogue.write(keep_setting, "some", "thing")
                    seal(collection)
        except BaseException as error:
            errors.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    reports: list[Check] = []
    try:
        reports += [check_collection(folder) for _ in range(6)]
    finally:
        stop.set()
        writer.join()
    assert errors == []
    assert [report.damaged for report in reports] == [()] * 6
    assert damaged(folder) == []


def test_a_segment_that_is_merged_right_after_it_was_found_sound_is_no_damage(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = check_segments.verify_segment

    def merged(where: Path) -> list[str]:
        bad = original(where)
        with Collection.open(folder) as collection:
            collection.catalogue.write(make_tombstones, [int(collection.catalogue.read(numbers_of)[-1])])
            compact(collection)
        assert not where.exists()
        monkeypatch.setattr(check_segments, "verify_segment", original)
        return bad

    monkeypatch.setattr(check_segments, "verify_segment", merged)
    assert damaged(folder) == []


KILLED = """
import os, sys
from pathlib import Path
from retrieval.catalogue.changes import make_tombstones
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.collection import Collection

collection = Collection.open(Path(sys.argv[1]))
collection.catalogue.write(keep_setting, "some", "thing")
collection.catalogue.write(make_tombstones, [3])
os._exit(9)
"""


@pytest.mark.slow
def test_nothing_depends_on_the_log_of_a_killed_process(folder: Path) -> None:
    """Of a damaged log SQLite leaves out, without a word, what was committed after the first damaged byte."""
    ran = subprocess.run([sys.executable, "-c", KILLED, folder], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 9, ran.stderr
    log = folder / f"{CATALOGUE}-wal"
    assert not log.exists() or not log.stat().st_size
    for name in (f"{CATALOGUE}-wal", f"{CATALOGUE}-shm"):
        (folder / name).unlink(missing_ok=True)
    with Collection.open(folder) as collection:
        assert collection.catalogue.setting("some") == "thing"
        assert collection.catalogue.read(tombstones_in) == {3}
    assert check_collection(folder).ok


def test_caches_that_an_earlier_version_wrote_are_no_damage(folder: Path) -> None:
    groups = folder / "groups.json"
    kept = json.loads(groups.read_text())
    del kept["sha256"]
    groups.write_text(json.dumps(kept))
    made = next((folder / "cache").rglob("*.jpg"))
    made.write_bytes(encode_jpeg(np.zeros((8, 8, 3), np.uint8)))
    (folder / "links.jsonl").write_bytes(b"{}\n")
    report = check_collection(folder)
    assert report.ok
    assert len(report.notes) == 3 and "cairn group removes it" in "".join(report.notes)


def test_no_flipped_byte_of_a_thumbnail_makes_it_one_of_an_earlier_version(folder: Path) -> None:
    contents = next((folder / "cache").rglob("*.jpg")).read_bytes()
    assert is_whole(contents)
    for place in range(130):
        for change in range(1, 256):
            flipped = bytearray(contents)
            flipped[place] ^= change
            assert not is_without_checksum(bytes(flipped)), place


def test_what_is_no_collection_is_refused(tmp_path: Path, cairn: Callable[..., Ran]) -> None:
    assert "no collection" in cairn("check", tmp_path).refused()
    assert "no collection" in cairn("check", tmp_path / "none").refused()


def test_a_catalogue_in_postgresql_is_checked_by_its_rows(
    folder: Path,
    postgresql: Callable[[], str],
    cairn: Callable[..., Ran],
) -> None:
    address = postgresql()
    with Catalogue.open(folder) as source, Catalogue.open(address, create=True) as target:
        rows = source.read(all_indexed)
        target.write(reserve_numbers, len(rows))
        target.write(commit_segment, source.read(segments_in)[0], rows)
    for name in (CATALOGUE, SEAL, SNAPSHOT):
        (folder / name).unlink()
    with Collection.open(folder, catalogue=address) as collection:
        seal(collection)
    assert read_seal(folder / SEAL).catalogue is None  # type: ignore[union-attr]
    report = check_collection(folder, catalogue=address)
    assert (report.damaged, report.notes) == ((), [])
    assert "--catalogue" in cairn("check", folder).refused()
    with Catalogue.open(address) as catalogue:
        catalogue.write(make_tombstones, [3])
    report = check_collection(folder, catalogue=address)
    assert report.ok and len(report.notes) == 1
    import sqlalchemy as sa

    engine = sa.create_engine(address)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE images SET features = 1 WHERE number = 4"))
    engine.dispose()
    reported = cairn("check", folder, "--catalogue", address, "--json")
    assert reported.code == 1
    assert [one["file"] for one in reported.json["damaged"]] == ["catalogue"]


@pytest.mark.slow
def test_segments_without_a_vocabulary_are_not_sound(folder: Path, cairn: Callable[..., Ran]) -> None:
    shutil.rmtree(folder / "vocabulary")
    for name in (CATALOGUE, SEAL, SNAPSHOT):
        (folder / name).unlink()
    assert damaged(folder) == [CATALOGUE, "vocabulary"]
    assert cairn("repair", folder).code == 1
    assert damaged(folder) == ["vocabulary"]
    assert "retrain" in cairn("check", folder).out
    assert cairn("retrain", folder, "--words", 50, "--workers", 1).code == 0
    assert damaged(folder) == []


@pytest.mark.parametrize("what", ["pipe", "large"])
def test_options_that_never_end_are_not_read(folder: Path, cairn: Callable[..., Ran], what: str) -> None:
    path = folder / "collection.toml"
    sound = path.read_bytes()
    path.unlink()
    if what == "pipe":
        os.mkfifo(path)
    else:
        with path.open("wb") as file:
            file.truncate(1 << 30)
    assert damaged(folder) == ["collection.toml"]
    assert cairn("repair", folder).code == 0
    assert path.read_bytes() == sound
