"""Reading again what the files of a collection's photos say of them."""

import itertools
from dataclasses import dataclass
from pathlib import Path

from index.errors import Unreadable
from index.progress import Progress
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.metadata_store import store_metadata
from retrieval.catalogue.photos import count_indexed
from retrieval.metadata.fields import Metadata
from retrieval.metadata.photo import read_metadata

_AT_ONCE = 500  # photos that are written together


@dataclass(frozen=True)
class RefreshReport:
    """What reading again found."""

    read: int  # photos
    missing: int  # photos whose file is gone, or may not be read: they keep what was known
    told: int  # photos whose file says anything


def refresh_metadata(catalogue: Catalogue, progress: Progress | None = None) -> RefreshReport:
    """Read the metadata of all indexed photos' files again, and keep it; what was imported stays.

    Parameters
    ----------
    catalogue : Catalogue
        Of the collection.
    progress : callable, optional
        Told the step "read", how many photos are done, and how many there are.
    """
    tell = progress or (lambda step, done, of: None)
    photos = catalogue.read(count_indexed)
    done = read = missing = told = 0
    places = catalogue.places()
    while some := list(itertools.islice(places, _AT_ONCE)):
        found: list[tuple[int, Metadata]] = []
        for number, _, path in some:
            try:
                found.append((number, read_metadata(Path(path), strict=True)))
            except Unreadable:
                missing += 1
        catalogue.write(store_metadata, found)
        done += len(some)
        read += len(found)
        told += sum(metadata != Metadata() for _, metadata in found)
        tell("read", done, max(done, photos))
    return RefreshReport(read, missing, told)
