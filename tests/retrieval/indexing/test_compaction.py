"""Compaction: less on the disk, and the same answers before, during and after it."""

import errno
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy.exc import OperationalError

import index.segments.writing
import retrieval.catalogue.catalogue
import retrieval.indexing.compaction
from index.errors import CairnError, DatabaseError
from index.segments.description import verify_segment
from index.segments.segment import Segment
from retrieval.catalogue.metadata_store import import_values, metadata_of
from retrieval.catalogue.photos import all_indexed, counts_of_photos, numbers_of_names, rows_of
from retrieval.catalogue.segment_rows import segments_in, tombstones_in
from retrieval.collection.layout import OPTIONS, SEAL
from retrieval.collection.locking import CollectionLocked
from retrieval.collection.options import CollectionOptions, write_options
from retrieval.collection.sealing import seal
from retrieval.collection.segment_notes import read_notes, write_notes
from retrieval.collection.segment_writing import write_photos
from retrieval.indexing.adding import index_photos
from retrieval.indexing.compaction import CompactOptions, TierMerger, compact
from retrieval.indexing.removal import remove_photos
from retrieval.indexing.retrain_options import RetrainOptions
from retrieval.indexing.retraining import retrain
from retrieval.integrity.check import check_collection
from retrieval.photos.thumbnails import thumbnail_file
from retrieval.search.options import SearchOptions
from tests.conftest import Ran
from tests.support.segments_of_format_1 import bring_back_to_format_1
from tests.support.written_photos import Album, features_of, rankings

PHOTOS = {f"p{i:02}": i for i in range(12)}


@pytest.fixture
def album(album_in_one_place: Album) -> Album:
    return album_in_one_place


@pytest.fixture
def filled(album: Album) -> Album:
    """Twelve photos in four segments, two of them removed."""
    album.once("filled", _fill)
    return album


def _fill(album: Album) -> None:
    album.put(**PHOTOS)
    assert album.index().added == 12
    with album.open() as collection:
        remove_photos(collection, ["p01.jpg", "p06.jpg"])


def test_segments_become_one_and_what_was_removed_leaves_the_disk(filled: Album) -> None:
    before = filled.answers()
    with filled.open() as collection:
        keys = {row.name: str(row.sha256) for row in collection.catalogue.read(rows_of, range(12), indexed=False)}
        keys["p01.jpg"] = str(collection.catalogue.read(rows_of, [1], indexed=False)[0].sha256)
        for key in (keys["p00.jpg"], keys["p01.jpg"]):
            for size in (128, 512):
                file = thumbnail_file(key, size, filled.place / "cache")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(b"\xff\xd8\xff\xff\xd9")
        steps: list[tuple[str, int, int]] = []
        report = compact(collection, progress=lambda *reported: steps.append(reported))
        (row,) = collection.catalogue.read(segments_in)
        (segment,) = collection.segments
        assert report.segments == {"before": 4, "after": 1} and report.removed == 2 and report.thumbnails == 2
        sizes = [file.stat().st_size for file in segment.folder.glob("*.npy")]
        assert report.bytes["after"] == row.bytes == sum(sizes) < report.bytes["before"]
        assert steps[-1][1] == steps[-1][2]
        assert segment.images == row.images == 10
        assert collection.catalogue.read(tombstones_in) == frozenset()
        assert collection.catalogue.read(counts_of_photos) == {
            "indexed": 10,
            "failed": 0,
            "removed": 0,
            "features": segment.features,
        }
        assert [path.name for path in (filled.place / "segments").iterdir()] == [row.folder]
        kept = sorted(path.name for path in (filled.place / "cache").rglob("*.jpg"))
        assert kept == [f"{keys['p00.jpg']}-{size}.jpg" for size in (128, 512)]
        # Nothing is left to do, and nothing is done.
        again = compact(collection)
        assert (
            again.segments == {"before": 1, "after": 1}
            and again.bytes["before"] == again.bytes["after"]
            and again.removed == 0
        )
        assert collection.catalogue.read(segments_in) == [row]
    assert filled.answers() == before
    # What follows goes into a segment of its own, whose folder's name was never another one's.
    filled.put(p01=1)
    filled.index()
    assert len(filled.held()) == 12
    with filled.open() as collection:
        assert collection.catalogue.read(segments_in)[-1].folder > row.folder


