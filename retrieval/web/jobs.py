"""What the server's worker processes do: search a collection, explain a match, decode photos."""

import contextlib
import os
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError, Unreachable
from index.messages import Message
from index.options.declaration import said_elsewhere
from index.progress import silent
from retrieval.collection.collection import Collection, CollectionChanged
from retrieval.collection.summary import describe_collection
from retrieval.foreign.contract import FeaturesNeeded
from retrieval.groups.groups import read_groups
from retrieval.library.answers import Answer as FoundPhotos
from retrieval.library.cluster import ClusterWork
from retrieval.library.compiled import compile_all
from retrieval.library.filters import filter_of
from retrieval.library.groups import make_groups
from retrieval.library.matches import Match
from retrieval.library.photos import Photo, PhotoRow, cache_of, photo_named
from retrieval.library.sameness import look
from retrieval.library.searches import Searches
from retrieval.library.standing import find_everywhere
from retrieval.metadata.columns import CANVAS
from retrieval.metadata.pages import file_of
from retrieval.photos.apart import prepare_decoding
from retrieval.photos.decoding import read_colour_sized
from retrieval.photos.options import ImageOptions
from retrieval.photos.thumbnails import SIZES, encode_jpeg, refuse_other_content, thumbnail
from retrieval.photos.tiles import encode_part, read_part
from retrieval.photos.work import PhotoTooLarge
from retrieval.search.answers import QueryImage, ask_with_file, ask_with_photo
from retrieval.search.global_ranking import photos_like
from retrieval.search.options import SearchOptions
from retrieval.search.query import Box, PhotoUnusable
from retrieval.web.pool.workers import Answer, Refused, WorkerJobs
from retrieval.web.presentation import canvas_address

if TYPE_CHECKING:
    from retrieval.library.impressions import AlignedPhotos

MAX_PIXELS = 100_000_000
"""Pixels of an uploaded photo."""

QUALITY = 88  # of the JPEG files that are sent


@dataclass(frozen=True)
class ServedCollection:
    """The collection that is served."""

    folder: Path
    catalogue: str | None = None  # its address, if it is not in the folder
    similarity: Path | None = None  # file of a learnt similarity
    cluster: str | None = None  # address of the scheduler whose workers hold the collection; None: it is searched here
    shards: int = 1  # that the collection is cut into for them
    max_pixels: int = MAX_PIXELS  # of an upload


def photo_row(collection: Collection, number: int) -> PhotoRow:
    """Look an image up by its number; raises Refused if there is no such image."""
    try:
        return collection.catalogue.seen_images([number])[0]
    except KeyError:
        raise Refused("There is no photo {number} in this collection.", "missing", number=number) from None


