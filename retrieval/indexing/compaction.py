"""Compaction: segments are merged, and data of removed photos is deleted from disk."""

import contextlib
import errno
import itertools
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from index.errors import DISK_FULL, CairnError, DatabaseError, LaterVersion, Unreadable
from index.progress import Progress, silent
from index.reports import Report
from index.segments.description import FORMAT, SIGNATURE
from index.segments.segment import ImageFeatures, Segment
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.changes import Rewritten, replace_segments
from retrieval.catalogue.database import primary_code
from retrieval.catalogue.photos import count_indexed, known_contents, rows_of
from retrieval.catalogue.schema import SegmentRow
from retrieval.catalogue.segment_rows import orphans_in, segments_and_tombstones, segments_in
from retrieval.collection.augmentation import empty_augmentation, is_augmented, merge_loans, open_augmentation
from retrieval.collection.collection import Collection
from retrieval.collection.layout import SEGMENTS
from retrieval.collection.locking import CollectionLocked, lock_links
from retrieval.collection.sealing import changed
from retrieval.collection.segment_writing import write_photos
from retrieval.collection.segments import check_sound, is_there, open_segment
from retrieval.collection.stale_files import remove_leftovers, remove_unfinished_work
from retrieval.indexing.describing import compact_global
from retrieval.photos.listing import CACHE
from retrieval.photos.thumbnails import forget_thumbnails
from retrieval.photos.tiles import forget_tiles

STEP = "compact"


@dataclass(frozen=True)
class CompactOptions:
    """How segments are merged."""

    # Most features of a merged segment with more than one photo: it is built in memory, at about 20 bytes a feature
    # without descriptors. Two segments of 20,000 photos are read in two thirds of the time of four of 10,000.
    features: int = 40_000_000
    tier: int = 10  # segments of about one size that are merged when photos are added
    # Most bytes of the files of a segment that is merged when photos are added. Its largest column is built in memory,
    # in addition to the features.
    tier_bytes: int = 512_000_000


@dataclass(frozen=True)
class Compacted(Report):
    """Result of `Collection.compact`."""

    images: Annotated[int, "Photos of the collection."]
    removed: Annotated[int, "Removed photos whose space was freed."]
    segments: Annotated[dict[str, int], "Number of segments, before and after."]
    bytes: Annotated[dict[str, int], "Their size, before and after."]
    thumbnails: Annotated[int, "Thumbnails that were removed."]
    seconds: Annotated[float, "Time."]


def compact(collection: Collection, options: CompactOptions | None = None, progress: Progress = silent) -> Compacted:
    """Merge a collection's segments, without removed photos. Search results stay the same, to the last bit (for
    segments of format 1 only words and scores: their geometry is rounded to coarser steps). Segments are replaced one
    after the other: this needs little disk space, can be interrupted, and searches go on meanwhile. Intermediate files
    of interrupted runs are deleted.
    """
    options = options or CompactOptions()
    start = time.perf_counter()
    with collection.locked(), changed(collection):
        remove_unfinished_work(collection)  # first: the disk may be full
        remove_leftovers(collection)
        collection.forget()
        rows, removed = collection.catalogue.read(segments_and_tombstones)
        segments = {row.folder: segment for row, segment in zip(rows, collection.segments, strict=True)}
        total, done, gone = sum(row.features for row in rows), 0, 0
        for pack in _packs(rows, segments, removed, options.features):
            check_sound(segments[row.folder] for row in pack)
            gone += _merge(collection, pack, [segments[row.folder] for row in pack], removed)
            done += sum(row.features for row in pack)
            progress(STEP, done, total)
        progress(STEP, total, total)
        _compact_augmentation(collection)
        compact_global(collection)
        collection.catalogue.shrink()
        known = collection.catalogue.read(known_contents)
        thumbnails = forget_thumbnails(collection.folder / CACHE, known)
        forget_tiles(collection.folder / CACHE, known)
    after = collection.catalogue.read(segments_in)
    return Compacted(
        images=collection.catalogue.read(count_indexed),
        removed=gone,
        segments={"before": len(rows), "after": len(after)},
        bytes={"before": sum(row.bytes for row in rows), "after": sum(row.bytes for row in after)},
        thumbnails=thumbnails,
        seconds=round(time.perf_counter() - start, 3),
    )