def test_notes_and_metadata_stay_with_the_photos(filled: Album) -> None:
    with filled.open() as collection:
        (number,) = collection.catalogue.read(numbers_of_names, ["p04.jpg"]).values()
        collection.catalogue.write(import_values, {number: {"place": ["Ghent"]}})
    (filled.photos / "p03.jpg").rename(filled.photos / "moved.jpg")
    filled.index()
    with filled.open() as collection:
        compact(collection)
        (segment,) = collection.segments
        rows = collection.catalogue.read(all_indexed)
        assert segment.notes == write_notes(rows)
        assert [(row.name, row.number) for row in read_notes(segment.notes)] == [(row.name, row.number) for row in rows]
        assert "moved.jpg" in {row.name for row in rows}
        assert [row.position for row in rows] == list(range(12))
        assert collection.catalogue.read(metadata_of, [number])[number].others == {"place": ("Ghent",)}


@pytest.mark.slow
@pytest.mark.parametrize("which", [None, [1, 3]], ids=["all", "some"])
def test_segments_of_the_first_format_are_searched_and_brought_up_to_date(
    filled: Album, which: list[int] | None
) -> None:
    before = filled.answers()
    with filled.open() as collection:
        bring_back_to_format_1(collection, which)
        forms = [segment.format for segment in collection.segments]
        assert forms == [1, 1, 1, 1] if which is None else sorted(forms) == [1, 1, 2, 2]
    assert filled.answers() == before
    filled.put(p12=12)
    assert filled.index("p12.jpg").added == 1
    with filled.open() as collection:
        # None is merged with another: each is written again all the same.
        compact(collection, CompactOptions(features=1))
        assert {segment.format for segment in collection.segments} == {2}
        assert {tuple(segment.columns) for segment in collection.segments} == {("geometry",)}
        remove_photos(collection, ["p12.jpg"])
        assert compact(collection).segments["after"] == 1
    assert filled.answers() == before


@pytest.mark.parametrize("features", [1, 50, 130, 10**6])
def test_segments_grow_to_a_size_and_no_further(filled: Album, features: int) -> None:
    before = filled.answers()
    with filled.open() as collection:
        whole = [row.features for row in collection.catalogue.read(segments_in)]
        compact(collection, CompactOptions(features=features))
        rows = collection.catalogue.read(segments_in)
        assert all(row.features <= max(features, *whole) for row in rows)
        assert len(rows) == {1: 4, 10**6: 1}.get(features, len(rows))
        assert collection.catalogue.read(tombstones_in) == frozenset()
        numbers = np.concatenate([segment.image_numbers for segment in collection.segments])
        assert sorted(numbers.tolist()) == [0, 2, 3, 4, 5, 7, 8, 9, 10, 11]
    assert filled.answers() == before


def grow(album: Album, count: int) -> None:
    """Add photos one by one, each as a segment, which the writer merges."""
    album.once(f"grown-{count}", partial(_grow, count))


def _grow(count: int, album: Album) -> None:
    photos = {f"g{i:02}": 4 + i % 20 for i in range(count)}
    album.put(**photos)
    for name in photos:
        assert album.index(f"{name}.jpg").added == 1


def test_a_collection_that_grows_has_few_segments(album: Album) -> None:
    grow(album, 13)
    with album.open() as collection:
        sizes = [(row.images, len(str(row.features))) for row in collection.catalogue.read(segments_in)]
        assert sum(images for images, _ in sizes) == 13 and len(sizes) < 13
        # No ten of a size are left.
        assert max(Counter(digits for _, digits in sizes).values()) < CompactOptions().tier
    one_by_one = album.answers()
    with album.open() as collection:
        compact(collection)
        assert len(collection.catalogue.read(segments_in)) == 1
    assert album.answers() == one_by_one