class SearchJobs(WorkerJobs):
    """Searches one collection, which stays open between jobs and is reopened if it has changed."""

    def __init__(self, place: ServedCollection) -> None:
        prepare_decoding()  # for all forks of this process
        self._place = place
        self._searches: Searches | None = None
        self._aligned: tuple[Any, AlignedPhotos] | None = None  # the impressions of the last request
        self._cluster = ClusterWork(place.cluster, place.shards) if place.cluster is not None else None
        with contextlib.suppress(CairnError):  # the first job tells
            self.renew()

    def do(self, job: str, request: dict[str, Any]) -> Answer:
        """Do a job: `ready`, `collection`, `look`, `search`, `match`, `picture` and those of `_do`."""
        if self._searches is None:
            self.renew()
        try:
            return self._do(self._opened(), job, request)
        except (KeyError, CollectionChanged):  # a photo was removed since the collection was looked at
            self.renew()
            return self._do(self._opened(), job, request)
        except Unreachable as error:
            raise Refused(error.message, "cluster") from None

    def is_outdated(self) -> bool:
        """Whether the collection has changed since it was opened, or is not open."""
        return self._searches is None or self._searches.is_outdated()

    def renew(self) -> None:
        """Open the collection, or reopen what has changed; raises CairnError if it cannot be opened."""
        compile_all()
        searches, self._searches = self._searches, None
        if searches is None:
            opened = Collection.open(self._place.folder, catalogue=self._place.catalogue)
            searches = Searches(opened, self._cluster)
        try:
            searches.renew()
            searches.prepare(SearchOptions(similarity=self._place.similarity))
        except BaseException:
            searches.collection.catalogue.close()
            raise
        self._searches = searches

    def let_go(self) -> None:
        """Close the connections to the catalogue."""
        if self._searches is not None:
            self._searches.collection.catalogue.close()

    def _opened(self) -> Searches:
        assert self._searches is not None
        return self._searches

    def _do(self, searches: Searches, job: str, request: dict[str, Any]) -> Answer:
        match job:
            case "ready":
                searches.place()
                return {}, b""
            case "collection":
                return describe_collection(searches.collection), b""
            case "look":
                return look(searches).to_dict(), b""
            case "search":
                return self._search(searches, request), b""
            case "like":
                found = photos_like(searches.collection, request["like"], filter_of(request), request["top"])
                return {"found": found}, b""
            case "match":
                return self._match(searches, request).to_dict(), b""
            case "picture":
                return {}, self._picture(searches, request)
            case "impressions":
                return self._impressions(searches, request), b""
            case "print clock":
                return self._print_clock(searches, request), b""
            case "group":
                return self._annotate_group(searches, request), b""
            case "found":
                return self._annotate_found(searches, request), b""
            case "saved":
                return {"finds": [vars(one) for one in find_everywhere(searches, request["search"])]}, b""
            case _:
                raise ValueError(f"there is no job {job!r}")

    def _options(self, request: dict[str, Any]) -> SearchOptions:
        similarity = self._place.similarity
        if request["similarity"] and similarity is None:
            raise Refused("This server has no learnt similarity: start it with {--similarity} FILE.")
        if request["similarity"] is False:
            similarity = None
        return replace(said_elsewhere(SearchOptions, request), similarity=similarity)

    def _search(self, searches: Searches, request: dict[str, Any]) -> dict[str, Any]:
        images, answer = self._answer(searches, request)
        uploads = [one.content if one.max_pixels is not None else None for one in images]
        more = {"text_alone": answer.text_alone} if request["text"] else {}
        return answer.to_dict() | more | ({"uploads": uploads} if any(uploads) else {})

    def _answer(self, searches: Searches, request: dict[str, Any]) -> tuple[list[QueryImage], FoundPhotos]:
        options = self._options(request)
        images = [self._ask(searches.collection, wish) for wish in request["queries"]]
        with _refusing(images):
            answer = searches.search(
                images,
                options,
                wanted=filter_of(request),
                top=request["top"],
                match_all=request["match"] == "all",
            )
        return images, answer

    def _match(self, searches: Searches, request: dict[str, Any]) -> Match:
        options = self._options(request)
        row = photo_row(searches.collection, request["photo"])
        image = self._ask(searches.collection, request["queries"][0])
        with _refusing([image]):
            return searches.match(image, row, options, request["turn"], request.get("full", True))

    def _impressions(self, searches: Searches, request: dict[str, Any]) -> dict[str, Any]:
        """Align a photo with another one, and return the differences and four pictures."""
        from retrieval.library.impressions import align_photos, compare_aligned

        _refuse_other_files(searches.collection, request)
        options = self._options(request)
        row = photo_row(searches.collection, request["photo"])
        image = self._ask(searches.collection, request["queries"][0])
        most = searches.collection.options.image.max_pixels

        def match(other: PhotoRow) -> Match:
            return searches.match(image, other, options, request["turn"], request.get("full", True))

        with _comparing():
            aligned = compare_aligned(align_photos(image, [row], match, most_pixels=most, checked=True))
        shown = (aligned.photos[0].pixels, aligned.photos[1].pixels, aligned.overlay(1), aligned.residual(1))
        pictures = zip(("reference", "photo", "overlay", "residual"), shown, strict=True)
        summary = aligned.to_dict()
        return {
            **{name: summary[name] for name in ("box", "size")},
            **{name: value for name, value in summary["pairs"][0].items() if name not in ("first", "second")},
            "pictures": {name: _picture_address(pixels) for name, pixels in pictures},
        }

    def _print_clock(self, searches: Searches, request: dict[str, Any]) -> dict[str, Any]:
        """Read the print clock of impressions, and draw what was measured on each; or return its table."""
        from retrieval.library.impressions import align_photos, rows_beside
        from retrieval.library.print_clock import clock_key, dates_of, decisions_of, kept_decisions, read_clock

        collection, options, (query,) = searches.collection, self._options(request), request["queries"]
        image = self._ask(collection, query)
        rows = rows_beside(collection, image, [photo_row(collection, one).number for one in request["photos"]])
        everyone = [row for row in (image.row, *rows) if row is not None]
        mark = (query, options, [(row.number, row.sha256, row.name) for row in everyone])
        if self._aligned is None or self._aligned[0] != mark:
            most = collection.options.image.max_pixels
            with _comparing():
                found = align_photos(image, rows, lambda row: searches.match(image, row, options), most_pixels=most)
            self._aligned = mark, found
        found = self._aligned[1]
        stored = collection.catalogue.read(kept_decisions, clock_key(query["photo"], query["box"]))
        decisions = request["decisions"]
        clock = read_clock(found, stored if decisions is None else decisions_of(decisions), dates_of(collection, found))
        if request["table"]:
            return {"rows": clock.rows()}
        pictures = [_picture_address(clock.picture(place)) for place in range(len(clock.photos))]
        return clock.to_dict() | {"kept": asdict(stored), "pictures": pictures}

    def _annotate_group(self, searches: Searches, request: dict[str, Any]) -> dict[str, Any]:
        """Match linked photos of a group, or one of them with the others, and return annotations."""
        from retrieval.library.annotations import annotation_page, pairs_of_groups

        collection, number, photo = searches.collection, request["group"], request["photo"]
        found = read_groups(collection)
        groups = tuple(one for one in found.groups if one.number == number)
        if not groups:
            raise Refused(
                "There is no group {number}: the groups may have been searched for again.", "missing", number=number
            )
        pairs = pairs_of_groups(collection.catalogue, make_groups(collection, replace(found, groups=groups)))
        if photo is not None:
            pairs = [
                (group, one, other) if one.number == photo else (group, other, one)
                for group, one, other in pairs
                if photo in (one.number, other.number)
            ]
        start, end = request["start"], request["start"] + request["most"]
        options = SearchOptions(similarity=self._place.similarity, turns=1)  # links were found upright

        def compare(one: Photo, other: Photo) -> Match:
            image = self._ask(collection, {"photo": one.number, "box": None})
            return searches.match(image, photo_row(collection, other.number), options)

        page = annotation_page(pairs[start:end], compare, silent, _addresses(request))
        return {**page, "startIndex": start, "next": end if end < len(pairs) else None}

    def _annotate_found(self, searches: Searches, request: dict[str, Any]) -> dict[str, Any]:
        """Search with photos of the collection, and return the results as annotations."""
        from retrieval.library.annotations import answer_page

        _, answer = self._answer(searches, request)
        collection = searches.collection
        photo_of = partial(photo_named, collection.catalogue, cache=cache_of(collection.folder))
        return answer_page(answer, photo_of, _addresses(request))

    def _ask(self, collection: Collection, wish: dict[str, Any]) -> QueryImage:
        """Find one photo of a query: of the collection, by its number, or an upload, by its path."""
        box: Box | None = tuple(wish["box"]) if wish["box"] is not None else None
        if wish["photo"] is None:
            image = ask_with_file(collection, wish["name"], Path(wish["path"]), box)
            return replace(image, max_pixels=self._place.max_pixels)
        row = photo_row(collection, wish["photo"])
        try:
            return ask_with_photo(row, row.name or "", box)
        except CairnError as error:
            raise Refused(_without_place(error.message, row.path), "gone") from None

    def _picture(self, searches: Searches, request: dict[str, Any]) -> bytes:
        from retrieval.search.picture import PictureOptions

        _refuse_other_files(searches.collection, request)
        with tempfile.TemporaryDirectory(dir=request["scratch"]) as scratch:
            options = PictureOptions(tile=800, columns=1, lines=200)
            return self._match(searches, request).save_picture(Path(scratch) / "match.jpg", options).read_bytes()


