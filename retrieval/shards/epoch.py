"""An epoch: the content of a collection at one moment, divided into shards, with global data that each shard needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint
from index.cluster.storage import Storage, is_same_folder, open_storage, send_new
from index.errors import CairnError
from index.hamming.kinds import SignatureKind
from index.inverted import InvertedIndex
from index.segments.description import META
from index.segments.segment import Segment
from index.word_weights import Whole
from retrieval.collection.collection import Collection
from retrieval.collection.layout import AUGMENTATION, SEGMENTS
from retrieval.collection.options import CollectionOptions
from retrieval.shards.storage_place import storage_place

Borrowers = tuple[tuple[str, NDArray[np.bool_]], ...]
"""Segments of what photos borrow, by their names, each with which of its photos count."""


@dataclass(frozen=True)
class Basics:
    """Global data of a collection that each holder of shards needs."""

    key: str  # unique to the epoch
    place: str  # storage of the collection's files: see `index.cluster.storage.open_storage`
    options: CollectionOptions
    signature: SignatureKind | None
    words: int  # size of the vocabulary
    # fingerprints, which the segments must have
    vocabulary: str
    descriptor: str
    removed: NDArray[np.int64]  # (n,) int64: numbers of photos that are in segments and do not count
    whole: Whole  # of all photos
    borrowers: Borrowers | None  # None without borrowed features


@dataclass(frozen=True)
class Shard:
    """Some segments of a collection."""

    number: int  # counted from 0
    segments: tuple[str, ...]  # names in the storage
    features: int
    image_numbers: NDArray[np.uint32]  # (n,) uint32: of its photos that were not removed, ascending
    # (n,) float64: of these photos: see `InvertedIndex`
    norms: NDArray[np.float64]
    scored_norms: NDArray[np.float64]


@dataclass(frozen=True)
class Epoch:
    """The content of a collection at one moment, and its division into shards."""

    basics: Basics
    shards: tuple[Shard, ...]
    # of all photos: their numbers, and weights of words. A search reads no postings or features of it.
    index: InvertedIndex

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """Number of the shard of each photo, in the order of `index.image_numbers`."""
        owners = np.full(len(self.index.image_numbers), -1)
        for shard in self.shards:
            owners[np.searchsorted(self.index.image_numbers, shard.image_numbers)] = shard.number
        return owners

    def owners_of(self, numbers: Sequence[int] | NDArray[np.integer]) -> NDArray[np.int64]:
        """Numbers of the shards of some photos; raises KeyError if one is not in the collection."""
        every, wanted = self.index.image_numbers, np.asarray(numbers, np.int64)
        at = np.minimum(np.searchsorted(every, wanted), max(len(every) - 1, 0))
        missing = every[at] != wanted if len(every) else np.ones(len(wanted), bool)
        if missing.any():
            raise KeyError(int(wanted[missing.argmax()]))
        owners: NDArray[np.int64] = self.owners[at]
        return owners


def open_epoch(collection: Collection, shards: int) -> Epoch:
    """Divide the current content of a collection into shards. Holders read files from the collection's folder, or from
    the storage that it was indexed with, to which missing files are sent. `shards`: their number; fewer if there are
    fewer segments.
    """
    if shards < 1:
        raise CairnError(f"A collection is cut into one shard at least, not into {shards}.")
    content, signature = collection.content, collection.signature
    plain, scored = collection.index, collection.scored_index(augmented=True)
    borrowers = _borrowers(collection, plain) if scored.borrows else None
    removed = np.array(sorted(content.removed), np.int64)
    described = {
        "segments": [[segment.folder.name, segment.features] for segment in content.segments],
        "content": content.key,
        "vocabulary": content.vocabulary.fingerprint,
        "descriptor": collection.features_fingerprint,
        "signature": str(signature),
        "augmentation": content.augmentation.key if content.augmentation is not None else None,
        "shards": shards,
        "folder": str(collection.folder.resolve()),
    }
    place = storage_place(collection)
    every = (*content.segments, *(content.augmentation.segments if borrowers and content.augmentation else ()))
    publish(open_storage(place), collection.folder, [segment.folder for segment in every])
    basics = Basics(
        fingerprint({"removed": removed, "frequency": plain.document_frequency}, described),
        place,
        collection.options,
        signature,
        plain.words,
        content.vocabulary.fingerprint,
        collection.features_fingerprint,
        removed,
        Whole(len(plain.image_numbers), plain.document_frequency, plain.common_idf),
        borrowers,
    )
    groups = group_segments([segment.features for segment in content.segments], shards)
    made = [
        _make_shard(number, [content.segments[one] for one in group], plain, scored)
        for number, group in enumerate(groups)
    ]
    return Epoch(basics, tuple(made), plain)


def publish(storage: Storage, collection: Path, folders: Sequence[Path]) -> None:
    """Send folders of a collection to a storage, unless it has them, such as the collection's own folder."""
    if is_same_folder(storage, collection):
        return
    for folder in folders:
        send_new(storage, f"{folder.parent.name}/{folder.name}", folder, META)


def group_segments(features: Sequence[int], groups: int) -> list[list[int]]:
    """Divide segments into groups of about equally many features: the largest first, each to the smallest group."""
    members: list[list[int]] = [[] for _ in range(max(1, min(groups, len(features))))]
    totals = [0] * len(members)
    for place in sorted(range(len(features)), key=lambda one: -features[one]):
        least = min(range(len(members)), key=lambda one: (totals[one], len(members[one])))
        members[least].append(place)
        totals[least] += features[place]
    return [sorted(group) for group in members]


def _make_shard(number: int, segments: Sequence[Segment], plain: InvertedIndex, scored: InvertedIndex) -> Shard:
    numbers = np.concatenate([np.zeros(0, np.uint32), *(segment.image_numbers for segment in segments)])
    places = np.flatnonzero(np.isin(plain.image_numbers, numbers))
    return Shard(
        number,
        tuple(f"{SEGMENTS}/{segment.folder.name}" for segment in segments),
        sum(segment.features for segment in segments),
        plain.image_numbers[places],
        plain.norms[places],
        scored.scored_norms[places],
    )


def _borrowers(collection: Collection, plain: InvertedIndex) -> Borrowers | None:
    augmentation = collection.augmentation
    if augmentation is None:
        return None
    borrowed = augmentation.borrowed(plain.image_numbers)
    return tuple(
        (f"{AUGMENTATION}/{segment.folder.name}", counting)
        for segment, counting in zip(borrowed.segments, borrowed.counting, strict=True)
    )
