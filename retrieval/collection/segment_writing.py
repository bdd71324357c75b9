"""The writer of segments, for adding, merging, retraining and repair."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from index.hamming.sources import SignatureSource
from index.segments.description import SIGNATURE
from index.segments.segment import ImageFeatures
from index.segments.writing import write_segment
from index.vocabulary import Vocabulary
from retrieval.catalogue.schema import ImageRow, SegmentRow
from retrieval.collection.collection import Collection
from retrieval.collection.layout import SEGMENTS
from retrieval.collection.options import CollectionOptions
from retrieval.collection.segment_notes import write_notes
from retrieval.collection.segments import segment_row
from retrieval.features.encoding import KEYPOINT, as_encoded_now, encode_geometry
from retrieval.features.extraction import Features


class Quantiser(Protocol):
    """The parts of a collection that are needed to assign words to features."""

    @property
    def options(self) -> CollectionOptions:
        """Options of the collection."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Its vocabulary."""

    @property
    def signatures(self) -> SignatureSource | None:
        """The source of signatures of features; None without signatures."""


def quantise(collection: Quantiser, features: Features, size: tuple[int, int]) -> tuple[ImageFeatures, float]:
    """Assign words to the features of a photo; return them with the columns of a segment, and the mean squared distance
    of the descriptors to their words. `size`: width and height of the photo, pixels.
    """
    descriptors = features.descriptors.astype(np.float32)
    words = collection.vocabulary.assign(descriptors)
    columns = encode_geometry(features, max(size), upright=collection.options.features.upright)
    if collection.options.keep_descriptors:
        columns["descriptor"] = features.descriptors
    columns |= sign(collection.signatures, features.descriptors, words)
    elongation = collection.options.image.elongation(*size)
    return ImageFeatures(words, columns, elongation), collection.vocabulary.error_of(descriptors, words)


def sign(
    source: SignatureSource | None, descriptors: NDArray[np.floating], words: NDArray[np.integer]
) -> dict[str, NDArray[Any]]:
    """Return the column of the signatures of features (N, D) with these words; empty without a source."""
    return {SIGNATURE: source.encode(descriptors, words)} if source is not None else {}


def write_photos(
    collection: Collection,
    rows: Sequence[ImageRow],
    features: Sequence[ImageFeatures],
    *,
    folder: Path | None = None,
    vocabulary: str | None = None,
    descriptor: str | None = None,
) -> SegmentRow:
    """Write a segment of photos, with notes on them; it takes effect when its row is committed to the catalogue.
    `rows`: the photos, by ascending number; at least one.

    `features`: the words and columns of each, with the same columns once geometry of earlier versions is converted.
    Keypoints of another program are written only if all photos have them, as earlier versions did not store them.
    """
    parent = collection.folder / SEGMENTS
    columns = [as_encoded_now(one.columns) for one in features]
    # Earlier versions did not store keypoints of other programs: a segment has them for all its photos, or for none.
    names = [name for name in columns[0] if name != KEYPOINT or all(KEYPOINT in some for some in columns)]
    segment = write_segment(
        folder or parent / collection.catalogue.next_folder(parent),
        image_numbers=np.array([row.number for row in rows], np.uint32),
        words=[one.words for one in features],
        columns={name: [some[name] for some in columns] for name in names},
        vocabulary_fingerprint=vocabulary or collection.vocabulary.fingerprint,
        descriptor_fingerprint=descriptor or collection.extractor.fingerprint,
        notes=write_notes(rows),
        elongations=[one.elongation for one in features],
    )
    return segment_row(segment)