def test_what_was_removed_stays_and_comes_back_with_its_metadata_when_segments_merge(album: Album) -> None:
    grow(album, 5)
    with album.open() as collection:
        (number,) = collection.catalogue.read(numbers_of_names, ["g01.jpg"]).values()
        collection.catalogue.write(import_values, {number: {"place": ["Ghent"]}})
        remove_photos(collection, ["g01.jpg"])
        with collection.locked():
            TierMerger(collection, CompactOptions(tier=2)).merge()
        (segment,) = collection.segments
        assert number in segment.image_numbers and collection.catalogue.read(tombstones_in) == {number}
    assert album.index("g01.jpg").added == 1
    with album.open() as collection:
        now = album.held()["g01.jpg"]
        assert collection.catalogue.read(metadata_of, [now])[now].others == {"place": ("Ghent",)}


def test_a_tier_that_is_too_large_stays(album: Album) -> None:
    grow(album, 4)
    with album.open() as collection, collection.locked():
        rows = collection.catalogue.read(segments_in)
        TierMerger(collection, CompactOptions(tier=2, features=min(row.features for row in rows))).merge()
        assert collection.catalogue.read(segments_in) == rows
        TierMerger(collection, CompactOptions(tier=2)).merge()
        assert len(collection.catalogue.read(segments_in)) == 1


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def flip(file: Path) -> None:
    contents = file.read_bytes()
    file.write_bytes(contents[:-1] + bytes([contents[-1] ^ 1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("column_geometry.npy", flip),
        ("column_geometry.npy", cut),
        ("column_geometry.npy", Path.unlink),
        ("meta.json", cut),
        ("meta.json", Path.unlink),
    ],
)
def test_where_a_segment_is_damaged_photos_are_added_and_its_tier_stays(
    album: Album, monkeypatch: pytest.MonkeyPatch, name: str, damage: Callable[[Path], None]
) -> None:
    grow(album, 9)
    with album.open() as collection:
        rows = collection.catalogue.read(segments_in)
        assert len(rows) == 9
        folder = collection.folder / "segments" / rows[2].folder
    whole = album.folder / "whole"
    shutil.copytree(folder, whole)
    damage(folder / name)
    verified: list[Path] = []

    def verify(segment: Segment) -> list[str]:
        verified.append(segment.folder)
        return verify_segment(segment.folder)

    monkeypatch.setattr(Segment, "verify", verify)
    album.put(**{f"h{i:02}": 4 + i for i in range(12)})
    report = album.index()  # in four batches: the tier is looked at once
    assert report.added == 12
    assert report.notes == [f"{folder} is damaged, and is merged with no other: run cairn check."]
    assert len(verified) == len(set(verified))
    with album.open() as collection:
        assert collection.catalogue.read(segments_in)[:9] == rows
        assert sum(row.images for row in collection.catalogue.read(segments_in)) == 21
    shutil.rmtree(folder)
    whole.rename(folder)
    album.put(last=4)
    assert album.index("last.jpg").notes == []
    with album.open() as collection:
        assert len(collection.catalogue.read(segments_in)) < 9
        assert check_collection(collection.folder).ok
    assert len(album.held()) == 22


@pytest.mark.parametrize(
    ("thing", "known"),
    [("vocabulary", True), ("descriptor", True), ("notes", True), ("vocabulary", False), ("descriptor", False)],
)
def test_a_segment_that_is_sound_but_not_of_the_collection_is_not_merged(album: Album, thing: str, known: bool) -> None:
    """What is written again has the collection's own vocabulary and descriptor in its description."""
    grow(album, 4)
    with album.open() as collection, collection.locked():
        segment, other = collection.segments[1], album.place / "other"
        photos = collection.catalogue.read(rows_of, segment.image_numbers.tolist(), indexed=False)
        if thing == "notes":
            photos[0].width = 7
        made_with = {thing: "e" * 64} if thing != "notes" else {}
        write_photos(collection, photos, [segment.image(0)], folder=other, **made_with)
        shutil.rmtree(segment.folder)
        other.rename(segment.folder)
        assert segment.verify() == []
        if not known:  # as of an earlier version
            with sqlite3.connect(album.place / "catalogue.sqlite") as connection:
                connection.execute("UPDATE segments SET sha256 = NULL")
        before = collection.catalogue.read(segments_in)
        merger = TierMerger(collection, CompactOptions(tier=2))
        merger.merge()
        assert merger.notes == [f"{segment.folder} is damaged, and is merged with no other: run cairn check."]
        assert collection.catalogue.read(segments_in) == before


@pytest.mark.slow
def test_index_tells_of_damage_on_standard_error(album: Album, cairn: Callable[..., Ran]) -> None:
    grow(album, 10)
    with album.open() as collection:
        flip(collection.segments[0].folder / "column_geometry.npy")
    album.put(last=4)
    ran = cairn("index", album.place, album.photos, "--json")
    assert ran.code == 0 and ran.json["added"] == 1
    assert "is damaged, and is merged with no other: run cairn check." in ran.err


def test_a_tier_that_does_not_fit_one_segment_is_merged_before_it_has_ten(album: Album) -> None:
    grow(album, 6)
    with album.open() as collection, collection.locked():
        rows = collection.catalogue.read(segments_in)
        most = sum(row.features for row in rows[:5])
        TierMerger(collection, CompactOptions(features=most)).merge()
        after = collection.catalogue.read(segments_in)
        assert 1 < len(after) < 6 and all(row.features <= most for row in after)
        TierMerger(collection, CompactOptions(features=most)).merge()
        assert collection.catalogue.read(segments_in) == after


def test_a_tier_of_large_files_is_merged_up_to_a_size(album: Album) -> None:
    grow(album, 6)
    with album.open() as collection, collection.locked():
        rows = collection.catalogue.read(segments_in)
        TierMerger(collection, CompactOptions(tier=2, tier_bytes=2 * min(row.bytes for row in rows) - 1)).merge()
        assert collection.catalogue.read(segments_in) == rows
        most = sum(row.bytes for row in rows[:5])
        TierMerger(collection, CompactOptions(tier_bytes=most)).merge()
        after = collection.catalogue.read(segments_in)
        assert [row.images for row in after] == [1, 5] and all(row.bytes <= most for row in after)
    with album.open() as collection:
        compact(collection, CompactOptions(tier_bytes=1))
        assert len(collection.catalogue.read(segments_in)) == 1  # that limit is not for who asks for it


def no_room(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def no_memory(*_: object, **__: object) -> None:
    raise MemoryError


def full_database(*_: object, **__: object) -> None:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    raise DatabaseError("The catalogue cannot be used.") from OperationalError(None, None, error)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "name", "fail", "of"),
    [
        (retrieval.indexing.compaction, "write_photos", no_room, "room on the disk"),
        (index.segments.writing, "publish_folder", no_room, "room on the disk"),
        (index.segments.writing, "coded_lists", no_memory, "memory"),
        (retrieval.indexing.compaction, "replace_segments", full_database, "room on the disk"),
    ],
)
def test_where_disk_or_memory_is_short_photos_are_added_and_merging_waits(
    album: Album, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, fail: Callable[..., None], of: str
) -> None:
    grow(album, 9)
    for photo in range(12):
        album.put(**{f"h{photo:02}": 4 + photo})
    merges = []

    def short(*arguments: Any) -> int:
        merges.append(arguments)
        with monkeypatch.context() as patch:
            patch.setattr(place, name, fail)
            return merge(*arguments)

    merge = retrieval.indexing.compaction._merge
    with monkeypatch.context() as patch:
        patch.setattr(retrieval.indexing.compaction, "_merge", short)
        report = album.index()
    assert report.added == 12 and len(merges) == 1
    assert report.notes == [f"There is not enough {of} to merge segments: cairn index tries again when it adds photos."]
    with album.open() as collection:
        rows = collection.catalogue.read(segments_in)
        assert len(rows) == 13
        assert {path.name for path in (album.place / "segments").iterdir()} == {row.folder for row in rows}
        assert check_collection(collection.folder).ok
    album.put(last=4)
    assert album.index("last.jpg").notes == []
    with album.open() as collection:
        assert len(collection.catalogue.read(segments_in)) < 10


