"""From query photos to queries and their answers."""

import contextlib
import os
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.messages import Message, said
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.curation.hidden import hidden_photos
from retrieval.catalogue.curation.rejections import has_rejections, rejected_for
from retrieval.catalogue.photo_lookup import PhotoNotFound, photo_called
from retrieval.catalogue.photos import photo_of_content, photo_of_name
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.foreign.global_descriptors import described
from retrieval.metadata.pages import file_of, hash_photo
from retrieval.photos.options import ImageOptions
from retrieval.search.global_ranking import load_global
from retrieval.search.options import NO_GLOBAL
from retrieval.search.photos import NotHere
from retrieval.search.query import Box, PhotoUnusable, Query, QuerySource, extract_query, recall_described, recall_query
from retrieval.search.searcher import RankedAnswer, Searcher

IF_MOVED = said("if it was moved, run cairn index with the folder where it is now, and it is recognised by its content")
"""What mends that a photo's file is not where it was, to end a sentence with."""


@dataclass(frozen=True)
class QueryImage:
    """One photo of a query."""

    name: str  # its name in the answer
    path: Path
    box: Box | None = None  # part to search for; None: all of it
    row: ImageRow | None = None  # photo of the collection with this content, or whose file is missing
    content: str | None = None  # SHA-256 of the file, if known
    is_away: bool = False  # its file is missing: the stored features are used
    max_pixels: int | None = None  # largest size of its file; None: as for photos of the collection
    mirrored: bool = False  # whether to search for its mirror image


@dataclass(frozen=True)
class AnsweredQuery:
    """A query and its answer."""

    query: Query
    answer: RankedAnswer
    extract: float  # seconds


def find_photo(collection: Collection, photo: str, box: Box | None = None) -> QueryImage:
    """Find a query's photo; raises CairnError if there is no such photo.

    `photo`: its name in the collection, the path of any file, or a file name alone, if only one photo has it.
    """
    row = collection.catalogue.read(photo_of_name, photo)
    if row is None and os.path.isfile(file_of(photo)):  # noqa: PTH113 (Path.is_file raises where the name is too long)
        return ask_with_file(collection, photo, Path(photo), box)
    if row is None:
        row = photo_called(collection.catalogue, photo)
    if row is not None:
        return ask_with_photo(row, photo, box)
    raise PhotoNotFound(
        "There is no photo {name}: it is neither a file nor a name in the collection.", name=repr(photo)
    )


def ask_with_photo(row: ImageRow, name: str, box: Box | None = None) -> QueryImage:
    """Query with a photo of the collection, whose file may be missing; raises CairnError if it may not be read."""
    path = photo_file(row)
    if path is None:
        return QueryImage(name, Path(row.path), box, row, row.sha256, is_away=True)
    state = file_of(path).stat()
    if (state.st_size, state.st_mtime_ns) == (row.size, row.mtime_ns):
        return QueryImage(name, path, box, row, row.sha256)
    # Copied or restored folders often have other modification times.
    content = _content(path)
    return QueryImage(name, path, box, row if content is not None and content == row.sha256 else None, content)


def ask_with_file(collection: Collection, name: str, path: Path, box: Box | None = None) -> QueryImage:
    """Query with a file, which may be that of a photo of the collection, or a copy of it."""
    content = _content(path)
    row = collection.catalogue.read(photo_of_content, content) if content is not None else None
    return QueryImage(name, path, box, row, content)


def mirrored_of(images: Sequence[QueryImage]) -> list[QueryImage]:
    """Query with the mirror images of photos, made from their files; raises CairnError if one is missing."""
    for one in images:
        if one.is_away:
            raise PhotoUnusable(
                "The photo {name} is in the collection, but its file {path} is no longer there, and a search for its "
                "mirror image needs it: {if_moved}.",
                name=repr(one.name),
                path=one.path,
                if_moved=Message(IF_MOVED),
            )
    return [replace(one, mirrored=True) for one in images]


def _content(path: Path) -> str | None:
    """SHA-256 of a file; None if it cannot be read, which is reported when it is decoded."""
    try:
        return hash_photo(path)
    except OSError:
        return None


