"""Write metadata that people entered into XMP sidecars next to the photos, for other programs."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.progress import Progress, silent
from index.reports import Report
from index.text import printable
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.database import chunks
from retrieval.catalogue.metadata_store import metadata_of
from retrieval.catalogue.photos import count_indexed
from retrieval.catalogue.schema import IMPORTED, AlbumPhotoRow, AlbumRow, MetadataRow
from retrieval.metadata.fields import FIELDS, Metadata
from retrieval.metadata.pages import file_of
from retrieval.metadata.sidecars import sidecars_of
from retrieval.metadata.writing import NoSidecar, write_sidecar
from retrieval.photos.listing import stays_below

_OUTSIDE = "it is in no folder that photos may be taken from, so nothing is written beside it"
_AT_ONCE = 500  # photos whose rows are read together


@dataclass(frozen=True)
class Sidecars(Report):
    """Result of `Collection.write_sidecars`."""

    written: Annotated[int, "New or changed sidecars."]
    unchanged: Annotated[int, "Photos whose sidecars were up to date."]
    missing: Annotated[int, "Photos whose files are missing."]
    failed: Annotated[list[dict[str, str]], "Path of each photo whose sidecar could not be written, and the reason."]


def write_sidecars(catalogue: Catalogue, progress: Progress = silent, below: Sequence[Path] | None = None) -> Sidecars:
    """Write entered metadata and albums of photos into their sidecars, below some folders wherever links lead."""
    photos = catalogue.read(count_indexed)
    counts, failed, done = Counter[str](), [], 0
    places = catalogue.places()
    while some := list(itertools.islice(places, _AT_ONCE)):
        numbers = [number for number, _, _ in some]
        with catalogue.reading() as session:
            decided, albums = _decided(session, numbers), _albums(session, numbers)
            known = metadata_of(session, numbers)
        for number, _, path in some:
            # A photo with a sidecar may have been removed from an album.
            photo = Path(path)
            if number not in decided and number not in albums and not sidecars_of(photo)[0].exists():
                continue
            try:
                if below is not None and not stays_below(photo.parent, below):
                    raise NoSidecar(_OUTSIDE)
                counts[_write(photo, known[number], decided.get(number, ()), albums.get(number, ()))] += 1
            except NoSidecar as error:
                failed.append({"path": printable(path), "reason": str(error)})
        done += len(some)
        progress("write", done, max(done, photos))
    return Sidecars(counts["written"], counts["unchanged"], counts["missing"], failed)


def _write(photo: Path, known: Metadata, decided: Sequence[str], albums: Sequence[str]) -> str:
    """Write the sidecar of a photo; return the attribute of `Sidecars` that counts it."""
    try:
        if not file_of(photo).is_file():
            return "missing"
        return "written" if write_sidecar(photo, known, decided, albums) else "unchanged"
    except OSError as error:
        raise NoSidecar(f"its sidecar cannot be written ({error.strerror or error})") from None


def _decided(session: Session, numbers: Sequence[int]) -> dict[int, list[str]]:
    """Keys of fields with imported values, by photo."""
    keys: dict[int, list[str]] = {}
    query = sa.select(MetadataRow.number, MetadataRow.key).where(
        MetadataRow.source == IMPORTED, MetadataRow.key.in_(list(FIELDS)), MetadataRow.position == 0
    )
    for chunk in chunks(numbers):
        for number, key in session.execute(query.where(MetadataRow.number.in_(chunk))):
            keys.setdefault(number, []).append(key)
    return keys


def _albums(session: Session, numbers: Sequence[int]) -> dict[int, list[str]]:
    albums: dict[int, list[str]] = {}
    query = sa.select(AlbumPhotoRow.number, AlbumRow.name).join(AlbumRow, AlbumRow.id == AlbumPhotoRow.album)
    for chunk in chunks(numbers):
        rows = query.where(AlbumPhotoRow.number.in_(chunk)).order_by(AlbumPhotoRow.number, AlbumRow.name)
        for number, name in session.execute(rows):
            albums.setdefault(number, []).append(name)
    return albums
