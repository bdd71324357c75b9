"""Repairs of collections: what was damaged is what it was, and searches find the same."""

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from index.errors import CairnError
from index.hamming.kinds import SignatureKind, parse_signature
from index.segments.writing import write_segment
from retrieval.catalogue.changes import PhotoMove, Rewritten, make_tombstones, move_photos, replace_segments
from retrieval.catalogue.exclusions import exclusions_in
from retrieval.catalogue.failures import failures_in, keep_failures
from retrieval.catalogue.metadata_store import import_values, metadata_of, store_metadata
from retrieval.catalogue.photos import all_indexed, rows_of
from retrieval.catalogue.schema import (
    DECIDED,
    AlbumPhotoRow,
    AlbumRow,
    HiddenRow,
    QueryRejectionRow,
    RejectionRow,
    SavedFindRow,
    SavedSearchRow,
)
from retrieval.catalogue.segment_rows import segments_in
from retrieval.catalogue.settings import keep_setting, reserve_numbers
from retrieval.catalogue.sqlite.full_text import WORDS
from retrieval.collection.collection import Collection
from retrieval.collection.layout import OPTIONS, SEAL, SEGMENTS, SIGNATURE_KEY, SNAPSHOT
from retrieval.collection.options import write_options
from retrieval.collection.seal import read_seal, write_seal
from retrieval.collection.sealing import hash_catalogue, seal
from retrieval.collection.segment_notes import write_notes
from retrieval.collection.segments import segment_row
from retrieval.collection.snapshot import read_snapshot, write_snapshot
from retrieval.features.staging import Staged
from retrieval.groups.links import ask_photos
from retrieval.indexing.adding import index_photos
from retrieval.indexing.compaction import compact
from retrieval.integrity import rebuild_catalogue as rebuilding
from retrieval.integrity import rebuild_segments as reextraction
from retrieval.integrity import repair
from retrieval.integrity.check import check_collection
from retrieval.integrity.repair import repair_collection
from retrieval.metadata.fields import Metadata
from tests.conftest import Indexed, Ran
from tests.retrieval.integrity.test_check import add_caches, files_of, flip
from tests.support.hostile import photo
from tests.support.segments_of_format_1 import bring_back_to_format_1

CATALOGUE = "catalogue.sqlite"
FEW = 2  # photos of the second segment, which are extracted again
REMOVED, FAILED = 5, "/photos/broken.jpg"


