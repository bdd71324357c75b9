"""Data for pages that show all photos: a wall, a time line, a map and lists, as plain values."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from retrieval.catalogue.browsing import (
    folders_of,
    months_of,
    positions_of,
    rows_of_content,
    rows_there,
    shapes_of,
    values_of,
)
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.facets import facets_of
from retrieval.catalogue.failures import failures_in
from retrieval.catalogue.metadata_store import tag_counts
from retrieval.catalogue.passing import passing_of
from retrieval.catalogue.photos import count_indexed, indexed_folders, missing_photos
from retrieval.library.filters import Filter
from retrieval.library.photos import PhotoRow
from retrieval.metadata.pages import file_of


def numbers_of(catalogue: Catalogue, wanted: Filter, order: str) -> list[int]:
    """Numbers of the photos that pass a filter, in an order of `shapes_of`."""
    numbers: list[int] = catalogue.read(shapes_of, wanted, order)[:, 0].tolist()
    return numbers


def layout(catalogue: Catalogue, wanted: Filter, order: str) -> dict[str, Any]:
    """Numbers and shapes of photos."""
    shapes = catalogue.read(shapes_of, wanted, order)
    ratios = np.rint(100 * shapes[:, 1] / np.maximum(shapes[:, 2], 1)).astype(np.int64)
    return {"numbers": shapes[:, 0].tolist(), "ratios": ratios.tolist()}


def timeline(catalogue: Catalogue, wanted: Filter) -> dict[str, Any]:
    """How many photos are of each month."""
    counted = dict(catalogue.read(months_of, wanted))
    undated = counted.pop("", 0)
    return {"months": _counted("month", counted.items()), "undated": undated}


def places(catalogue: Catalogue, wanted: Filter) -> dict[str, Any]:
    """Places where photos were taken, if known."""
    numbers, at = catalogue.read(positions_of, wanted)
    latitudes, longitudes = np.round(at, 5).T.tolist()
    return {"numbers": numbers.tolist(), "latitudes": latitudes, "longitudes": longitudes}


def cameras(catalogue: Catalogue, limit: int) -> dict[str, Any]:
    """Cameras, the most frequent first."""
    return {"cameras": _counted("camera", catalogue.read(values_of, "camera")[:limit])}


def folders(catalogue: Catalogue) -> dict[str, Any]:
    """Folders of the photos' names."""
    return {"folders": _counted("folder", catalogue.read(folders_of))}


def facets(catalogue: Catalogue, wanted: Filter, limit: int) -> dict[str, Any]:
    """Facets of photos: values of fields, folders, tags, albums, years."""
    counts = catalogue.read(facets_of, wanted, limit)
    return {
        "facets": [{"field": name, "values": _counted("value", values)} for name, values in counts.fields.items()],
        "folders": _counted("folder", counts.folders),
        "tags": _counted("tag", counts.tags),
        "albums": [{"album": album, "name": name, "photos": photos} for album, name, photos in counts.albums],
        "years": _counted("year", counts.years),
    }


def some_photos(catalogue: Catalogue, numbers: Sequence[int]) -> list[PhotoRow]:
    """Those of some photos that exist, in the order of the numbers."""
    return catalogue.read(rows_there, numbers)


def photo_of_content(catalogue: Catalogue, beginning: str) -> PhotoRow | None:
    """A photo whose SHA-256 begins with these digits, or None."""
    return next(iter(catalogue.read(rows_of_content, beginning)), None)


def tags(catalogue: Catalogue, most: int) -> list[tuple[str, int]]:
    """Tags, and how many photos have each."""
    return catalogue.read(tag_counts, most)


def count(catalogue: Catalogue) -> int:
    """Number of photos."""
    return catalogue.read(count_indexed)


def count_missing(catalogue: Catalogue) -> int:
    """Number of photos whose files were missing at the last run."""
    return len(catalogue.read(missing_photos))


def sources(catalogue: Catalogue) -> list[Path]:
    """Folders whose photos are in the collection."""
    return catalogue.read(indexed_folders)


def failed_files(catalogue: Catalogue) -> list[Path]:
    """Files that could not be read, entirely or in part."""
    return [*dict.fromkeys(file_of(one.path) for one in catalogue.read(failures_in))]


def takes_films(catalogue: Catalogue) -> bool:
    """Whether films of folders are taken, too."""
    return catalogue.read(passing_of).films


def _counted(what: str, counts: Iterable[tuple[Any, int]]) -> list[dict[str, Any]]:
    return [{what: one, "photos": photos} for one, photos in counts]
