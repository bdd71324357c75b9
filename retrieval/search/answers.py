"""Answers as the command line and the web application report them: names, paths, scores, homographies in pixels."""

import contextlib
import os
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import hash_file
from index.errors import CairnError
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.photo_lookup import photo_called
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection, CollectionChanged
from retrieval.foreign.npz import NpzFile
from retrieval.foreign.opening import open_features
from retrieval.indexing.described import use_features
from retrieval.photos.options import ImageOptions
from retrieval.search.homography import homography, may_fix
from retrieval.search.options import SearchOptions
from retrieval.search.outlines import found_region
from retrieval.search.photos import NotHere
from retrieval.search.query import Box, Query, Source, extract_query, recall_described, recall_query
from retrieval.search.ranking import Hit, combine
from retrieval.search.searcher import Answer, Searcher

IF_MOVED = "if it was moved, run cairn index with the folder where it is now, and it is recognised by its content"
"""What mends that a photo's file is not where it was, to end a sentence with."""

_LOOKS = 3  # how often a collection is searched again that changes meanwhile


@dataclass(frozen=True)
class Asked:
    """One photo of a query."""

    name: str  # what the answer calls it
    path: Path  # where it is
    box: Box | None = None  # what is searched for in it; None: all of it
    row: ImageRow | None = None  # where it is a photo of the collection, and its file is what was indexed
    content: str | None = None  # SHA-256 of the file, where that is known


@dataclass(frozen=True)
class Found:
    """A query and its answer."""

    query: Query
    answer: Answer
    extract: float  # seconds


@dataclass(frozen=True)
class Result:
    """A photo of the answer to one or several queries."""

    which: int  # the query that it matches
    hit: Hit
    row: ImageRow
    homography: NDArray[np.float64] | None  # (3, 3), pixels of that query to the photo's


def find_photo(collection: Collection, photo: str, box: Box | None = None) -> Asked:
    """Find a query's photo; CairnError where there is none.

    A photo is meant by its name in the collection, by the path of any file, or as tables may call it: by its file's
    name alone, where that fits one photo.
    """
    row = collection.catalogue.image_by_name(photo)
    if row is None and os.path.isfile(photo):  # noqa: PTH113 (Path.is_file raises where the name is too long)
        return ask_with_file(collection, photo, Path(photo), box)
    if row is None:
        row = photo_called(collection.catalogue, photo)
    if row is not None:
        return ask_with_photo(row, photo, box)
    raise CairnError(f"There is no photo {photo!r}, neither a file nor a name in the collection.")


def ask_with_photo(row: ImageRow, name: str, box: Box | None = None) -> Asked:
    """Ask with a photo of the collection; CairnError where its file has gone, or may not be read."""
    path = photo_file(row)
    state = path.stat()
    if (state.st_size, state.st_mtime_ns) == (row.size, row.mtime_ns):
        return Asked(name, path, box, row, row.sha256)
    # Folders that are copied or restored often have other times.
    content = _content(path)
    return Asked(name, path, box, row if content is not None and content == row.sha256 else None, content)


def ask_with_file(collection: Collection, name: str, path: Path, box: Box | None = None) -> Asked:
    """Ask with a file, which may be that of a photo of the collection, or a copy of it."""
    content = _content(path)
    row = collection.catalogue.image_of_content(content) if content is not None else None
    return Asked(name, path, box, row, content)


def _content(path: Path) -> str | None:
    """SHA-256 of a file; None where it cannot be read, which is said when it is."""
    try:
        return hash_file(path)
    except OSError:
        return None