def test_what_else_goes_wrong_while_segments_are_merged_is_not_hidden(
    album: Album, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(album, 2)

    def broken(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(retrieval.indexing.compaction, "write_photos", broken)
    with album.open() as collection, collection.locked(), pytest.raises(OSError, match="Input/output"):
        TierMerger(collection, CompactOptions(tier=2)).merge()


def test_merging_that_is_stopped_has_done_no_harm(album: Album, monkeypatch: pytest.MonkeyPatch) -> None:
    grow(album, 4)
    before = album.answers()

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for module, name in ((retrieval.indexing.compaction, "replace_segments"), (shutil, "rmtree")):
        with monkeypatch.context() as patch, album.open() as collection, collection.locked():
            patch.setattr(module, name, stopped)
            with pytest.raises(KeyboardInterrupt):
                TierMerger(collection, CompactOptions(tier=2)).merge()
        assert album.answers() == before
    album.put(last=2)
    assert album.index("last.jpg").added == 1
    with album.open() as collection:
        folders = {path.name for path in (album.place / "segments").iterdir()}
        assert folders == {row.folder for row in collection.catalogue.read(segments_in)}


def test_all_photos_may_have_been_removed(filled: Album) -> None:
    with filled.open() as collection:
        remove_photos(collection, sorted(filled.held()))
        assert compact(collection).segments == {"before": 4, "after": 0}
        assert list((filled.place / "segments").iterdir()) == []
        assert rankings(collection, [0], SearchOptions()) == [[]]
    assert filled.index().added == 12
    assert filled.answers() == filled.fresh(**PHOTOS).answers()


def test_a_damaged_segment_is_not_written_again_as_if_it_was_sound(filled: Album) -> None:
    with filled.open() as collection:
        rows = collection.catalogue.read(segments_in)
        file = collection.segments[2].folder / "column_geometry.npy"
        contents = bytearray(file.read_bytes())
        contents[-1] ^= 1
        file.write_bytes(contents)
        with pytest.raises(CairnError, match=r"column_geometry.npy is damaged: run Collection.check"):
            compact(collection)
        assert collection.catalogue.read(segments_in) == rows
        assert {path.name for path in (filled.place / "segments").iterdir()} == {row.folder for row in rows}
        # Those that are sound are merged all the same where they are another part.
        contents[-1] ^= 1
        file.write_bytes(contents)
        assert compact(collection).segments == {"before": 4, "after": 1}


def test_what_is_removed_meanwhile_stays_removed(filled: Album, monkeypatch: pytest.MonkeyPatch) -> None:
    def remove_and_write(*arguments: Any, **more: Any) -> Any:
        with filled.open() as other:
            remove_photos(other, ["p03.jpg"])
        return write_photos(*arguments, **more)

    with filled.open() as collection:
        with monkeypatch.context() as patch:
            patch.setattr(retrieval.indexing.compaction, "write_photos", remove_and_write)
            report = compact(collection)
        assert report.removed == 2
        assert collection.catalogue.read(tombstones_in) == {3}
        assert collection.segments[0].images == 10  # it is a tombstone in the new segment
    there = {name: number for name, number in PHOTOS.items() if name not in ("p01", "p03", "p06")}
    assert filled.answers() == filled.fresh(**there).answers()
    with filled.open() as collection:
        assert compact(collection).removed == 1
        assert collection.segments[0].images == 9
    assert filled.answers() == filled.fresh(**there).answers()


def test_who_has_the_collection_open_goes_on_with_what_was(filled: Album) -> None:
    before = filled.answers(0, 1, 2)
    with filled.open() as reader, filled.open() as writer:
        _ = reader.index
        compact(writer)
        assert rankings(reader, (0, 1, 2), SearchOptions()) == before
        reader.forget()
        assert rankings(reader, (0, 1, 2), SearchOptions()) == before
        assert len(reader.segments) == 1


def test_of_two_that_change_a_collection_the_second_says_so(filled: Album, cairn: Callable[..., Ran]) -> None:
    with filled.open() as collection, filled.open() as other, other.locked():
        with pytest.raises(CollectionLocked, match="Another cairn command is changing"):
            compact(collection)
        with pytest.raises(CollectionLocked):
            index_photos(collection, [filled.photos])
        for command in ("compact", "retrain"):
            assert cairn(command, filled.place).refused().startswith("Another cairn command is changing")
        assert cairn("index", filled.place, filled.photos).refused().startswith("Another cairn command is changing")
    assert cairn("compact", filled.place, "--json").code == 0


def test_the_command_tells_what_it_did(filled: Album, cairn: Callable[..., Ran]) -> None:
    report = cairn("compact", filled.place, "--json").json
    assert report["segments"] == {"before": 4, "after": 1}
    assert (report["images"], report["removed"], report["thumbnails"]) == (10, 2, 0)
    assert report["bytes"]["after"] < report["bytes"]["before"]
    ran = cairn("compact", filled.place)
    assert (ran.code, ran.out) == (0, f"{filled.place}: there is nothing to compact.\n")


@pytest.mark.slow
@pytest.mark.parametrize("signature", ["hamming-32", "frame-64"])
def test_signatures_stay_with_their_features(album: Album, signature: str) -> None:
    """When segments are merged as photos are added, and when what was removed leaves the disk."""
    album = replace(album, options=CollectionOptions(batch=1, signature=signature))
    album.put(**PHOTOS)
    assert album.index().added == 12
    wanted = [SearchOptions(engine=name, turns=1) for name in ("signatures", "signatures-sp")]
    with album.open() as collection:
        assert 1 < len(collection.segments) < 12
        remove_photos(collection, ["p01.jpg", "p06.jpg"])
        collection.forget()
        numbers = collection.index.image_numbers.tolist()
        before = {number: collection.index.images.signatures(number).tolist() for number in numbers}
        answers = [rankings(collection, (0, 1, 2, 29), options) for options in wanted]
        compact(collection)
        (segment,) = collection.segments
        assert segment.signatures is not None
        assert {number: collection.index.images.signatures(number).tolist() for number in numbers} == before
        assert [rankings(collection, (0, 1, 2, 29), options) for options in wanted] == answers
        with pytest.raises(KeyError):
            collection.index.images.signatures(1)
        source = collection.signatures
        assert source is not None
        for number in numbers:
            rows = features_of(number).descriptors
            words = collection.vocabulary.assign(rows.astype(np.float32))
            assert before[number] == source.encode(rows, words)[np.argsort(words, kind="stable")].tolist()
    assert check_collection(album.place).ok


@pytest.mark.slow
@pytest.mark.parametrize("other", ["none", "hamming-32"])
def test_where_some_segments_have_other_signatures_or_none_a_sentence_says_so(
    album: Album, other: str, cairn: Callable[..., Ran]
) -> None:
    """As where one was written by an earlier version: words are searched, and retraining gives signatures to all."""
    album = replace(album, options=replace(album.options, signature="hamming-64"))
    album.put(a=0, b=1, c=2)
    album.index()
    with album.open() as collection:
        write_options(album.place / OPTIONS, replace(collection.options, signature=other))
    album.put(d=3)
    album.index()
    with album.open() as collection:
        write_options(album.place / OPTIONS, replace(collection.options, signature="hamming-64"))
        (album.place / SEAL).unlink()
        seal(collection)
        assert len(collection.segments) == 2
    words = {"none": "has no signatures", "hamming-32": "another length"}[other]
    with album.open() as collection:
        for name in ("signatures", "signatures-sp"):
            with pytest.raises(CairnError, match=rf"{words}: run Collection.retrain"):
                rankings(collection, (0,), SearchOptions(engine=name, turns=1))
        assert rankings(collection, (0,), SearchOptions(engine="tf-idf-sp", turns=1))[0][0][0] == "a.jpg"
        compact(collection)  # signatures that cannot be put together are left out
        assert [segment.signatures for segment in collection.segments] == [None]
    refused = cairn("query", album.place, "a.jpg", "--engine", "signatures", "--turns", 1, "--json").refused()
    assert "has no signatures: run cairn retrain --signature" in refused
    with album.open() as collection:
        retrain(collection, RetrainOptions(words=30))
        found = rankings(collection, (0,), SearchOptions(engine="signatures", turns=1))
    assert found[0][0][0] == "a.jpg"