def _picture_address(pixels: NDArray[np.uint8]) -> str:
    return "data:image/jpeg;base64," + b64encode(encode_jpeg(pixels, QUALITY)).decode()


def _refuse_other_files(collection: Collection, request: dict[str, Any]) -> None:
    """Refuse a match of photos whose files have changed since they were indexed."""
    numbers = [request["photo"], request["queries"][0]["photo"]]
    for row in (photo_row(collection, number) for number in numbers if number is not None):
        try:
            refuse_other_content(Path(row.path), row.sha256)
        except CairnError as error:
            raise Refused(error.message, "gone") from None


def _addresses(request: dict[str, Any]) -> Callable[[Photo], str]:
    """How photos are identified in annotations: by canvases of this server, or by those of the library that holds
    them.
    """

    def address_of(photo: Photo) -> str:
        is_elsewhere = CANVAS in photo.others and not request["own"]
        return "" if is_elsewhere else canvas_address(request["root"], photo.number)

    return address_of


@contextlib.contextmanager
def _comparing() -> Iterator[None]:
    """Refuse photos that do not agree enough to be compared."""
    from retrieval.impressions.frames import NotComparable

    try:
        yield
    except NotComparable as error:
        raise Refused("These photos cannot be overlaid: what they show does not agree.") from error


