"""Segments of a collection: their rows, and which of them exist and are sound."""

from collections.abc import Iterable
from pathlib import Path

from index.arrays import hash_file, load_array
from index.attributes import some_of
from index.errors import CairnError
from index.segments.description import COLUMN_PREFIX, META, TEMPORARY_SUFFIX, damaged
from index.segments.segment import Segment
from index.vocabulary import CENTRES_FILE
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.schema import NEXT_NUMBER_KEY, SegmentRow
from retrieval.catalogue.segment_rows import segments_in
from retrieval.collection.layout import SEGMENTS
from retrieval.features.encoding import misshapen_columns


def segment_row(segment: Segment) -> SegmentRow:
    """The row of a published segment."""
    return SegmentRow(
        folder=segment.folder.name,
        bytes=sum(segment.bytes.values()),
        sha256=hash_file(segment.folder / META),
        **some_of(segment, "images", "features", "vocabulary_fingerprint", "descriptor_fingerprint"),
    )


def open_segment(
    folder: Path,
    *,
    vocabulary_fingerprint: str | None = None,
    descriptor_fingerprint: str | None = None,
    with_notes: bool = True,
) -> Segment:
    """Open a segment of photos (see `Segment.open`), and check the shapes and types of its columns."""
    segment = Segment.open(
        folder,
        vocabulary_fingerprint=vocabulary_fingerprint,
        descriptor_fingerprint=descriptor_fingerprint,
        with_notes=with_notes,
    )
    for name in misshapen_columns(segment.columns):
        raise damaged(folder / f"{COLUMN_PREFIX}{name}.npy")
    return segment


def find_damage(folder: Path, catalogue: Catalogue, vocabulary: Path) -> CairnError | None:
    """Look for damage that can be found without reading all of a collection, such as truncated files."""
    try:
        rows = catalogue.read(segments_in)
        for row in rows:
            try:
                open_segment(folder / SEGMENTS / row.folder)
            except CairnError:
                # Otherwise it was merged with others meanwhile.
                if row.id in {one.id for one in catalogue.read(segments_in)}:
                    raise
        if rows:
            load_array(vocabulary / CENTRES_FILE, mmap=True)
    except CairnError as error:
        return error
    return None


def check_sound(segments: Iterable[Segment]) -> None:
    """Raise CairnError if a file of a segment is damaged: it must not be rewritten as if it was sound."""
    for segment in segments:
        bad = segment.verify()
        if bad:
            raise damaged(segment.folder / bad[0])


def is_there(folder: Path, row: SegmentRow) -> bool:
    """Whether a segment of the catalogue exists in a folder, by its description."""
    path = folder / SEGMENTS / row.folder
    if row.sha256 is None:  # of an earlier version
        return path.is_dir()
    try:
        return hash_file(path / META) == row.sha256
    except OSError:
        return False


def published(folder: Path) -> list[Path]:
    """Folders of completely written segments, of this collection or not."""
    parent = folder / SEGMENTS
    if not parent.is_dir():
        return []
    return sorted(path for path in parent.iterdir() if path.is_dir() and not path.name.endswith(TEMPORARY_SUFFIX))


def has_foreign_photos(segment: Path, catalogue: Catalogue) -> bool:
    """Whether a segment has photos of numbers that its catalogue never assigned; False if it is incomplete."""
    following = catalogue.setting(NEXT_NUMBER_KEY) or ""
    if not (segment / META).is_file():
        return False
    try:
        numbers = load_array(segment / "image_numbers.npy")
        return bool(numbers.size) and int(numbers.max()) >= (int(following) if following.isdecimal() else 0)
    except (CairnError, TypeError, ValueError):
        return False
