"""Database-side augmentation: photos are also scored by features of linked photos."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.inverted import InvertedIndex
from index.progress import Progress, silent
from index.segments.segment import ImageFeatures
from retrieval.catalogue.photos import rows_of
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.augmentation import (
    Augmentation,
    Loan,
    is_augmented,
    merge_loans,
    open_augmentation,
    remove_augmentation,
    write_loans,
    write_manifest,
)
from retrieval.collection.collection import Collection, CollectionChanged
from retrieval.collection.layout import AUGMENTATION_KEY
from retrieval.collection.locking import lock_links
from retrieval.features.encoding import decode_centres
from retrieval.groups.borrowing import BorrowOptions, Located, borrow
from retrieval.groups.links import Link

STEP = "borrow"
"""What the progress of `augment_photos` calls its one step."""

_RULES = 1  # version of the rules for choosing features: those borrowed by other rules are replaced
_IDLE = 0.25  # part of a segment that may have been replaced before it is written again
_AT_ONCE = 100  # photos whose neighbours are read at a time


@dataclass(frozen=True)
class _Neighbour:
    """A photo that another one is linked with."""

    number: int
    inliers: int
    transform: NDArray[np.float64]  # (3, 3), from it to the other, in units of their longer sides


def augment_photos(
    collection: Collection,
    links: Mapping[tuple[int, int], Link],
    options: BorrowOptions | None = None,
    *,
    progress: Progress = silent,
) -> int:
    """Let photos borrow features from linked photos, in files next to the segments. Returns the number of photos
    updated: those whose neighbours changed since the last run. An interrupted run keeps complete segments.
    """
    options = options or BorrowOptions()
    with lock_links(collection.folder):
        return _Augmenting(collection, links, options).run(progress)


def forget_loans(collection: Collection) -> None:
    """Delete borrowed features; photos have none until `augment_photos` is called again."""
    if is_augmented(collection.folder):
        with lock_links(collection.folder):
            remove_augmentation(collection.folder)
            _tell(collection)


class _Augmenting:
    def __init__(self, collection: Collection, links: Mapping[tuple[int, int], Link], options: BorrowOptions) -> None:
        self._collection = collection
        self._options = options
        self._index: InvertedIndex = collection.index
        self._numbers = self._index.image_numbers
        self._neighbours = _neighbours(links, options)
        self._rules = json.dumps({"rules": _RULES, **asdict(options)})
        self._batch = collection.options.batch

    def run(self, tell: Progress) -> int:
        augmentation = self._kept()
        known = augmentation.sources_of(self._numbers) if augmentation is not None else {}
        wanted = {photo: tuple(one.number for one in several) for photo, several in self._neighbours.items()}
        # A photo that has lost its last neighbour borrows nothing: it is written down so.
        new = sorted({photo for photo in {*wanted, *known} if known.get(photo, ()) != wanted.get(photo, ())})
        segments = list(augmentation.segments) if augmentation is not None else []
        for start in range(0, len(new), self._batch):
            batch = new[start : start + self._batch]
            loans: list[Loan] = []
            for first in range(0, len(batch), _AT_ONCE):
                loans += self._loans(batch[first : first + _AT_ONCE])
                tell(STEP, start + len(loans), len(new))
            segments.append(write_loans(self._collection.folder, self._collection.basis, loans))
            write_manifest(self._collection.folder, self._collection.basis, self._rules, segments)
        if not new and augmentation is None:
            write_manifest(self._collection.folder, self._collection.basis, self._rules, [])
        merged = self._kept()
        if merged is not None:
            merge_loans(self._collection.folder, merged, self._numbers, self._batch, idle=_IDLE)
        if new or augmentation is None:
            _tell(self._collection)
        return len(new)

    def _kept(self) -> Augmentation | None:
        """The existing augmentation, if it can be continued."""
        try:
            augmentation = open_augmentation(self._collection.folder, self._collection.basis)
        except CairnError:  # damaged: all is remade
            return None
        return augmentation if augmentation is not None and augmentation.rules == self._rules else None

    def _loans(self, photos: Sequence[int]) -> list[Loan]:
        several = [self._neighbours.get(photo, []) for photo in photos]
        numbers = sorted({*photos, *(one.number for some in several for one in some)})
        images = dict(zip(numbers, self._index.images.features_of(numbers), strict=True))
        centres = {
            number: decode_centres(image.columns, np.arange(len(image.words))).astype(np.float64)
            for number, image in images.items()
        }
        try:
            rows = self._collection.catalogue.read(rows_of, list(photos))
        except KeyError:
            raise CollectionChanged(
                "Photos were removed from {folder} meanwhile: run {cairn group} again, which goes on.",
                folder=self._collection.folder,
            ) from None
        sizes = {row.number: _size(row.width, row.height) for row in rows}
        chosen = [
            borrow(
                Located(images[photo].words, centres[photo]),
                [Located(images[one.number].words, _moved(centres[one.number], one.transform)) for one in some],
                sizes[photo],
                self._options,
            )
            for photo, some in zip(photos, several, strict=True)
        ]
        signatures = self._signatures(sorted({one.number for some in several for one in some}))
        return [
            _loan(photo, [one.number for one in some], lent, images, signatures)
            for photo, some, lent in zip(photos, several, chosen, strict=True)
        ]

    def _signatures(self, numbers: Sequence[int]) -> dict[int, NDArray[np.uint8]]:
        """Signatures of the features of photos, by number; empty for a collection without signatures."""
        if self._collection.signature is None:
            return {}
        return dict(zip(numbers, self._index.images.signatures_of(numbers), strict=True))


def _loan(
    photo: int,
    sources: Sequence[int],
    rows: Sequence[NDArray[np.int64]],
    images: Mapping[int, ImageFeatures],
    signatures: Mapping[int, NDArray[np.uint8]],
) -> Loan:
    """Combine the features that a photo borrows from each of its sources."""
    words = [images[source].words[some].astype(np.uint32) for source, some in zip(sources, rows, strict=True)]
    signed = [signatures[source][some] for source, some in zip(sources, rows, strict=True) if source in signatures]
    return Loan(
        photo,
        tuple(sources),
        np.concatenate([np.zeros(0, np.uint32), *words]),
        np.concatenate(signed) if signed else None,
    )


def _neighbours(links: Mapping[tuple[int, int], Link], options: BorrowOptions) -> dict[int, list[_Neighbour]]:
    """The photos that each photo borrows from, those with most inliers first, ties by number."""
    neighbours: defaultdict[int, list[_Neighbour]] = defaultdict(list)
    for link in links.values():
        if link.inliers < options.inliers:
            continue
        forward = np.vstack([np.reshape(link.transform, (2, 3)), [0.0, 0.0, 1.0]])
        neighbours[link.found].append(_Neighbour(link.query, link.inliers, forward))
        neighbours[link.query].append(_Neighbour(link.found, link.inliers, np.linalg.inv(forward)))
    return {
        photo: sorted(several, key=lambda one: (-one.inliers, one.number))[: options.neighbours]
        for photo, several in neighbours.items()
    }


def _moved(centres: NDArray[np.float64], transform: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points (n, 2) under an affine map (3, 3)."""
    return np.asarray(centres @ transform[:2, :2].T + transform[:2, 2])


def _size(width: int | None, height: int | None) -> tuple[float, float]:
    """Width and height of a photo in units of its longer side."""
    side = max(width or 1, height or 1)
    return (width or 1) / side, (height or 1) / side


def _tell(collection: Collection) -> None:
    """Notify processes that have the collection open of changed borrowed features, through the catalogue."""
    collection.catalogue.write(keep_setting, AUGMENTATION_KEY, "on" if is_augmented(collection.folder) else "off")
    collection.forget()
