"""The facts of a collection that `cairn info` reports."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from index.attributes import some_of
from index.errors import CairnError
from index.segments.description import segment_bytes
from index.vocabulary import VocabularyFacts
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.exclusions import exclusions_in
from retrieval.catalogue.failures import failures_in
from retrieval.catalogue.masked import count_masked, names_of_text_alone
from retrieval.catalogue.photos import counts_of_photos, first_and_last_added, missing_photos, names_without_features
from retrieval.catalogue.schema import SegmentRow
from retrieval.catalogue.segment_rows import segments_in
from retrieval.collection.augmentation import is_augmented, open_augmentation
from retrieval.collection.collection import Collection
from retrieval.collection.drift import describe_drift, measure_drift
from retrieval.collection.layout import SEGMENTS
from retrieval.foreign.contract import GEOMETRIES

_LOOKS = 5  # attempts to read segments that may be rewritten meanwhile


def count_collection(collection: Collection) -> dict[str, Any]:
    """Return the facts that every indexing run reports: contents of a collection, and bytes for each feature."""
    return _count(collection, _vocabulary(collection))


def _vocabulary(collection: Collection) -> VocabularyFacts | None:
    return collection.vocabulary_facts if collection.has_vocabulary else None


def _count(collection: Collection, vocabulary: VocabularyFacts | None) -> dict[str, Any]:
    counts = collection.catalogue.read(counts_of_photos)
    rows, size = _sizes(collection)
    features = sum(row.features for row in rows)
    return {
        "images": counts["indexed"],
        "features": counts["features"],
        "words": vocabulary.words if vocabulary else 0,
        "segments": len(rows),
        "bytes": size,
        "bytes_per_feature": round(sum(size.values()) / features, 2) if features else 0.0,
        "removed": counts["removed"],
    }


def describe_collection(collection: Collection) -> dict[str, Any]:
    """Return the facts that `cairn info` reports."""
    vocabulary = _vocabulary(collection)
    counted = _count(collection, vocabulary)
    removed = counted.pop("removed")
    descriptor = collection.descriptor
    added = collection.catalogue.read(first_and_last_added)
    return {
        **counted,
        "descriptor": {
            "name": descriptor.name,
            "dim": descriptor.dim,
            "fingerprint": collection.features_fingerprint,
            "foreign": GEOMETRIES.get(collection.options.features.regions.detector),
        },
        "extensions": list(collection.options.extensions),
        "signature": str(collection.signature) if collection.signature else None,
        "vocabulary": {
            **some_of(vocabulary, "words", "recall_at_1", "fingerprint", "trained_on"),
            "imbalance": round(collection.imbalance, 3),
            "drift": describe_drift(measure_drift(collection)),
        }
        if vocabulary
        else None,
        "augmentation": _augmentation(collection),
        "date_added": None if added is None else {"first": added[0], "last": added[1]},
        "missing": len(collection.catalogue.read(missing_photos)),
        "featureless": collection.catalogue.read(names_without_features),
        "text_masked": collection.catalogue.read(count_masked),
        "text_only": collection.catalogue.read(names_of_text_alone),
        "removed": removed,
        "removed_for_good": [
            some_of(one, "name", "path", "sha256", "removed") for one in collection.catalogue.read(exclusions_in)
        ],
        "failed": [{"path": f.path, "reason": f.reason} for f in collection.catalogue.read(failures_in)],
    }


def describe_augmentation(facts: Mapping[str, Any]) -> str:
    """Describe borrowed features in a line, from the facts of `describe_collection`."""
    if facts["damaged"]:
        return "damaged, and not used: run cairn repair, then cairn group"
    if not facts["photos"]:
        return "nothing is borrowed yet, or by an earlier vocabulary or a later version: run cairn group"
    return (
        f"{facts['photos']} photos borrow {facts['features']} features: {facts['bytes'] / 1e6:.2f} MB, "
        f"{facts['bytes_per_feature']:.2f} bytes a feature of the collection"
    )


def _augmentation(collection: Collection) -> dict[str, Any] | None:
    """Borrowed features: numbers of photos and of features, and bytes; None without an augmentation."""
    if not is_augmented(collection.folder):
        return None
    facts: dict[str, Any] = {"photos": 0, "features": 0, "bytes": 0, "bytes_per_feature": 0.0, "damaged": False}
    if not collection.has_vocabulary:
        return facts
    try:
        augmentation = open_augmentation(collection.folder, collection.basis)
    except CairnError:
        return facts | {"damaged": True}
    if augmentation is None:
        return facts
    for segment, counts in zip(
        augmentation.segments, augmentation.borrowed(collection.catalogue.read(numbers_of)).counting, strict=True
    ):
        lengths = segment.offsets[1:].astype(np.int64) - segment.offsets[:-1].astype(np.int64)
        facts["photos"] += int(np.count_nonzero(counts & (lengths > 0)))
        facts["features"] += int(lengths[counts].sum())
        facts["bytes"] += sum(segment.bytes.values())
    total = collection.catalogue.read(counts_of_photos)["features"]
    return facts | {"bytes_per_feature": round(facts["bytes"] / total, 2) if total else 0.0}


def _sizes(collection: Collection) -> tuple[list[SegmentRow], dict[str, int]]:
    """The segments, and the bytes of their parts, without opening them; raises CairnError if one is damaged."""
    for attempts in reversed(range(_LOOKS)):
        rows = collection.catalogue.read(segments_in)
        size: dict[str, int] = {}
        try:
            for row in rows:
                for part, count in segment_bytes(collection.folder / SEGMENTS / row.folder).items():
                    size[part] = size.get(part, 0) + count
            break
        except CairnError:
            if not attempts or [row.id for row in rows] == [row.id for row in collection.catalogue.read(segments_in)]:
                raise
    return rows, size
