"""Damaged segments, written again from the photos that they are of."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from index.errors import CairnError
from index.progress import Progress, silent
from index.segments.description import SIGNATURE
from index.text import printable_name
from retrieval.catalogue.changes import PhotoMove, Rewritten, move_photos, replace_segments
from retrieval.catalogue.failures import Failure, keep_failures
from retrieval.catalogue.photos import rows_of
from retrieval.catalogue.schema import ImageRow, SegmentRow
from retrieval.collection.collection import Collection
from retrieval.collection.layout import SEGMENTS, STAGING
from retrieval.collection.segment_writing import quantise, write_photos
from retrieval.collection.segments import open_segment
from retrieval.features.staging import Staged, Staging, stage_all
from retrieval.integrity.find_photos import PhotoFinder
from retrieval.metadata.pages import file_of

STEP = "extract"


@dataclass
class Rewriting:
    """Result of rewriting damaged segments."""

    segments: list[str] = field(default_factory=list)  # folders of rewritten segments
    photos: int = 0  # that were extracted again
    moved: int = 0  # that were found elsewhere
    lost: list[dict[str, str]] = field(default_factory=list)  # name, path and reason


def rewrite_segments(
    collection: Collection,
    rows: Sequence[SegmentRow],
    numbers: Sequence[Sequence[int]],
    photos: Sequence[Path],
    *,
    drop_missing: bool = False,
    workers: int = 1,
    progress: Progress = silent,
) -> Rewriting:
    """Extract the photos of damaged segments again, and replace the segments, one after the other. `numbers`: for each,
    the numbers of its indexed photos, ascending. `drop_missing`: drop photos that cannot be found or read from the
    collection: their failures have the reasons, and indexing them again restores them.
    """
    done = Rewriting()
    finder = PhotoFinder(photos)
    if not collection.extractor.is_ready and not drop_missing:
        raise CairnError(
            "Damaged segments need the features of {numbers} photos again, which come from another program: give them "
            "with {--features}, or remove these photos from the collection with {--drop-missing}.",
            numbers=sum(map(len, numbers)),
        )
    if not drop_missing:
        _refuse_missing(
            [one for some in numbers for one in collection.catalogue.read(rows_of, some) if not finder.find(one)]
        )
    staging = Staging(collection.folder / STAGING, collection.extractor, collection.options.image)
    total, before = sum(map(len, numbers)), 0
    for row, some in zip(rows, numbers, strict=True):

        def tell(count: int, before: int = before) -> None:
            progress(STEP, before + count, total)

        _rewrite(collection, row, some, finder, staging, drop_missing, workers, tell, done)
        before += len(some)
    staging.remove()
    return done


def rewrite_notes(collection: Collection, row: SegmentRow, numbers: Sequence[int]) -> str:
    """Rewrite a segment whose notes alone are damaged, and replace it; return its new name."""
    old = collection.folder / SEGMENTS / row.folder
    readable = open_segment(old, with_notes=False)
    images = readable.some_images(np.arange(readable.images))
    if readable.signatures is not None:
        signatures = readable.signatures_of(np.arange(readable.images))
        images = [
            replace(image, columns=image.columns | {SIGNATURE: some})
            for image, some in zip(images, signatures, strict=True)
        ]
    segment = write_photos(
        collection,
        collection.catalogue.read(rows_of, numbers, indexed=False),
        images,
        vocabulary=row.vocabulary_fingerprint,
        descriptor=row.descriptor_fingerprint,
    )
    collection.catalogue.write(replace_segments, [row.id], [Rewritten(segment, np.array(numbers))])
    shutil.rmtree(old, ignore_errors=True)
    return segment.folder


def _refuse_missing(images: Sequence[ImageRow]) -> None:
    """Refuse to continue without photos that a damaged segment is rebuilt from."""
    if images:
        count = "1 photo" if len(images) == 1 else f"{len(images)} photos"
        raise CairnError(
            "Damaged segments need {count} again that cannot be found as indexed, such as {path}: connect the drive, "
            "name their folder with {--photos}, or remove them from the collection with {--drop-missing}.",
            count=count,
            path=printable_name(images[0].path),
        )


def _rewrite(
    collection: Collection,
    row: SegmentRow,
    numbers: Sequence[int],
    finder: PhotoFinder,
    staging: Staging,
    drop_missing: bool,
    workers: int,
    tell: Callable[[int], None],
    done: Rewriting,
) -> None:
    """Rewrite one segment, as several if it is large."""
    catalogue = collection.catalogue
    images = catalogue.read(rows_of, numbers)
    places = [finder.find(image) for image in images]
    moves, good, lost = [], [], []
    for image, place in zip(images, places, strict=True):
        if place is None:
            lost.append((image, "its segment is damaged, and its file is no longer there, or has changed since"))
            continue
        if str(place) != image.path:
            state = file_of(place).stat()
            moves.append(PhotoMove(image.number, str(place), None, state.st_size, state.st_mtime_ns))
        good.append((image, place))
    new: list[Rewritten] = []
    batch = collection.options.batch
    for start in range(0, len(good), batch):
        some = good[start : start + batch]
        staged: list[Staged] = []
        keys = [staging.key(place, str(image.sha256)) for image, place in some]
        for one in stage_all(staging, [(place, key) for (_, place), key in zip(some, keys, strict=True)], workers):
            others = staging.extractor.reads_files and one.features != some[len(staged)][0].features
            if one.reason is None and others:
                one = replace(one, reason="its features are others than those that were indexed")
            staged.append(one)
            tell(start + len(staged))
        lost += [(image, one.reason) for (image, _), one in zip(some, staged, strict=True) if one.reason]
        kept = [
            (image.number, key, one) for (image, _), key, one in zip(some, keys, staged, strict=True) if not one.reason
        ]
        if kept:
            new.append(_write(collection, staging, kept))
    if not drop_missing:
        _refuse_missing([image for image, _ in lost])  # the drive went off meanwhile
    done.moved += len(moves)
    reasons = [Failure(image.path, reason, image.size, image.mtime_ns, image.sha256) for image, reason in lost]
    with catalogue.writing() as session:  # together: a process that is killed loses no photo without a word
        move_photos(session, moves)
        keep_failures(session, reasons)
        replace_segments(session, [row.id], new, leave_out=[image.number for image, _ in lost])
    shutil.rmtree(collection.folder / SEGMENTS / row.folder, ignore_errors=True)
    # Not earlier: nothing is committed yet, and a repair that is killed or refused resumes from staged files.
    staging.discard(staging.key(place, str(image.sha256)) for image, place in good)
    done.segments.append(row.folder)
    done.photos += len(good)
    done.lost += [{"name": image.name or "", "path": image.path, "reason": reason} for image, reason in lost]


def _write(collection: Collection, staging: Staging, photos: Sequence[tuple[int, str, Staged]]) -> Rewritten:
    written = []
    rows = collection.catalogue.read(rows_of, [number for number, _, _ in photos])
    for _, key, one in photos:
        written.append(quantise(collection, staging.read(key), (one.width, one.height))[0])
    return Rewritten(write_photos(collection, rows, written), np.array([row.number for row in rows]))
