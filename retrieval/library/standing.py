"""Saved searches: their queries, and running them on photos that were added since, or on all."""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from index.errors import CairnError
from index.options.declaration import said_elsewhere
from index.progress import Progress, silent
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.curation.rejections import reject, rejected_for
from retrieval.catalogue.curation.saved import (
    Find,
    StoredSearch,
    keep_finds,
    photo_of_search,
    save_search,
    saved_search,
    saved_searches,
)
from retrieval.catalogue.photo_lookup import PhotoNotFound
from retrieval.catalogue.photos import rows_of
from retrieval.collection.collection import Collection
from retrieval.library.filters import filter_of
from retrieval.library.searches import Searches
from retrieval.search.answers import QueryImage, ask_with_file, ask_with_photo
from retrieval.search.options import SearchOptions
from retrieval.search.probability import LIKELY

STEP = "searches"
"""What the progress of `ask_standing` calls its one step."""

MOST = 1000
"""Photos that a search of all may find: as many are verified."""


@dataclass(frozen=True)
class Asking:
    """Result of one saved search among new photos, or all."""

    search: StoredSearch
    asked: int  # number of photos searched
    found: tuple[int, ...] = ()  # numbers of the photos found, the best first
    problem: str = ""  # error of the search; "" if it succeeded. It is tried again with the same photos


SENT_SIDE = 2048
"""Longer side, in pixels, of a stored query photo that is not in the collection: more than searches use."""


@dataclass(frozen=True)
class SentPhoto:
    """A query photo that is not in the collection."""

    sha256: str  # of the original file
    picture: bytes  # the stored JPEG copy
    factor: float  # ratio of pixels of the copy to those of the original


def keep_search(
    session: Session,
    name: str,
    queries: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
    sent: SentPhoto | None = None,
    **more: Any,
) -> int:
    """Save a search, with its query photo if that is not in the collection; return its number.

    Each query has ``photo``, a number, missing for a photo outside the collection; and ``box``. For `more` see
    `save_search`. Boxes are in pixels of `sent`, the photo outside; its rejections are copied to the stored copy.
    """
    stored, picture = [dict(one) for one in queries], None
    if sent is not None:
        picture = sent.picture
        for one in stored:
            if one.get("photo") is None and one.get("box") is not None:  # the centre of the first pixel is at (0, 0)
                one["box"] = [(value + 0.5) * sent.factor - 0.5 for value in one["box"]]
        if rejected := rejected_for(session, None, sent.sha256):
            reject(session, hashlib.sha256(picture).hexdigest(), rejected)
    return save_search(session, name, {"queries": stored, "options": dict(options)}, picture, **more)


def ask_standing(
    collection: Collection,
    *,
    progress: Progress = silent,
) -> list[Asking]:
    """Run each standing search on the photos added since its last run, and store its finds.

    Each is one search restricted to new photos: they are scored as in a search of the whole collection, and the best of
    them are verified. Photos found get the tag of the search, if it has one.
    """
    standing = [one for one in collection.catalogue.read(saved_searches) if one.standing]
    if not standing:
        return []
    numbers = collection.catalogue.read(numbers_of)
    runs: list[Asking] = []
    searches: Searches | None = None
    for done, search in enumerate(standing, start=1):
        new = numbers[numbers >= search.asked_to]
        asking = Asking(search, len(new))
        if len(new):
            try:
                searches = searches or Searches(collection)
                finds = find_among(searches, search, new)
                collection.catalogue.write(keep_finds, search.id, finds, int(new[-1]) + 1)
                asking = replace(asking, found=tuple(one.number for one in finds))
            except CairnError as error:
                asking = replace(asking, problem=str(error))
            except KeyError:  # a photo was removed while it was searched
                asking = replace(asking, problem=f"{collection.folder} changes while it is searched: try again.")
                searches = None
        runs.append(asking)
        progress(STEP, done, len(standing))
    return runs


def ask_all(collection: Collection, search: StoredSearch) -> Asking:
    """Run a saved search on all photos, and store its finds: see `keep_finds`."""
    finds = find_everywhere(Searches(collection), search.id)
    collection.catalogue.write(keep_finds, search.id, finds, None)
    return Asking(search, len(collection.catalogue.read(numbers_of)), tuple(one.number for one in finds))


def find_everywhere(searches: Searches, search: int) -> list[Find]:
    """Run a saved search, by its number, on all photos: see `find_among`."""
    return find_among(searches, searches.collection.catalogue.read(saved_search, search), None)


def find_among(searches: Searches, search: StoredSearch, numbers: NDArray[np.integer] | None) -> list[Find]:
    """Run a saved search on some photos, or on all; return its finds, the best first.

    Among some photos, only sure finds; among all, at most `MOST`, including likely ones, as a user reviews them. Raises
    CairnError if a query photo is missing, or the collection lacks data that the search needs.
    """
    collection = searches.collection
    how = search.query.get("options", {})
    options = said_elsewhere(SearchOptions, how)
    if numbers is None:
        options = replace(options, verification=replace(options.verification, depth=MOST))
    with tempfile.TemporaryDirectory(prefix="cairn-") as scratch:
        query_images = _query_images(collection, search, Path(scratch))
        answer = searches.search(
            query_images,
            options,
            wanted=filter_of(how),
            top=MOST if numbers is None else len(numbers),
            match_all=how.get("match") == "all",
            within=numbers,
        )
    return [
        Find(one.number, one.probability, [[x, y] for x, y in one.region] if one.region is not None else None)
        for one in answer
        if one.found or (numbers is None and one.probability >= LIKELY)
    ]


def _query_images(collection: Collection, search: StoredSearch, scratch: Path) -> list[QueryImage]:
    """The photos of a saved search, the one from elsewhere as a file in a folder."""
    query_images = []
    for one in search.query.get("queries", []):
        box = tuple(float(value) for value in one["box"]) if one.get("box") else None
        number = one.get("photo")
        if number is None:
            photo = collection.catalogue.read(photo_of_search, search.id)
            if photo is None:
                raise PhotoNotFound(
                    "The photo of the saved search {name} is missing: save it again.", name=repr(search.name)
                )
            path = scratch / "photo.jpg"
            path.write_bytes(photo)
            query_images.append(ask_with_file(collection, one.get("name") or "photo", path, box))  # type: ignore[arg-type]
            continue
        try:
            row = collection.catalogue.read(rows_of, [int(number)])[0]
        except KeyError:
            raise PhotoNotFound(
                "A query photo of the saved search {name} was removed from the collection.",
                name=repr(search.name),
            ) from None
        query_images.append(ask_with_photo(row, row.name or "", box))  # type: ignore[arg-type]
    if not query_images:
        raise PhotoNotFound("The saved search {name} has no query: save it again.", name=repr(search.name))
    return query_images