def _compact_augmentation(collection: Collection) -> None:
    """Delete borrowed features that are no longer valid, so that those of removed photos leave the disk.

    Borrowed features that are damaged, or of an earlier vocabulary or a later version, are deleted: they can be made
    again. If another process is finding links, it does this itself.
    """
    if not is_augmented(collection.folder):
        return
    with contextlib.suppress(CollectionLocked), lock_links(collection.folder):
        try:
            augmentation = open_augmentation(collection.folder, collection.basis)
            if augmentation is None:
                empty_augmentation(collection.folder)
            else:
                numbers = collection.catalogue.read(numbers_of)
                merge_loans(collection.folder, augmentation, numbers, collection.options.batch)
        except CollectionLocked:
            raise
        except CairnError:
            empty_augmentation(collection.folder)


class TierMerger:
    """Merges segments of about one size once there are ten, or as many as fit, as log-structured stores do: segments
    stay few, and added photos are rewritten only a few times. As in `compact`, format 1 becomes format 2. Removed
    photos stay, and can be restored, until `compact`. Merging is optional: a tier is left unchanged if a segment is
    damaged, or disk space or memory is short.
    """

    def __init__(self, collection: Collection, options: CompactOptions | None = None) -> None:
        self.notes: list[str] = []
        self._collection = collection
        self._options = options or CompactOptions()
        self._left: set[int] = set()  # tiers to leave unchanged
        self._is_short = False

    def merge(self) -> None:
        """Merge full tiers."""
        while not self._is_short and (full := _full_tier(self._rows(), self._options)):
            tier, rows = full
            try:
                segments = self._sound_segments(rows)
                if segments:
                    _merge(self._collection, rows, segments, frozenset())
                else:
                    self._left.add(tier)
            except (OSError, MemoryError, DatabaseError) as error:
                if not (shortage := _shortage(error)):
                    raise
                self._is_short = True
                self.notes.append(f"{shortage} to merge segments: cairn index tries again when it adds photos.")

    def _rows(self) -> list[SegmentRow]:
        """Segments of the tiers that may be merged."""
        return [row for row in self._collection.catalogue.read(segments_in) if _tier_of(row) not in self._left]

    def _sound_segments(self, rows: Sequence[SegmentRow]) -> list[Segment]:
        """The segments of some rows; empty if one of them is damaged."""
        vocabulary, descriptor = self._collection.vocabulary.fingerprint, self._collection.extractor.fingerprint
        segments = []
        for row in rows:
            folder = self._collection.folder / SEGMENTS / row.folder
            try:
                segment = open_segment(folder, vocabulary_fingerprint=vocabulary, descriptor_fingerprint=descriptor)
                is_sound = is_there(self._collection.folder, row) and not segment.verify()
            except (Unreadable, LaterVersion) as error:
                self.notes.append(str(error))
                return []
            except CairnError:
                is_sound = False
            if not is_sound:
                self.notes.append(f"{folder} is damaged, and is merged with no other: run cairn check.")
                return []
            segments.append(segment)
        return segments


def _shortage(error: Exception) -> str:
    """The resource that an error reports as short, or an empty string."""
    code = primary_code(getattr(error.__cause__, "orig", None) or error.__cause__)
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return "There is not enough memory"
    if code == sqlite3.SQLITE_FULL or (isinstance(error, OSError) and error.errno in DISK_FULL):
        return "There is not enough room on the disk"
    return ""


def _tier_of(row: SegmentRow) -> int:
    """Segments of one tier have numbers of features with as many digits."""
    return len(str(row.features))