def photo_file(row: ImageRow) -> Path | None:
    """Return the file of a photo of the collection, None if it is missing; raises CairnError if it may not be read."""
    try:
        if stat.S_ISREG(os.stat(file_of(row.path)).st_mode):  # noqa: PTH116 (Path.is_file hides some errors)
            return Path(row.path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        pass
    except OSError as error:
        raise PhotoUnusable(
            "The photo {name} is in the collection, but its file {path} cannot be read ({reason}): check its rights "
            "and its drive.",
            name=repr(row.name),
            path=row.path,
            reason=error.strerror,
        ) from error
    return None


def search_photo(
    searcher: Searcher, image: QueryImage, among: NDArray[np.integer] | None = None, top: int | None = None
) -> AnsweredQuery:
    """Search for a photo, or for a box in one, among all photos or the given numbers: see `Searcher.search`."""
    start = time.perf_counter()
    query = make_query(searcher, image)
    extract = time.perf_counter() - start
    answer = searcher.search(query.views, among, region=query.region, top=top, global_row=query.global_row)
    query.rest()
    return AnsweredQuery(query, answer, extract)


def make_query(searcher: Searcher, query_image: QueryImage, image: ImageOptions | None = None) -> Query:
    """Make a query from indexed features if they suffice, else from its file, read by `image` or by the options of the
    collection; with its global descriptor, if the search needs it.
    """
    image = image or searcher.collection.options.image
    if searcher.options.global_descriptors == NO_GLOBAL:
        return _local_query(searcher, query_image, image)
    row = _global_row(searcher.collection, query_image, image)  # first: it says sooner that it cannot be had
    return replace(_local_query(searcher, query_image, image), global_row=row)


def _local_query(searcher: Searcher, query_image: QueryImage, image: ImageOptions) -> Query:
    if query_image.is_away and query_image.row is not None:
        return _stored_query(searcher, query_image, query_image.row)
    collection, options = searcher.collection, searcher.options
    source = QuerySource(collection.extractor, image, query_image.path, query_image.box, mirrored=query_image.mirrored)
    # If the collection limits features per photo, a box has too few of them indexed.
    is_indexed = query_image.box is None or not collection.options.features.regions.max_features
    is_indexed |= collection.extractor.reads_files  # features cannot be extracted from its pixels
    if query_image.row is not None and is_indexed and not query_image.mirrored:
        photos = searcher.index.images
        by_words = options.soft == 1 and not searcher.engine.needs_descriptors
        with contextlib.suppress(NotHere):  # then use its file
            if by_words:
                query = recall_query(
                    collection, query_image.row, source, options.turns, signed=options.signed, photos=photos
                )
                if query_image.box is None or len(query.views[0].words) or collection.options.features.ignore is None:
                    return query
            if collection.extractor.is_foreign and collection.options.keep_descriptors:
                features = collection.index.images.features(query_image.row.number)
                return recall_described(
                    collection, query_image.row, source, features, soft=options.soft, signed=options.signed
                )
    return extract_query(
        collection,
        source,
        options.turns,
        soft=options.soft,
        signed=options.signed,
        keep_descriptors=searcher.engine.needs_descriptors,
    )


def _global_row(collection: Collection, query_image: QueryImage, image: ImageOptions) -> NDArray[np.float32]:
    """The global descriptor (D,) of a query: stored, or computed from its file."""
    kept = collection.global_rows
    if kept is None:
        raise CairnError("{folder} has no global descriptors: add some with {cairn global}.", folder=collection.folder)
    if query_image.row is not None and query_image.box is None and not query_image.mirrored:
        row = kept.row_of(query_image.row.number)
        if row is not None:
            return row
    if kept.place is None:
        raise CairnError(
            "The global descriptors of {folder} come from a file, which has none of {name}: search for a whole photo "
            "that it has, or leave out {--global-descriptors}.",
            folder=collection.folder,
            name=Message(said("a part of {name}"), name=query_image.name)
            if query_image.box is not None
            else query_image.name,
        )
    if query_image.is_away:
        raise _unusable(query_image, Message(said("its file is not there")))
    extension = load_global(kept)
    try:
        return described(extension, query_image.path, image, query_image.box, mirrored=query_image.mirrored)
    except CairnError as error:
        raise _unusable(query_image, error.message) from error


def _unusable(query_image: QueryImage, reason: Message) -> PhotoUnusable:
    unusable = PhotoUnusable("The query {name} cannot be used: {reason}.", name=repr(query_image.name), reason=reason)
    unusable.path = query_image.path
    return unusable


def _stored_query(searcher: Searcher, image: QueryImage, row: ImageRow) -> Query:
    """Make an upright query from a photo whose file is missing: see `recall_query`.

    Words are stored for every photo, descriptors only if the collection keeps them. Raises PhotoUnusable if the search
    needs descriptors and they are not stored.
    """
    collection, options = searcher.collection, searcher.options
    source = QuerySource(collection.extractor, collection.options.image, image.path, image.box)
    if options.soft == 1 and not searcher.engine.needs_descriptors:
        query = recall_query(collection, row, source, signed=options.signed, photos=searcher.index.images)
    elif collection.options.keep_descriptors:
        features = collection.index.images.features(row.number)
        query = recall_described(collection, row, source, features, soft=options.soft, signed=options.signed)
    else:
        raise PhotoUnusable(
            "The photo {name} is in the collection, but its file {path} is no longer there: {if_moved}. This search "
            "needs more than what is stored of it.",
            name=repr(row.name),
            path=row.path,
            if_moved=Message(IF_MOVED),
        )
    return replace(query, views=[query.views[0]], source=None)


class LeftOut:
    """Photos that answers leave out: hidden ones, and those marked as no match of a query. Decisions are cached by the
    revision of the catalogue.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._revision: int | None = None
        self._hidden = np.zeros(0, np.int64)
        self._any_rejected = False

    def of(self, images: Sequence[QueryImage]) -> tuple[NDArray[np.int64], list[int]]:
        """Numbers of the photos that a query leaves out, ascending: hidden ones, and those marked as no match of one of
        its photos.
        """
        revision = self._catalogue.revision()
        if revision != self._revision:
            with self._catalogue.reading() as session:
                self._hidden = np.array(sorted(hidden_photos(session)), np.int64)
                self._any_rejected = has_rejections(session)
            self._revision = revision
        rejected: set[int] = set()
        for one in images if self._any_rejected else ():
            number = one.row.number if one.row is not None else None
            rejected.update(self._catalogue.read(rejected_for, number, one.content))
        return self._hidden, sorted(rejected)