@contextlib.contextmanager
def _refusing(images: Sequence[QueryImage]) -> Iterator[None]:
    """Replace the path in an error about an upload by the upload's own name."""
    try:
        yield
    except PhotoUnusable as error:
        uploads = {one.path: one.name for one in images if one.max_pixels is not None}
        if error.path in uploads and isinstance(error.__cause__, CairnError):
            raise _unusable(uploads[error.path], error.__cause__) from None
        raise


class PictureJobs(WorkerJobs):
    """Decodes photos and encodes them as JPEG, so that only the pixels of a file are sent."""

    def __init__(self) -> None:
        prepare_decoding()  # for all forks of this process

    def do(self, job: str, request: dict[str, Any]) -> Answer:
        """Do one of the jobs `thumbnail`, `image`, `part`, `sheet` (of photos), `preview` (an upload)."""
        if job == "sheet":
            return {}, _sheet(request)
        path, size = Path(request["path"]), request["size"]
        try:
            if job == "part":
                cache, box = Path(request["cache"]), tuple(request["box"])
                limit = request["max_pixels"]
                part = read_part(path, request["sha256"], cache, request["level"], box, tuple(size), limit)
                return {}, encode_part(part, QUALITY, **request["form"])
            if job == "thumbnail":
                return {}, thumbnail(path, request["sha256"], size, Path(request["cache"]), request["max_pixels"])
            if job == "image":
                refuse_other_content(path, request["sha256"])
            options = ImageOptions(max_side=size, max_pixels=request["max_pixels"])
            pixels, width, height = read_colour_sized(path, options)
        except CairnError as error:
            if job == "preview":
                raise _unusable(request["name"], error) from None
            name = request["name"]
            if not os.path.isfile(file_of(path)):  # noqa: PTH113 (hides errors)
                raise Refused(
                    "The photo {name} cannot be shown: its file is no longer there. Connect its drive, or say where "
                    "its folder is now.",
                    "gone",
                    name=repr(name),
                ) from None
            raise Refused(
                "The photo {name} cannot be shown: {reason}.", "gone", name=repr(name), reason=error.message
            ) from None
        return {"width": width, "height": height}, encode_jpeg(pixels, QUALITY)


def _sheet(request: dict[str, Any]) -> bytes:
    from retrieval.web.taking.sheets import contact_sheet

    pictures: list[tuple[bytes | None, str]] = []
    for photo in request["photos"]:
        picture = None
        with contextlib.suppress(CairnError):  # its file is missing: a placeholder is drawn
            path, cache = Path(photo["path"]), Path(request["cache"])
            picture = thumbnail(path, photo["sha256"], SIZES[-1], cache, request["max_pixels"])
        pictures.append((picture, photo["caption"]))
    return contact_sheet(pictures, request["form"])


def _without_place(message: Message, path: str) -> Message:
    """Leave a path out of a message."""
    return Message(message.text, **{key: "" if str(one) == path else one for key, one in message.values.items()})


def _unusable(name: str, reason: CairnError) -> Refused:
    if isinstance(reason, FeaturesNeeded):
        return Refused(
            "The upload {name} cannot be searched for: another program described the photos of this collection, "
            "and only that can describe a new one. Search with a photo of the collection, or a box in one.",
            "photo",
            name=repr(name),
        )
    kind = "pixels" if isinstance(reason, PhotoTooLarge) else "photo"
    return Refused("The upload {name} cannot be used: {reason}.", kind, name=repr(name), reason=reason)
