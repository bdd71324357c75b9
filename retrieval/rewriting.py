"""Segments that are written again: merged, without what was removed, or with other words."""

import hashlib

from index.segment import META, Segment
from retrieval.schema import SegmentRow


def segment_row(segment: Segment) -> SegmentRow:
    """The row of a published segment."""
    return SegmentRow(
        folder=segment.folder.name,
        images=segment.images,
        features=segment.features,
        bytes=sum(segment.bytes.values()),
        vocabulary_fingerprint=segment.vocabulary_fingerprint,
        descriptor_fingerprint=segment.descriptor_fingerprint,
        sha256=hashlib.sha256((segment.folder / META).read_bytes()).hexdigest(),
    )