@pytest.fixture(scope="module")
def sealed(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small collection in two segments, with all that a catalogue may hold; nobody may change it."""
    folder = tmp_path_factory.mktemp("sealed") / "demo.cairn"
    shutil.copytree(indexed.folder, folder)
    with Collection.open(folder) as collection:
        split(collection)
        add_caches(collection)
        catalogue = collection.catalogue
        catalogue.write(
            store_metadata, [(2, Metadata(taken="1931-05", latitude=51.5, longitude=-0.1, tags=("well", "Rome")))]
        )
        catalogue.write(import_values, {3: {"archive no.": ["17"], "title": ["A fountain"]}})
        with catalogue.writing() as session:
            session.add_all(
                [AlbumRow(name="A <b>fountain</b>", cover=2), SavedSearchRow(name="red", query="{}", photo=b"\xff")]
            )
            session.flush()
            session.add_all(AlbumPhotoRow(album=1, number=one, position=at) for at, one in enumerate((3, REMOVED, 2)))
            session.add_all([HiddenRow(number=3, because="a copy"), RejectionRow(one=2, other=3)])
            session.add_all([QueryRejectionRow(sha256="0" * 64, number=3), SavedFindRow(search=1, number=2, seen=True)])
        catalogue.write(make_tombstones, [REMOVED], for_good=True)
        from retrieval.catalogue.failures import Failure

        catalogue.write(keep_failures, [Failure(FAILED, "it is truncated")])
        seal(collection)
    return folder


@pytest.fixture
def folder(sealed: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(sealed, tmp_path / "demo.cairn"))


def split(collection: Collection) -> None:
    """Put two segments in the place of the one, the second of few photos."""
    (old,), rows = collection.segments, collection.catalogue.read(all_indexed)
    signatures = old.signatures_of(np.arange(old.images))
    new = []
    for part in (range(old.images - FEW), range(old.images - FEW, old.images)):
        segment = write_segment(
            collection.folder / SEGMENTS / collection.catalogue.next_folder(collection.folder / SEGMENTS),
            image_numbers=old.image_numbers[list(part)],
            words=[old.image(i).words for i in part],
            columns={name: [old.image(i).columns[name] for i in part] for name in old.columns}
            | {"signature": [signatures[i] for i in part]},
            vocabulary_fingerprint=old.vocabulary_fingerprint,
            descriptor_fingerprint=old.descriptor_fingerprint,
            notes=write_notes([rows[i] for i in part]),
        )
        new.append(Rewritten(segment_row(segment), segment.image_numbers))
    collection.catalogue.write(replace_segments, [collection.catalogue.read(segments_in)[0].id], new)
    shutil.rmtree(old.folder)
    collection.forget()


def decisions(collection: Collection) -> list[list[str]]:
    """What people decided about photos, table by table."""
    with collection.catalogue.reading() as session:
        return [sorted(map(repr, session.scalars(sa.select(kind)))) for kind in DECIDED]


def contents(folder: Path, catalogue: str | None = None) -> dict[str, Any]:
    """All that a collection knows, whatever its segments are called."""
    with Collection.open(folder, catalogue=catalogue) as collection:
        rows = collection.catalogue.read(all_indexed)
        numbers = [row.number for row in rows]
        features = {}
        for number in numbers:
            image = collection.index.images.features(number)
            columns = [image.words, *image.columns.values()]
            if all(segment.signatures is not None for segment in collection.segments):
                columns.append(collection.index.images.signatures(number))
            features[number] = [(column.dtype.str, column.shape, column.tobytes()) for column in columns]
        return {
            "options": collection.options,
            "signature": collection.signature,
            "photos": [
                (row.number, row.path, row.name, row.sha256, row.features, row.quantisation_error, row.title, row.taken)
                for row in rows
            ],
            "added": [row.date_added for row in rows],
            "metadata": collection.catalogue.read(metadata_of, numbers),
            "failures": collection.catalogue.read(failures_in),
            "excluded": collection.catalogue.read(exclusions_in),
            "decided": decisions(collection),
            "features": features,
            "found": list(ask_photos(collection, numbers[:3])),
        }


@pytest.fixture(scope="module")
def before(sealed: Path) -> dict[str, Any]:
    return contents(sealed)


def second_segment(folder: Path) -> Path:
    return max((folder / SEGMENTS).iterdir())


def test_a_sound_collection_stays_as_it_is(folder: Path) -> None:
    kept = {path: path.read_bytes() for path in files_of(folder) if not path.name.endswith("-shm")}
    report = repair_collection(folder)
    assert (report.ok, report.repaired, report.notes) == (True, [], [])
    assert {path: path.read_bytes() for path in kept} == kept


def test_small_files_and_caches_are_restored(folder: Path, before: dict[str, Any], cairn: Callable[..., Ran]) -> None:
    names = ["collection.toml", SEAL, SNAPSHOT, "groups.json"]
    names += [f"vocabulary/{path.name}" for path in (folder / "vocabulary").iterdir()]
    names += [path.relative_to(folder).as_posix() for path in files_of(folder / "cache")]
    for name in names:
        flip(folder / name, 30)
    ran = cairn("repair", folder, "--json", "--workers", 1)
    assert ran.code == 0
    assert {one["file"] for one in ran.json["repaired"]} == set(names)
    assert check_collection(folder).damaged == ()
    (folder / "collection.toml").unlink()
    shutil.rmtree(folder / "vocabulary")
    assert repair_collection(folder).ok
    assert contents(folder) == before


def test_words_that_nobody_said_are_found_and_made_again(folder: Path, before: dict[str, Any]) -> None:
    with Collection.open(folder) as collection:
        with collection.catalogue.writing() as session:
            session.execute(sa.text(f"DELETE FROM {WORDS} WHERE rowid = 1"))
        seal(collection)
    assert [one.file for one in check_collection(folder).damaged] == [WORDS]
    report = repair_collection(folder)
    assert report.ok and [one["file"] for one in report.repaired] == [WORDS]
    assert contents(folder) == before


@pytest.mark.slow
def test_a_large_vocabulary_is_rebuilt_from_its_centres(
    folder: Path, before: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.collection.sealing.LARGEST_COPY", 100)
    (folder / SEAL).unlink()
    with Collection.open(folder) as collection:
        collection.catalogue.write(keep_setting, "cairn.copies", "{}")
        seal(collection)
    (folder / "vocabulary/search.json").unlink()
    assert repair_collection(folder).ok
    assert contents(folder) == before
    flip(folder / "vocabulary/centres.npy", 3000)
    report = repair_collection(folder)
    assert [one.file for one in report.damaged] == ["vocabulary/centres.npy"]
    assert "cairn retrain" in report.damaged[0].remedy
    assert any("cairn retrain" in note for note in report.notes)
    from retrieval.indexing.retraining import retrain

    with Collection.open(folder) as collection:
        retrain(collection)
    assert check_collection(folder).ok


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_a_flipped_byte_in_the_catalogue_costs_nothing(folder: Path, before: dict[str, Any], seed: int) -> None:
    """Whatever the page: what segments note, and what hashes prove, is what it was."""
    rng = np.random.default_rng(seed)
    path = folder / CATALOGUE
    for place in rng.integers(200, path.stat().st_size, 2 if seed else 1):
        flip(path, int(place))
    report = repair_collection(folder)
    assert not report.damaged and not report.lost, report
    assert (folder / f"{CATALOGUE}.damaged-1").is_file()
    now = contents(folder)
    assert now["features"] == before["features"] and now["found"] == before["found"]
    assert [one[:6] for one in now["photos"]] == [one[:6] for one in before["photos"]]


def lose(path: Path, how: str) -> None:
    """Lose a file, in one of several ways."""
    if how == "missing":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    else:
        path.write_bytes(np.random.default_rng(0).bytes(50_000))


HOW = ["missing", pytest.param("empty", marks=pytest.mark.slow), "other"]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("sealed_too", [True, False])
def test_a_lost_catalogue_is_restored(folder: Path, before: dict[str, Any], how: str, sealed_too: bool) -> None:
    lose(folder / CATALOGUE, how)
    if not sealed_too:
        (folder / SEAL).unlink()
    report = repair_collection(folder)
    assert report.ok, report
    assert contents(folder) == before
    report = check_collection(folder)
    assert report.ok and len(report.notes) == (how != "missing")  # the old one was set aside


@pytest.mark.parametrize("how", HOW)
def test_a_lost_catalogue_without_a_snapshot_is_made_from_the_segments(
    folder: Path, before: dict[str, Any], how: str
) -> None:
    lose(folder / CATALOGUE, how)
    lose(folder / SNAPSHOT, how)
    report = repair_collection(folder)
    assert not report.damaged and not report.lost, report
    assert not report.ok and any("no sound snapshot" in sentence for sentence in report.lapses)
    now = contents(folder)
    assert now["options"] == before["options"]
    back = [one for one in now["photos"] if one[0] != REMOVED]  # its tombstone is lost
    assert [one[:6] for one in back] == [one[:6] for one in before["photos"]]
    assert {number: now["features"][number] for number in before["features"]} == before["features"]
    with Collection.open(folder) as collection:
        assert collection.catalogue.write(reserve_numbers, 1) > max(now["features"])
    assert check_collection(folder).ok


@pytest.mark.parametrize("options", ["none", "hamming-64", "frame-64"])
def test_a_new_catalogue_knows_the_signatures_of_the_segments(folder: Path, options: str) -> None:
    """What the options say may be outdated: retraining gives other signatures, which the catalogue tells."""
    with Collection.open(folder) as collection:
        collection.catalogue.write(keep_setting, SIGNATURE_KEY, "hamming-64")
        write_options(folder / OPTIONS, replace(collection.options, signature=options))
        (folder / SEAL).unlink()
        seal(collection)
    for name in (CATALOGUE, SNAPSHOT):
        (folder / name).unlink()
    report = repair_collection(folder)
    assert not report.damaged
    with Collection.open(folder) as collection:
        reported = [note for note in report.notes if "ignatures" in note]
        if options == "none":
            assert collection.signature == SignatureKind("hamming", 64)
            assert reported == ["Signatures of features are taken to be hamming-64: set them again with cairn retrain."]
        else:
            assert collection.signature == parse_signature(options) and not reported


def damage_an_index(folder: Path) -> None:
    """Flip a byte of a page that no table lies in."""
    path = folder / CATALOGUE
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        query = "SELECT rootpage FROM sqlite_schema WHERE name = 'ix_images_path_hash'"
        (page,) = connection.execute(query).fetchone()
    flip(path, page * size - 2)


def as_of_format_4(folder: Path) -> None:
    """As an earlier version left it: without a snapshot."""
    with contextlib.closing(sqlite3.connect(folder / CATALOGUE)) as connection:
        for kind in reversed(DECIDED):
            connection.execute(f"DROP TABLE {kind.__tablename__}")
        for index in ("counted", "missing", "folder", "added"):
            connection.execute(f"DROP INDEX ix_images_{index}")
        for index in ("unnamed", "taken", "place", "camera", "titled"):
            connection.execute(f"DROP INDEX ix_images_{index}")
        for index in ("imported", "value"):
            connection.execute(f"DROP INDEX ix_metadata_{index}")
        connection.execute("CREATE INDEX ix_images_taken ON images (taken)")
        connection.execute("CREATE INDEX ix_metadata_key_value_hash ON metadata (key, value_hash)")
        connection.execute("ALTER TABLE images DROP COLUMN folder")
        connection.execute("ALTER TABLE images DROP COLUMN date_added")
        connection.execute("UPDATE settings SET value = '4' WHERE key = 'cairn.format'")
        connection.execute("UPDATE alembic_version SET version_num = '0004'")
        connection.commit()
        connection.execute("VACUUM")
    kept = read_seal(folder / SEAL)
    assert kept is not None
    digest = hash_catalogue(folder / CATALOGUE)
    write_seal(folder / SEAL, replace(kept, catalogue=digest, snapshot=None))
    (folder / SNAPSHOT).unlink()


@pytest.mark.slow
@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_damaged_catalogue_of_an_earlier_version_loses_nothing(
    folder: Path, before: dict[str, Any], is_sealed: bool, cairn: Callable[..., Ran]
) -> None:
    as_of_format_4(folder)
    damage_an_index(folder)
    if not is_sealed:
        (folder / SEAL).unlink()
    kept = (folder / CATALOGUE).read_bytes()
    assert "cairn repair" in cairn("info", folder).refused()
    assert (folder / CATALOGUE).read_bytes() == kept
    report = repair_collection(folder)
    assert report.ok and not report.lapses, report
    assert {"file": CATALOGUE, "how": "restored from its rows that can be read and the segments"} in report.repaired
    now = contents(folder)
    assert set(now.pop("added")) == {None} and not any(now.pop("decided"))
    assert now == {key: value for key, value in before.items() if key not in ("added", "decided")}
    assert check_collection(folder).ok


@pytest.mark.slow
@pytest.mark.parametrize("command", ["info", "check"])
def test_an_upgraded_catalogue_is_sealed_and_copied(
    folder: Path, before: dict[str, Any], command: str, cairn: Callable[..., Ran]
) -> None:
    as_of_format_4(folder)
    assert cairn(command, folder).code == 0
    report = check_collection(folder)
    assert report.ok and not report.notes, report
    damage_an_index(folder)
    assert repair_collection(folder).repaired[0]["how"] == "restored from its snapshot and the segments"
    assert contents(folder)["metadata"] == before["metadata"]


def test_rows_that_are_not_what_was_written_are_left_out_of_those_that_are_read(
    folder: Path, before: dict[str, Any]
) -> None:
    """There is no snapshot; of the rows of the photos, one says something else than the segment does."""
    with contextlib.closing(sqlite3.connect(folder / CATALOGUE)) as connection:
        connection.execute("UPDATE metadata SET value = 'A mountain' WHERE key = 'title'")
        connection.execute("UPDATE images SET sha256 = 'ab' WHERE number = 3")
        connection.execute("UPDATE images SET path = '/other' WHERE number = 4")
        connection.commit()
    (folder / SNAPSHOT).unlink()
    report = repair_collection(folder)
    assert not report.damaged and any("Not all" in sentence for sentence in report.lapses), report
    now = contents(folder)
    assert [one[:6] for one in now["photos"]] == [one[:6] for one in before["photos"]]
    assert all(now[key] == before[key] for key in ("features", "failures", "excluded", "added", "decided"))
    assert now["metadata"][2] == before["metadata"][2]
    assert now["metadata"][3].others == before["metadata"][3].others and not now["metadata"][3].title
    assert check_collection(folder).ok


@pytest.mark.slow
@pytest.mark.parametrize("is_whole", [True, False])
def test_what_was_written_after_the_snapshot_is_read_from_the_damaged_catalogue(folder: Path, is_whole: bool) -> None:
    old = (folder / SNAPSHOT).read_bytes()
    with Collection.open(folder) as collection:
        collection.catalogue.write(import_values, {1: {"title": ["A well"]}})
        collection.catalogue.write(make_tombstones, [0], for_good=True)
        seal(collection)
    expected = contents(folder)
    (folder / SNAPSHOT).write_bytes(old)
    if is_whole:
        damage_an_index(folder)
    else:
        with contextlib.closing(sqlite3.connect(folder / CATALOGUE)) as connection:
            connection.execute("UPDATE images SET path = '/other' WHERE number = 4")
            connection.commit()
    report = repair_collection(folder)
    assert not report.damaged and report.ok == is_whole, report
    assert contents(folder) == expected
    assert read_snapshot(folder / SNAPSHOT) != int(old[-84:-66])


def test_a_snapshot_of_another_collection_is_not_believed(folder: Path, before: dict[str, Any]) -> None:
    with contextlib.closing(sqlite3.connect(folder / CATALOGUE)) as connection:
        connection.execute("UPDATE settings SET value = ? WHERE key = 'cairn.identity'", ["ab" * 16])
        connection.commit()
    write_snapshot(folder / CATALOGUE, folder / SNAPSHOT)
    lose(folder / CATALOGUE, "other")
    report = repair_collection(folder)
    assert not report.damaged and any("no sound snapshot" in sentence for sentence in report.lapses)
    assert {"file": CATALOGUE, "how": "made again from the segments"} in report.repaired
    (folder / CATALOGUE).unlink()
    assert repair_collection(folder).ok  # by the snapshot of what was made


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
def test_a_lost_snapshot_is_made_again(folder: Path, before: dict[str, Any], how: str) -> None:
    lose(folder / SNAPSHOT, how)
    assert [one.file for one in check_collection(folder).damaged] == [SNAPSHOT]
    assert repair_collection(folder).repaired == [{"file": SNAPSHOT, "how": "the catalogue was copied again"}]
    assert check_collection(folder).ok
    (folder / CATALOGUE).unlink()
    assert repair_collection(folder).ok
    assert contents(folder) == before


@pytest.mark.parametrize("place", [5, 18, pytest.param(29, marks=pytest.mark.slow), 105, None])
def test_a_damaged_first_page_costs_nothing(folder: Path, before: dict[str, Any], place: int | None) -> None:
    path = folder / CATALOGUE
    if place is None:
        path.write_bytes(b"\0" * 4096 + path.read_bytes()[4096:])
    else:
        flip(path, place)
    report = repair_collection(folder)
    assert report.ok and not report.lapses, report
    assert contents(folder) == before


def test_a_value_that_was_changed_behind_its_hash_is_restored(folder: Path, before: dict[str, Any]) -> None:
    with contextlib.closing(sqlite3.connect(folder / CATALOGUE)) as connection:
        connection.execute("UPDATE metadata SET value = 'A mountain' WHERE key = 'title'")
        connection.commit()
    assert repair_collection(folder).ok
    assert contents(folder) == before


def test_a_snapshot_that_holds_damage_is_not_believed(folder: Path, before: dict[str, Any]) -> None:
    """As of an earlier version, which wrote to a catalogue without looking whether it was sound."""
    with contextlib.closing(sqlite3.connect(folder / CATALOGUE)) as connection:
        connection.execute("UPDATE images SET sha256 = 'ab' WHERE number = 3")
        connection.commit()
    write_snapshot(folder / CATALOGUE, folder / SNAPSHOT)
    report = repair_collection(folder)
    assert report.ok and not report.lapses, report
    assert contents(folder) == before  # the segments note what the rows should say


@pytest.mark.slow
def test_what_was_committed_after_the_snapshot_comes_back_from_the_segments(
    folder: Path, before: dict[str, Any], tmp_path: Path
) -> None:
    """A photo is added, one at a path that is known is replaced, and all segments are merged."""
    old = (folder / SNAPSHOT).read_bytes()
    path = tmp_path / "new.png"
    with Collection.open(folder) as collection:
        for view in (0, 1):
            photo("coffee" if view else "chelsea").save(path)
            assert index_photos(collection, [path]).added == 1
        assert [row.name for row in collection.catalogue.read(all_indexed)][-1] == "new.png"
    expected = contents(folder)
    for merged in (False, True):
        if merged:
            with Collection.open(folder) as collection:
                compact(collection)
        (folder / CATALOGUE).unlink()
        (folder / SNAPSHOT).write_bytes(old)
        report = repair_collection(folder)
        assert not report.damaged and not report.lost, report
        assert any("older" in sentence for sentence in report.lapses)
        now = contents(folder)
        assert now["photos"] == expected["photos"] and now["features"] == expected["features"]
        assert now["metadata"] == expected["metadata"] and now["found"] == expected["found"]
        assert now["failures"] == before["failures"] and now["excluded"] == before["excluded"]
        assert check_collection(folder).ok


@pytest.mark.parametrize("has_snapshot", [True, False])
def test_orphans_do_not_come_back(folder: Path, before: dict[str, Any], has_snapshot: bool) -> None:
    """A segment that others were merged into wins over these, whose folders a killed process has left."""
    left = folder.with_name("left")
    shutil.copytree(folder / SEGMENTS, left)
    with Collection.open(folder) as collection:
        compact(collection)
    for path in left.iterdir():
        shutil.copytree(path, folder / SEGMENTS / path.name)
    (folder / CATALOGUE).unlink()
    if not has_snapshot:
        (folder / SNAPSHOT).unlink()
    report = repair_collection(folder)
    assert not report.damaged and not report.lost
    assert contents(folder)["features"] == before["features"]


@pytest.mark.parametrize(
    "how",
    [
        "flipped",
        "signatures",
        pytest.param("missing", marks=pytest.mark.slow),
        pytest.param("catalogue", marks=pytest.mark.slow),
    ],
)
def test_damaged_segments_are_extracted_again(folder: Path, before: dict[str, Any], how: str) -> None:
    segment = second_segment(folder)
    if how == "missing":
        shutil.rmtree(segment)
    else:
        flip(segment / ("posting_signatures.npy" if how == "signatures" else "column_geometry.npy"), 300)
    if how == "catalogue":
        (folder / CATALOGUE).unlink()
        (folder / SNAPSHOT).unlink()
        flip(segment / "word_lists.npy", -1)
    report = repair_collection(folder)
    assert report.ok == (how != "catalogue") and not report.damaged and not report.lost, report
    assert {one["file"] for one in report.repaired} >= {f"{SEGMENTS}/{segment.name}"}
    now = contents(folder)
    if how != "catalogue":
        assert now == before
    assert {number: now["features"][number] for number in before["features"]} == before["features"]
    assert not check_collection(folder).notes or how == "catalogue"


@pytest.mark.parametrize(
    "names",
    [
        ["word_lists"],
        ["offsets"],
        ["offsets", "word_lists"],
        ["image_numbers", "notes"],
        ["posting_starts", "posting_lists"],
        ["meta.json"],
    ],
)
def test_files_of_a_segment_that_follow_from_others_are_restored_without_the_photos(
    folder: Path, names: list[str]
) -> None:
    segment = second_segment(folder)
    paths = [segment / (name if "." in name else f"{name}.npy") for name in names]
    kept = [path.read_bytes() for path in paths]
    for number, path in enumerate(paths):
        if number % 2:
            path.unlink()
        else:
            flip(path, 100)
    report = repair_collection(folder)
    assert report.ok
    assert [path.read_bytes() for path in paths] == kept
    assert {one["file"] for one in report.repaired} == {path.relative_to(folder).as_posix() for path in paths}


@pytest.mark.parametrize(
    "names", [["words"], ["offsets"], ["posting_words", "posting_counts"], ["meta.json"], ["column_shape"], ["notes"]]
)
@pytest.mark.slow
def test_damaged_segments_of_the_first_format_are_mended(folder: Path, names: list[str]) -> None:
    with Collection.open(folder) as collection:
        bring_back_to_format_1(collection)
        seal(collection)
    before = contents(folder)
    for name in names:
        flip(second_segment(folder) / (name if "." in name else f"{name}.npy"), 100)
    assert repair_collection(folder).ok and check_collection(folder).ok
    now = contents(folder)
    if names == ["column_shape"]:  # extracted again, and kept in a newer form
        assert now["photos"] == before["photos"]
    else:
        assert {number: now["features"][number][0] for number in now["features"]} == {
            number: before["features"][number][0] for number in before["features"]
        }


@pytest.mark.slow
@pytest.mark.parametrize("how", ["flipped", "missing"])
def test_damaged_notes_need_no_photos(
    folder: Path, before: dict[str, Any], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The photo whose title was imported, and the one that was removed, are in the segment that is written again."""
    with Collection.open(folder) as collection:
        image = collection.catalogue.read(rows_of, [0])[0]
        # The notes are no longer what the catalogue would write.
        collection.catalogue.write(move_photos, [PhotoMove(0, image.path, "renamed.png", image.size or 0, 1)])
        seal(collection)
    before = contents(folder)
    notes = min((folder / SEGMENTS).iterdir()) / "notes.npy"
    if how == "missing":
        notes.unlink()
    else:
        flip(notes, -3)
    monkeypatch.setattr(reextraction.PhotoFinder, "find", lambda *_: None)
    report = repair_collection(folder)
    assert report.ok, report
    assert [one["file"] for one in report.repaired] == [notes.relative_to(folder).as_posix()]
    assert contents(folder) == before and check_collection(folder).ok


@pytest.mark.slow
def test_a_drive_that_goes_off_meanwhile_loses_no_photo(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(folder)["photos"]
    flip(second_segment(folder) / "column_geometry.npy", 300)
    failed = [Staged(0, 0, 0, "it is gone")] * FEW
    with monkeypatch.context() as patch:
        patch.setattr(reextraction, "stage_all", lambda *_: failed)
        with pytest.raises(CairnError, match="2 photos again"):
            repair_collection(folder)
    assert repair_collection(folder).ok
    assert contents(folder)["photos"] == before


@pytest.mark.parametrize(
    ("name", "place"), [("word_lists", 20), ("posting_starts", -1), ("offsets", 5), ("word_lists", None)]
)
def test_a_search_in_a_damaged_segment_names_the_repair(folder: Path, name: str, place: int | None) -> None:
    path = second_segment(folder) / f"{name}.npy"
    if place is None:
        np.save(path, np.array([{}]), allow_pickle=True)
    else:
        flip(path, place)
    with Collection.open(folder) as collection, pytest.raises(CairnError, match=r"Collection\.check, then cairn rep"):
        list(ask_photos(collection, [0]))


def test_pipes_are_not_waited_for(folder: Path) -> None:
    for name in ("meta.json", "word_lists.npy"):
        (second_segment(folder) / name).unlink()
        os.mkfifo(second_segment(folder) / name)
        assert repair_collection(folder).ok
        assert check_collection(folder).ok


@pytest.mark.slow
def test_all_segments_are_made_again(folder: Path, before: dict[str, Any]) -> None:
    shutil.rmtree(folder / SEGMENTS)
    (folder / SEGMENTS).touch()
    with pytest.raises(CairnError, match="is not a folder: move it away"):
        repair_collection(folder)
    (folder / SEGMENTS).unlink()
    report = repair_collection(folder)
    assert report.ok, report
    assert contents(folder)["features"] == before["features"]


def test_photos_are_looked_for_and_those_that_are_gone_are_told(
    folder: Path, before: dict[str, Any], tmp_path: Path, cairn: Callable[..., Ran]
) -> None:
    """Of the two photos of a damaged segment one has moved, and one has gone."""
    *_, one, other = before["photos"]
    segment = second_segment(folder)
    with contextlib.closing(sqlite3.connect(folder / CATALOGUE)) as connection:
        from retrieval.catalogue.schema import path_hash_of

        for number, path in ((one[0], "/gone/one.png"), (other[0], "/gone/other.png")):
            change = "UPDATE images SET path = ?, path_hash = ? WHERE number = ?"
            connection.execute(change, [path, path_hash_of(path), number])
        connection.execute("UPDATE settings SET value = value + 1 WHERE key LIKE 'cairn.revision%'")
        connection.commit()
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    shutil.copy(one[1], moved / "renamed.png")
    flip(segment / "column_geometry.npy", -1)
    kept = {path: path.read_bytes() for path in files_of(folder) if not path.name.endswith(("-shm", "-wal"))}
    said = cairn("repair", folder, "--photos", moved, "--workers", 1).refused()
    assert "1 photo again" in said and "/gone/other.png" in said and "--drop-missing" in said
    assert {path: path.read_bytes() for path in kept} == kept
    ran = cairn("repair", folder, "--photos", moved, "--drop-missing", "--workers", 1, "--json")
    assert ran.code == 1
    assert [(entry["name"], entry["path"]) for entry in ran.json["lost"]] == [(other[2], "/gone/other.png")]
    assert check_collection(folder).ok
    now = contents(folder)
    assert [photo[0] for photo in now["photos"]] == [photo[0] for photo in before["photos"][:-1]]
    assert now["photos"][-1][1] == str(moved / "renamed.png")
    assert now["features"][one[0]] == before["features"][one[0]]
    assert [failure.path for failure in now["failures"]] == [FAILED, "/gone/other.png"]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (rebuilding, "_exchange"),
        pytest.param(rebuilding, "_bring_up_to_date", marks=pytest.mark.slow),
        pytest.param(repair, "rewrite_segments", marks=pytest.mark.slow),
        pytest.param(repair, "seal", marks=pytest.mark.slow),
    ],
)
def test_a_repair_that_is_killed_is_picked_up(
    folder: Path, before: dict[str, Any], module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip(folder / CATALOGUE, 0)
    flip(second_segment(folder) / "column_geometry.npy", -1)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(module, name, killed)
        repair_collection(folder)
    assert repair_collection(folder).ok
    now = contents(folder)["features"]
    assert {number: now[number] for number in before["features"]} == before["features"]


def test_a_path_that_is_not_there_is_refused(folder: Path, cairn: Callable[..., Ran]) -> None:
    assert "no file or folder" in cairn("repair", folder, "--photos", folder / "none").refused()
    assert "no collection" in cairn("repair", folder / "none").refused()
