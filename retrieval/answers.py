"""Answers as the command line and others report them: names, paths, scores, homographies in pixels."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from index.errors import CairnError
from retrieval.catalogue import ImageRow
from retrieval.collection import Collection
from retrieval.engine import Answer, Engine, Hit, SearchOptions
from retrieval.homography import homography
from retrieval.query import Box, Query, read_query


@dataclass(frozen=True)
class Found:
    """A query and its answer."""

    query: Query
    answer: Answer
    extract: float  # seconds


def find_photo(collection: Collection, photo: str) -> Path:
    """Find a query's file: a path, or the name of a photo in the collection; CairnError where it is neither."""
    row = collection.catalogue.image_by_name(photo)
    if row is not None:
        if os.path.isfile(row.path):  # noqa: PTH113
            return Path(row.path)
        raise CairnError(f"The photo {photo!r} is in the collection, but its file {row.path} is no longer there.")
    if os.path.isfile(photo):  # noqa: PTH113 (Path.is_file raises where the name is too long)
        return Path(photo)
    raise CairnError(f"There is no photo {photo!r}, neither a file nor a name in the collection.")


def search_photo(engine: Engine, path: Path, box: Box | None = None) -> Found:
    """Search for a photo, or for a box in one."""
    start = time.perf_counter()
    query = read_query(engine.collection, path, box, engine.options.turns, soft=engine.options.soft)
    extract = time.perf_counter() - start
    return Found(query, engine.search(query), extract)


def answer_query(
    folder: Path,
    photos: Sequence[str],
    *,
    box: Box | None = None,
    top: int = 20,
    options: SearchOptions | None = None,
    match_all: bool = False,
    picture: Path | None = None,
    catalogue: str | None = None,
) -> dict[str, Any]:
    """Search a collection and report as `cairn query --json` does.

    Raises
    ------
    CairnError
        The request cannot be met.
    """
    options = options or SearchOptions()
    if not photos:
        raise CairnError("A query needs a photo.")
    if box is not None and len(photos) > 1:
        raise CairnError("A box goes with one photo: give one photo, or leave the box out.")
    if picture is not None:
        from retrieval.picture import check_picture

        check_picture(picture)
    with Collection.open(folder, catalogue=catalogue) as collection:
        engine = Engine(collection, options)
        found = [search_photo(engine, find_photo(collection, photo), box) for photo in photos]
        ranked = combine([one.answer.hits for one in found], match_all)
        ranked = [(which, hit) for which, hit in ranked if hit.score > 0 or hit.verification.inliers][:top]
        hits = [hit for _, hit in ranked]
        rows = collection.catalogue.images([hit.number for hit in hits])
        # Of several photos, an answer does not say which one it matches.
        matrices = [
            homography(hit, found[which].query, row, engine.index.features(hit.number)) if len(found) == 1 else None
            for (which, hit), row in zip(ranked, rows, strict=True)
        ]
        if picture is not None:
            from retrieval.picture import draw_matches

            # Beside a photo of the collection, that photo itself is no news.
            asked = {str(one.query.path) for one in found}
            pairs = zip(ranked, rows, strict=True)
            shown = [(found[which].query, hit, row) for (which, hit), row in pairs if row.path not in asked]
            draw_matches(picture, engine.index, shown, found[0].query)
    seconds = {"extract": sum(one.extract for one in found)}
    for step in ("search", "verify"):
        seconds[step] = sum(one.answer.seconds[step] for one in found)
    seconds["total"] = sum(seconds.values())
    clipped = found[0].query.box
    return {
        "query": photos[0] if len(photos) == 1 else list(photos),
        "box": [round(value, 3) for value in clipped] if clipped is not None else None,
        "engine": options.engine,
        "expand": options.expand,
        "similarity": engine.describe_similarity(),
        "results": [
            _result(place + 1, hit, row, matrix)
            for place, (hit, row, matrix) in enumerate(zip(hits, rows, matrices, strict=True))
        ],
        "seconds": {step: round(value, 4) for step, value in seconds.items()},
    }


def combine(answers: Sequence[Sequence[Hit]], match_all: bool) -> list[tuple[int, Hit]]:
    """Make one ranking of the answers to one or several photos.

    Parameters
    ----------
    answers : sequence of sequence of Hit
        Each ranks the same images.
    match_all : bool
        An image counts as well as its worst answer (it must match all photos), or as its best (any will do).

    Returns
    -------
    list of (int, Hit)
        Place of the answer that counts, and what it says: by inliers, then score, then image number. One answer keeps
        its order.
    """
    if len(answers) == 1:
        return [(0, hit) for hit in answers[0]]
    best: dict[int, tuple[int, Hit]] = {}
    for which, hits in enumerate(answers):
        for hit in hits:
            strength = _strength(hit)
            known = _strength(best[hit.number][1]) if hit.number in best else None
            if known is None or (strength < known if match_all else strength > known):
                best[hit.number] = which, hit
    return sorted(best.values(), key=lambda one: (*(-value for value in _strength(one[1])), one[1].number))


def _strength(hit: Hit) -> tuple[int, float]:
    return hit.verification.inliers, hit.score


def _result(place: int, hit: Hit, row: ImageRow, matrix: np.ndarray | None) -> dict[str, Any]:
    return {
        "rank": place,
        "name": row.name,
        "path": row.path,
        "score": round(hit.score, 6),
        "inliers": hit.verification.inliers,
        "homography": matrix.tolist() if matrix is not None else None,
    }
