"""Read the metadata of a collection's photos from their files again."""

import itertools
from dataclasses import dataclass
from pathlib import Path

from index.errors import Unreadable
from index.progress import Progress, silent
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.metadata_store import store_metadata
from retrieval.catalogue.photos import count_indexed
from retrieval.metadata.fields import Metadata
from retrieval.metadata.photo import read_metadata

_AT_ONCE = 500  # photos that are written together


@dataclass(frozen=True)
class RefreshReport:
    """Result of reading metadata again."""

    read: int  # photos
    missing: int  # photos whose file is missing or may not be read: they keep their metadata
    told: int  # photos whose file has any metadata


def refresh_metadata(catalogue: Catalogue, progress: Progress = silent) -> RefreshReport:
    """Read the metadata of all indexed photos' files again, and store it; imported values stay."""
    photos = catalogue.read(count_indexed)
    done = read = missing = told = 0
    places = catalogue.places()
    while some := list(itertools.islice(places, _AT_ONCE)):
        batch: list[tuple[int, Metadata]] = []
        for number, _, path in some:
            try:
                batch.append((number, read_metadata(Path(path), strict=True)))
            except Unreadable:
                missing += 1
        catalogue.write(store_metadata, batch)
        done += len(some)
        read += len(batch)
        told += sum(metadata != Metadata() for _, metadata in batch)
        progress("read", done, max(done, photos))
    return RefreshReport(read, missing, told)
