"""Give the photos of a collection global descriptors: from a file, or by an extension that describes new ones too."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.parallel import Workers, run
from index.progress import Progress, silent
from index.reports import Report
from index.text import shown
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.photo_lookup import PhotoLookup
from retrieval.catalogue.photos import count_indexed, places_of_photos, rows_of
from retrieval.catalogue.schema import ImageRow
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.collection import Collection
from retrieval.collection.global_rows import GlobalRows, read_global, remove_global, write_global
from retrieval.collection.layout import GLOBAL_KEY
from retrieval.collection.sealing import changed
from retrieval.foreign.global_descriptors import ENDINGS, described, find_global, read_matrix
from retrieval.photos.options import ImageOptions

STEP = "describe"

_AT_ONCE = 1_000  # photos that are described until they are written down


@dataclass(frozen=True)
class DescribedGlobally(Report):
    """Result of `Collection.add_global_descriptors`."""

    images: Annotated[int, "Photos that the collection holds."]
    described: Annotated[int, "Photos that were described now."]
    photos: Annotated[int, "Photos that have a global descriptor now."]
    failed: Annotated[list[dict[str, str]], "Name and reason of photos that could not be described."]
    unknown: Annotated[list[str], "Names of a file that no photo has, or several."]


def describe_photos(
    collection: Collection, source: str, workers: Workers = 1, progress: Progress = silent
) -> DescribedGlobally:
    """Give photos global descriptors from a file, whose rows replace all others, or by an extension, by its name or
    place; it describes those that it has not described. A run that is stopped is gone on with by the next.
    """
    with collection.locked(), changed(collection):
        if source.endswith(ENDINGS):
            return _take(collection, Path(source))
        return _compute(collection, source, workers, progress)


def describe_new(collection: Collection, workers: Workers, progress: Progress = silent) -> list[str]:
    """Describe photos that were added since by the extension that described the others; return notes of what is not."""
    try:
        kept = collection.global_rows
        if kept is None or not len(collection.catalogue.read(numbers_of)):
            return []
        if kept.place is not None:
            done = describe_photos(collection, kept.place, workers, progress)
            return [f"{one['name']} has no global descriptor: {one['reason']}." for one in done.failed]
    except CairnError as error:  # photos are searched by their features all the same
        return [str(error)]
    lacking = len(np.setdiff1d(collection.catalogue.read(numbers_of), kept.numbers))
    return [f"{lacking} photos have no global descriptor: give them by cairn global."] if lacking else []


def drop_global(collection: Collection) -> None:
    """Remove the global descriptors of a collection."""
    with collection.locked(), changed(collection):
        remove_global(collection.folder)
        collection.catalogue.write(keep_setting, GLOBAL_KEY, "")


def keep_global(collection: Collection, made: GlobalRows) -> None:
    """Write the global descriptors of a collection, and let searches know."""
    write_global(collection.folder, made)
    collection.catalogue.write(keep_setting, GLOBAL_KEY, str(len(made.numbers)))


def compact_global(collection: Collection) -> None:
    """Leave out the rows of photos that were removed; what is damaged stays for `cairn check` to tell of."""
    try:
        kept = read_global(collection.folder)
    except CairnError:
        return
    there = collection.catalogue.read(numbers_of)
    if kept is not None and not np.isin(kept.numbers, there).all():
        keep_global(collection, kept.kept(there))


def _take(collection: Collection, path: Path) -> DescribedGlobally:
    names, rows = read_matrix(path)
    lookup = PhotoLookup(collection.catalogue.read(places_of_photos, 0))
    found: dict[int, int] = {}
    unknown = []
    for place, name in enumerate(names):
        number = lookup.find(name)
        if isinstance(number, int):
            found[number] = place
        else:
            unknown.append(name)
    if not found:
        raise CairnError(
            "None of the {count} names in {path}, such as {name}, is that of a photo of {folder}.",
            count=len(names),
            path=path,
            name=shown(names[0] if names else ""),
            folder=collection.folder,
        )
    made = _none(rows.shape[1], path.stem).merged(found, rows[list(found.values())])
    keep_global(collection, made)
    images = collection.catalogue.read(count_indexed)
    return DescribedGlobally(images, described=len(found), photos=len(found), failed=[], unknown=unknown)


def _compute(collection: Collection, name: str, workers: Workers, progress: Progress) -> DescribedGlobally:
    extension = find_global(name)
    made = extension.load()
    there = collection.catalogue.read(numbers_of)
    kept = read_global(collection.folder)
    if kept is None or kept.model != str(made.fingerprint) or kept.dim != made.dim:
        kept = _none(made.dim, str(made.name), extension.place, str(made.fingerprint))
    else:
        kept = kept.kept(there)
    todo = np.setdiff1d(there, kept.numbers).tolist()
    described, failed = 0, []
    for start in range(0, len(todo), _AT_ONCE):
        rows = collection.catalogue.read(rows_of, todo[start : start + _AT_ONCE])
        numbers, vectors = [], []
        for place, (row, one) in enumerate(_rows(extension.place, rows, collection.options.image, workers), start + 1):
            if isinstance(one, str):
                failed.append({"name": row.name or "", "reason": one})
            else:
                numbers.append(row.number)
                vectors.append(one)
            progress(STEP, place, len(todo))
        if numbers:
            kept = kept.merged(numbers, np.array(vectors))
            keep_global(collection, kept)
            described += len(numbers)
    images = collection.catalogue.read(count_indexed)
    return DescribedGlobally(images, described, len(kept.numbers), failed, unknown=[])


def _rows(
    place: str, photos: Sequence[ImageRow], image: ImageOptions, workers: Workers
) -> Iterator[tuple[ImageRow, NDArray[np.float32] | str]]:
    tasks = (partial(_described_by, place, Path(row.path), image) for row in photos)
    return zip(photos, run(tasks, workers), strict=True)


def _described_by(place: str, path: Path, image: ImageOptions) -> NDArray[np.float32] | str:
    """The row of a photo, or why it has none."""
    try:
        return described(find_global(place).load(), path, image)
    except CairnError as error:
        return str(error)


def _none(dim: int, name: str, place: str | None = None, model: str | None = None) -> GlobalRows:
    return GlobalRows(np.zeros(0, np.uint32), np.zeros((0, dim), np.float16), name, place, model)