def photo_file(row: ImageRow) -> Path:
    """Give the file of a photo of the collection; CairnError where it has gone, or may not be read."""
    try:
        if stat.S_ISREG(os.stat(row.path).st_mode):  # noqa: PTH116 (Path.is_file hides some errors)
            return Path(row.path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        pass
    except OSError as error:
        raise CairnError(
            f"The photo {row.name!r} is in the collection, but its file {row.path} cannot be read ({error.strerror}): "
            "check its rights and its drive."
        ) from error
    raise CairnError(
        f"The photo {row.name!r} is in the collection, but its file {row.path} is no longer there: {IF_MOVED}."
    )


def search_photo(
    searcher: Searcher, asked: Asked, among: NDArray[np.integer] | None = None, top: int | None = None
) -> Found:
    """Search for a photo, or for a box in one, among all photos or those of given numbers: see `Searcher.search`."""
    start = time.perf_counter()
    query = make_query(searcher, asked)
    extract = time.perf_counter() - start
    answer = searcher.search(query.views, among, region=query.region, top=top)
    query.rest()
    return Found(query, answer, extract)


def make_query(searcher: Searcher, asked: Asked, image: ImageOptions | None = None) -> Query:
    """Give the features of a query: as they are indexed where that will do, or extracted from its file.

    Parameters
    ----------
    searcher : Searcher
        That will search for it.
    asked : Asked
        The photo.
    image : ImageOptions, optional
        How the file is read; the collection's own way otherwise.

    Raises
    ------
    CairnError
        The photo cannot be read, or the box lies outside it.
    """
    collection, options = searcher.collection, searcher.options
    source = Source(collection.extractor, image or collection.options.image, asked.path, asked.box)
    # Of a photo of which few features are kept, a box has fewer still than its file gives.
    is_kept = asked.box is None or not collection.options.features.regions.max_features
    is_kept |= collection.extractor.is_foreign  # its file gives none
    if asked.row is not None and is_kept:
        photos = searcher.index.images
        by_words = options.soft == 1 and not searcher.engine.needs_descriptors
        with contextlib.suppress(NotHere):  # its file will do
            if by_words:
                return recall_query(collection, asked.row, source, options.turns, signed=options.signed, photos=photos)
            if collection.extractor.is_foreign and collection.options.keep_descriptors:
                kept = collection.index.images.features(asked.row.number)
                return recall_described(collection, asked.row, source, kept, soft=options.soft, signed=options.signed)
    return extract_query(collection, source, options.turns, soft=options.soft, signed=options.signed)


def answer_query(
    folder: Path,
    photos: Sequence[str],
    *,
    box: Box | None = None,
    top: int = 20,
    options: SearchOptions | None = None,
    match_all: bool = False,
    wanted: PhotoFilter | None = None,
    picture: Path | None = None,
    catalogue: str | None = None,
    features: Path | None = None,
    make_searcher: Callable[[Collection, SearchOptions], Searcher] = Searcher,
) -> dict[str, Any]:
    """Search a collection, or its photos that pass a filter, and report as `cairn query --json` does.

    A searcher of photos that are elsewhere is made by another function: see `Searcher`. In a collection of features of
    another program, those of photos that are not in it are in `features`: see `open_features`.

    Raises
    ------
    CairnError
        The request cannot be met.
    """
    if not photos:
        raise CairnError("A query needs a photo.")
    if box is not None and len(photos) > 1:
        raise CairnError("A box goes with one photo: give one photo, or leave the box out.")
    if picture is not None:
        from retrieval.search.picture import check_picture

        check_picture(picture)
    source = open_features(features) if features is not None else None
    if isinstance(source, NpzFile) and len(photos) > 1:
        raise CairnError(f"{features} has the features of one photo: give one photo, or a folder of features.")
    for look in range(_LOOKS):
        with Collection.open(folder, catalogue=catalogue) as collection:
            if source is not None:
                use_features(collection, source)
            try:
                searcher = make_searcher(collection, options or SearchOptions())
                asked = [find_photo(collection, photo, box) for photo in photos]
                among = passing_numbers(collection, wanted)
                found = [search_photo(searcher, one, among, top) for one in asked]
                results = best_results(searcher, found, top=top, match_all=match_all)
                break
            except (CollectionChanged, KeyError):  # by another process, while it was searched
                if look == _LOOKS - 1:
                    raise CollectionChanged(f"{folder} changes faster than it can be searched: try again.") from None
    if picture is not None:
        from retrieval.search.picture import draw_matches

        # Beside a photo of the collection, that photo itself is no news.
        own = {str(one.path) for one in asked}
        shown = [(found[one.which].query, one.hit, one.row) for one in results if one.row.path not in own]
        draw_matches(picture, searcher.index, shown, found[0].query)
    return report_answer(searcher, asked, found, results, wanted, among)


def passing_numbers(collection: Collection, wanted: PhotoFilter | None) -> NDArray[np.int64] | None:
    """Numbers of the photos that pass a filter, ascending int64; None where all do."""
    return collection.catalogue.numbers(wanted=wanted) if wanted else None


def best_results(searcher: Searcher, found: Sequence[Found], *, top: int, match_all: bool = False) -> list[Result]:
    """Choose the photos to report, at most `top`: those that have something in common with the query, the best first.

    Raises
    ------
    KeyError
        A photo was removed from the collection since it was opened.
    """
    rankings = searcher.aligned([one.answer for one in found], match_all=match_all, top=top)
    ranked = combine(rankings, match_all, top)
    ranked = [(which, hit) for which, hit in ranked if hit.score > 0 or hit.verification.inliers]
    rows = searcher.collection.catalogue.images([hit.number for _, hit in ranked])
    needed = [hit.number for _, hit in ranked if may_fix(hit)]
    images = dict(zip(needed, searcher.index.images.features_of(needed), strict=True))
    return [
        Result(which, hit, row, homography(hit, found[which].query, row, images.get(hit.number)))
        for (which, hit), row in zip(ranked, rows, strict=True)
    ]


def report_answer(
    searcher: Searcher,
    asked: Sequence[Asked],
    found: Sequence[Found],
    results: Sequence[Result],
    wanted: PhotoFilter | None = None,
    among: NDArray[np.integer] | None = None,
) -> dict[str, Any]:
    """Write an answer as `cairn query --json` and the web application give it.

    The region of a result is where the query's box, or all of its photo, lies in the photo, clipped to it (see
    `found_region`): three to eight corners; None where there is none that can be trusted.
    """
    seconds = {step: sum(one.answer.seconds[step] for one in found) for step in ("extract", "search", "verify")}
    seconds["extract"] += sum(one.extract for one in found)
    seconds["total"] = sum(seconds.values())
    boxes = [_rounded(one.query.box) for one in found]
    return {
        "query": asked[0].name if len(asked) == 1 else [one.name for one in asked],
        "box": boxes[0] if len(boxes) == 1 else None,
        "boxes": boxes,
        "engine": searcher.options.engine,
        "expand": searcher.options.expand,
        "augmented": searcher.index.borrows,
        "similarity": searcher.describe_similarity(),
        "filter": wanted.describe() if wanted else None,
        "passing": len(among) if among is not None else None,
        "turned": any(one.answer.turned for one in found),
        "sure": all(one.answer.sure for one in found),
        "missing_shards": sorted({shard for one in found for shard in one.answer.missing}),
        "results": [_report_result(place + 1, one, found[one.which].query) for place, one in enumerate(results)],
        "seconds": {step: round(value, 4) for step, value in seconds.items()},
    }


def _rounded(box: Box | None) -> list[float] | None:
    return [round(value, 3) for value in box] if box is not None else None


def _report_result(place: int, result: Result, query: Query) -> dict[str, Any]:
    return {
        "rank": place,
        "name": result.row.name,
        "title": result.row.title,
        "path": result.row.path,
        "score": round(result.hit.score, 6),
        "inliers": result.hit.verification.inliers,
        "probability": result.hit.probability,
        "found": result.hit.found,
        "homography": result.homography.tolist() if result.homography is not None else None,
        "number": result.row.number,
        "width": result.row.width,
        "height": result.row.height,
        "query_index": result.which,
        "turn": round(query.views[result.hit.view].turn, 6),
        "region": found_region(query, result.homography, result.row.width, result.row.height),
    }
