"""What segments that are written again have in common: merged, or with the words of another vocabulary."""

import hashlib
from collections.abc import Iterable

from index.errors import CairnError
from index.segment import META, Segment
from retrieval.catalogue.schema import SegmentRow


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


def check_sound(segments: Iterable[Segment]) -> None:
    """Raise CairnError where a file of a segment is not what was written: it must not be written again as if it was."""
    for segment in segments:
        damaged = segment.verify()
        if damaged:
            raise CairnError(f"{segment.folder / damaged[0]} is damaged: run cairn check, and cairn repair.")
