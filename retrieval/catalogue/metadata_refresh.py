"""Read the metadata of a collection's photos from their files again."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from index.errors import Unreadable
from index.progress import Progress, silent
from index.reports import Report
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.metadata_store import store_metadata
from retrieval.catalogue.photos import count_indexed
from retrieval.metadata.fields import Metadata
from retrieval.metadata.photo import read_metadata

_AT_ONCE = 500  # photos that are written together


@dataclass(frozen=True)
class Refreshed(Report):
    """Result of `Collection.refresh_metadata`."""

    read: Annotated[int, "Photos."]
    missing: Annotated[int, "Photos whose files are missing or may not be read: they keep their metadata."]
    with_metadata: Annotated[int, "Photos whose files have any metadata."]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``cairn metadata --refresh --json`` prints."""
        return {"read": self.read, "missing": self.missing, "told": self.with_metadata}


def refresh_metadata(catalogue: Catalogue, progress: Progress = silent) -> Refreshed:
    """Read the metadata of all indexed photos' files again, and store it; imported values stay."""
    photos = catalogue.read(count_indexed)
    done = read = missing = with_metadata = 0
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
        with_metadata += sum(metadata != Metadata() for _, metadata in batch)
        progress("read", done, max(done, photos))
    return Refreshed(read, missing, with_metadata)
