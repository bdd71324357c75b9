"""The facts of a collection: what `cairn info` reports."""

from typing import Any

from index.errors import CairnError
from index.segments.description import segment_bytes
from retrieval.catalogue.schema import SegmentRow
from retrieval.collection.collection import Collection
from retrieval.collection.drift import describe_drift, measure_drift
from retrieval.collection.layout import SEGMENTS

_LOOKS = 5  # how often segments are looked at again that are rewritten meanwhile


def describe_collection(collection: Collection) -> dict[str, Any]:
    """Give the facts that `cairn info` reports."""
    counts = collection.catalogue.counts()
    descriptor = collection.descriptor
    vocabulary = collection.vocabulary_facts if collection.has_vocabulary else None
    rows, size = _sizes(collection)
    added = collection.catalogue.first_and_last_added()
    features = sum(row.features for row in rows)
    return {
        "images": counts["indexed"],
        "features": counts["features"],
        "words": vocabulary.words if vocabulary else 0,
        "segments": len(rows),
        "bytes": size,
        "bytes_per_feature": round(sum(size.values()) / features, 2) if features else 0.0,
        "descriptor": {
            "name": descriptor.name,
            "dim": descriptor.dim,
            "fingerprint": collection.features_fingerprint,
        },
        "signature": str(collection.signature) if collection.signature else None,
        "vocabulary": {
            "words": vocabulary.words,
            "recall_at_1": vocabulary.recall_at_1,
            "fingerprint": vocabulary.fingerprint,
            "trained_on": vocabulary.trained_on,
            "imbalance": round(collection.imbalance, 3),
            "drift": describe_drift(measure_drift(collection)),
        }
        if vocabulary
        else None,
        "date_added": None if added is None else {"first": added[0], "last": added[1]},
        "missing": len(collection.catalogue.missing()),
        "removed": counts["removed"],
        "removed_for_good": [
            {"name": one.name, "path": one.path, "sha256": one.sha256, "removed": one.removed}
            for one in collection.catalogue.exclusions()
        ],
        "failed": [{"path": f.path, "reason": f.reason} for f in collection.catalogue.failures()],
    }


def _sizes(collection: Collection) -> tuple[list[SegmentRow], dict[str, int]]:
    """The segments, and the bytes of their parts; CairnError where one is damaged. None of them is opened."""
    for left in reversed(range(_LOOKS)):
        rows = collection.catalogue.segments()
        size: dict[str, int] = {}
        try:
            for row in rows:
                for part, count in segment_bytes(collection.folder / SEGMENTS / row.folder).items():
                    size[part] = size.get(part, 0) + count
            break
        except CairnError:
            if not left or [row.id for row in rows] == [row.id for row in collection.catalogue.segments()]:
                raise
    return rows, size