def _full_tier(rows: Sequence[SegmentRow], options: CompactOptions) -> tuple[int, list[SegmentRow]] | None:
    """The first full tier, and its first segments, as many as fit into one."""
    tiers: dict[int, list[SegmentRow]] = {}
    for row in rows:
        if row.features <= options.features // 2 and row.bytes <= options.tier_bytes // 2:
            tiers.setdefault(_tier_of(row), []).append(row)
    for number, tier in sorted(tiers.items()):
        features = itertools.accumulate(row.features for row in tier)
        sizes = itertools.accumulate(row.bytes for row in tier)
        fitting = [
            row
            for row, all_features, size in zip(tier, features, sizes, strict=True)
            if all_features <= options.features and size <= options.tier_bytes
        ]
        if len(tier) >= options.tier or len(fitting) < len(tier):
            return number, fitting
    return None


def _packs(
    rows: list[SegmentRow], segments: dict[str, Segment], removed: frozenset[int], most: int
) -> Iterator[list[SegmentRow]]:
    """Groups of segments to merge, by their image numbers, without single segments that would not change."""
    numbers = np.fromiter(removed, np.int64, len(removed))
    gone = {folder: np.isin(segment.image_numbers, numbers) for folder, segment in segments.items()}
    pack: list[SegmentRow] = []
    features = 0

    def is_worthwhile() -> bool:
        return len(pack) > 1 or any(gone[row.folder].any() or segments[row.folder].format < FORMAT for row in pack)

    for row in sorted(rows, key=lambda row: int(segments[row.folder].image_numbers[0])):
        # Only remaining features count, so that a second compaction finds nothing to do.
        staying = int(np.diff(segments[row.folder].offsets.astype(np.int64))[~gone[row.folder]].sum())
        if pack and features + staying > most:
            if is_worthwhile():
                yield pack
            pack, features = [], 0
        pack.append(row)
        features += staying
    if is_worthwhile():
        yield pack


def _merge(collection: Collection, rows: list[SegmentRow], segments: list[Segment], removed: frozenset[int]) -> int:
    """Replace several sound segments by one; return the number of deleted tombstones."""
    places = [
        (int(number), segment, position)
        for segment in segments
        for position, number in enumerate(segment.image_numbers)
        if int(number) not in removed
    ]
    places.sort(key=lambda place: place[0])
    new = []
    if places:
        numbers = [number for number, _, _ in places]
        signatures = _signatures(segments, places)
        images = [_image(*place, signatures) for place in places]
        merged = write_photos(collection, collection.catalogue.read(rows_of, numbers, indexed=False), images)
        new.append(Rewritten(merged, np.array(numbers)))
    try:
        dropped = collection.catalogue.write(replace_segments, [row.id for row in rows], new)
    except Exception:
        with contextlib.suppress(CairnError, OSError):
            _remove_unnamed(collection, [one.row.folder for one in new])
        raise
    # A process that has them open keeps its mapped files; one that opens them now reads the catalogue again.
    for segment in segments:
        shutil.rmtree(segment.folder, ignore_errors=True)
    return len(dropped)


def _remove_unnamed(collection: Collection, folders: Sequence[str]) -> None:
    """Delete new segments that were not committed to the catalogue: they may have filled the disk."""
    for orphan in collection.catalogue.read(orphans_in, collection.folder / SEGMENTS):
        if orphan.name in folders:
            shutil.rmtree(orphan, ignore_errors=True)


def _signatures(segments: list[Segment], places: list[tuple[int, Segment, int]]) -> dict[int, NDArray[np.uint8]]:
    """The signatures of the features of images, by number; empty if a segment has none, or another kind."""
    signatures: dict[int, NDArray[np.uint8]] = {}
    lengths = {segment.signatures.shape[1] if segment.signatures is not None else 0 for segment in segments}
    if len(lengths) == 1 and 0 not in lengths:
        for segment in segments:
            of_segment = [(number, position) for number, other, position in places if other is segment]
            positions = np.array([position for _, position in of_segment], np.int64)
            rows = segment.signatures_of(positions)
            signatures.update((number, some) for (number, _), some in zip(of_segment, rows, strict=True))
    return signatures


def _image(number: int, segment: Segment, position: int, signatures: dict[int, NDArray[np.uint8]]) -> ImageFeatures:
    """The features of an image, with words of half the usual width to save memory."""
    image = segment.image(position)
    columns = image.columns | ({SIGNATURE: signatures[number]} if number in signatures else {})
    return replace(image, words=image.words.astype(np.uint32), columns=columns)
