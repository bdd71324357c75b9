"""Answers to searches: small objects that can be printed, tabulated and drawn."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, overload

import numpy as np
from numpy.typing import NDArray

from index.attributes import some_of
from index.docstrings import documented
from index.errors import CairnError
from retrieval.library.photos import PageNumber
from retrieval.metadata.pages import split_page
from retrieval.search.homography import homography, may_fix
from retrieval.search.outlines import found_region
from retrieval.search.probability import LIKELY
from retrieval.search.query import Box
from retrieval.search.ranking import combine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from index.segments.segment import ImageFeatures
    from retrieval.catalogue.filters import PhotoFilter
    from retrieval.catalogue.schema import ImageRow
    from retrieval.search.answers import AnsweredQuery, QueryImage
    from retrieval.search.picture import PictureOptions
    from retrieval.search.query import Query
    from retrieval.search.ranking import Hit
    from retrieval.search.searcher import Searcher


@documented
@dataclass(frozen=True)
class QueryPhoto:
    """A photo that was searched for, or a box in one."""

    name: Annotated[str, "A name in the collection, or a file."]
    path: Annotated[str, "Its file."]
    width: Annotated[int, "Pixels of the upright original."]
    height: Annotated[int, "Pixels of the upright original."]
    box: Annotated[
        Box | None, "x0, y0, x1, y1 in pixels of the upright original, clipped to it; None for the whole photo."
    ]
    remarks: Annotated[
        tuple[str, ...],
        'Remarks on how a file that is not in the collection was read, such as "the lowest 3% are missing".',
    ] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return name, width, height and box, as ``/api/match`` does."""
        return {"name": self.name, "width": self.width, "height": self.height, "box": _rounded(self.box)}


@documented
@dataclass(frozen=True)
class Result:
    """One photo of an answer."""

    rank: Annotated[int, "Place in the answer, from 1."]
    name: Annotated[str, "Name of the photo in the collection."]
    title: Annotated[str | None, "Title, if known."]
    path: Annotated[str, "Its file."]
    score: Annotated[float, "Similarity by the engine: 0 for nothing in common."]
    inliers: Annotated[
        int, "Matches that agree on one map between the photos; 0 if geometry does not confirm the photo."
    ]
    probability: Annotated[float, "That it shows the same, 0 to 1: calibrated, see the page on verification."]
    found: Annotated[bool, "Whether it is sure."]
    homography: Annotated[
        NDArray[np.float64] | None,
        "(3, 3)",
        "Maps pixels of the query photo to pixels of this one.",
    ] = field(compare=False)
    number: Annotated[int, "Number of the photo in the collection."]
    width: Annotated[int | None, "Pixels of the upright original."]
    height: Annotated[int | None, "Pixels of the upright original."]
    query_index: Annotated[int, "Number of the query that it matches, if there are several."]
    turn: Annotated[float, "Angle in radians, clockwise, at which the query was found."]
    region: Annotated[
        list[list[float]] | None, "Corners (x, y) of the query's box, or of all of it, in the photo, clipped to it."
    ] = field(hash=False)
    page: PageNumber = None
    mirrored: Annotated[bool, "Whether it shows the mirror image of the query."] = False
    full: Annotated[bool, "Whether all features of the query were looked up at that turn, as they are upright."] = True

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes, as ``cairn query --json`` prints them."""
        matrix = self.homography.tolist() if self.homography is not None else None
        return {**vars(self), "homography": matrix}


@dataclass(frozen=True)
class Shown:
    """Data that an answer or a match was made from, to draw it."""

    searcher: "Searcher"
    found: "Sequence[tuple[Query, Hit, ImageRow]]"
    query: "Query"
    query_images: "Sequence[QueryImage]"  # whose files may last no longer than these

    def text_alone(self, least: float = 0.0) -> tuple[int, ...]:
        """Numbers of the photos whose matches lie in printed text, in both photos, of those with that probability.

        It reads their files. Photos whose files have changed since they were indexed, or cannot be read, are left out.
        """
        from retrieval.features.encoding import decode_geometry
        from retrieval.features.text import PrintedText
        from retrieval.photos.thumbnails import refuse_other_content

        texts: dict[Path, PrintedText] = {}  # of the query photos
        numbers = []
        for query, hit, row in self.found:
            matches = hit.verification.matches
            if not hit.verification.inliers or hit.probability < least:
                continue
            with suppress(CairnError):
                text = texts.setdefault(query.path, PrintedText(query.path))
                if not text.holds(query.ellipses(hit.view, matches[:, 0])[:, :2]):
                    continue
                if not refuse_other_content(Path(row.path), row.sha256):
                    continue
                frames = decode_geometry(self.searcher.index.images.features(hit.number).columns, matches[:, 1])
                places = frames.ellipses(max(row.width or 1, row.height or 1))[:, :2]
                if PrintedText(Path(row.path)).holds(places):
                    numbers.append(hit.number)
        return tuple(numbers)


class _Drawn:
    """An answer or a match. It can be drawn while its data is in this process; a copy cannot."""

    _shown: Shown | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "_shown"}

    def _draw(self, path: str | Path, options: "PictureOptions | None" = None) -> Path:
        from retrieval.search.picture import check_picture, draw_matches

        path = Path(path)
        check_picture(path)
        if self._shown is None:
            raise CairnError(
                "A copy of an answer has no features to draw: save the picture of the answer itself, or search again."
            )
        draw_matches(path, self._shown.searcher.index, self._shown.found, self._shown.query, options)
        return path


@documented
@dataclass(frozen=True, eq=False, repr=False)
class Answer(_Drawn, Sequence[Result]):
    """The photos that show what a query shows, the best first: a sequence of `Result`.

    ``pandas.DataFrame(answer)`` has a row for each. In a notebook it shows the photos with the regions found. For
    `save_picture` it holds the features of its query, about a megabyte, and the searched collection; a pickle or a copy
    does not: to store many, use ``copy.copy(answer)`` or ``answer.to_dict()``.

    Examples
    --------
    >>> answer = collection.search("church.jpg")  # doctest: +SKIP
    >>> [result.name for result in answer.found]  # doctest: +SKIP
    ['rome/042.jpg', 'rome/044.jpg']
    """

    queries: Annotated[tuple[QueryPhoto, ...], "The query photos, one or several."]
    results: Annotated[tuple[Result, ...], "The photos, the best first."]
    engine: Annotated[str, "Method of ranking."]
    expand: Annotated[str, "Method of query expansion."]
    global_descriptors: Annotated[str, "Use of global descriptors: none, shortlist, fused or alone."]
    augmented: Annotated[bool, "Whether photos were scored with features borrowed from linked ones."]
    similarity: Annotated[dict[str, Any] | None, "The learnt similarity of words that they were scored by."]
    filter: Annotated[dict[str, Any] | None, "The conditions of the filter that were set."]
    passing: Annotated[int | None, "Number of photos that pass the filter."]
    turned: Annotated[bool, "Whether the query was tried at other turns than upright."]
    sure: Annotated[bool, "Whether other turns can hardly change the answer."]
    missing_shards: Annotated[
        tuple[int, ...], "Parts of the collection that were not searched, as no worker of the cluster held them."
    ]
    seconds: Annotated[dict[str, float], "Time of the steps: extract, search, verify, total."]
    rejected: Annotated[
        tuple[int, ...], "Numbers of photos that are left out, as they were marked as no match of the query."
    ] = ()

    def __repr__(self) -> str:
        return f"<Answer to {self.query!r}: {len(self.found)} found, {len(self) - len(self.found)} perhaps>"

    def __len__(self) -> int:
        return len(self.results)

    @overload
    def __getitem__(self, place: int) -> Result: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Result, ...]: ...
    def __getitem__(self, place: int | slice) -> Result | tuple[Result, ...]:
        return self.results[place]

    @property
    def query(self) -> str | list[str]:
        """Name of the query photo, or a list of several."""
        names = [one.name for one in self.queries]
        return names[0] if len(names) == 1 else names

    @property
    def box(self) -> Box | None:
        """The box of a single query; None without a box."""
        return self.queries[0].box if len(self.queries) == 1 else None

    @property
    def found(self) -> tuple[Result, ...]:
        """The results that are found for sure."""
        return tuple(one for one in self.results if one.found)

    @cached_property
    def text_alone(self) -> tuple[int, ...]:
        """Numbers of results, found or likely, whose matches lie in printed text in both photos; reads their files at
        first access. The same type looks alike on different pages, so they may show nothing else that is the same.
        """
        return self._shown.text_alone(LIKELY) if self._shown is not None else ()

    def to_pairs(self) -> list[tuple[str, str]]:
        """Return the names of query and result of each result, as lists of pairs for hloc have them.

        Returns
        -------
        list of (str, str)
            In the order of the results; of several queries, the one that the result matches.
        """
        return [(self.queries[one.query_index].name, one.name) for one in self.results]

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as ``cairn query --json`` prints it; ``rejected`` and ``remarks`` only if there are any."""
        remarks = [{"name": one.name, "reason": reason} for one in self.queries for reason in one.remarks]
        boxes = [_rounded(one.box) for one in self.queries]
        return {
            "query": self.query,
            "box": boxes[0] if len(boxes) == 1 else None,
            "boxes": boxes,
            **some_of(self, "engine", "expand", "global_descriptors", "augmented", "similarity"),
            **some_of(self, "filter", "passing", "turned", "sure"),
            "missing_shards": list(self.missing_shards),
            "results": [one.to_dict() for one in self.results],
            "seconds": self.seconds,
            **({"rejected": list(self.rejected)} if self.rejected else {}),
            **({"remarks": remarks} if remarks else {}),
        }

    def save_picture(self, path: str | Path) -> Path:
        """Write a picture of the best matches: the box, the inliers, the lines between them.

        Parameters
        ----------
        path : path-like
            Output file; .jpg or .png.

        Returns
        -------
        Path
            The picture.

        Raises
        ------
        CairnError
            It cannot be written there, or this object is a copy or was unpickled.
        """
        return self._draw(path)

    def plot(self) -> "Figure":
        """Draw the query and the best results with matplotlib; return the figure.

        Raises
        ------
        CairnError
            Matplotlib is not installed.
        """
        from retrieval.library.display.pictures import picture_of
        from retrieval.library.display.plots import plot_answer

        axes = plot_answer(self, [picture_of(one) for one in self.queries], [one.box for one in self.queries])
        return cast("Figure", axes[0].figure)

    def _repr_html_(self) -> str:
        from retrieval.library.display.markup import answer_html
        from retrieval.library.display.pictures import picture_of

        boxes = [one.box for one in self.queries]
        return answer_html(self, [picture_of(one) for one in self.queries], boxes, seconds=self.seconds["total"])


def make_answer(
    searcher: "Searcher",
    query_images: "Sequence[QueryImage]",
    found: "Sequence[AnsweredQuery]",
    *,
    top: int,
    match_all: bool = False,
    wanted: "PhotoFilter | None" = None,
    passing: NDArray[np.integer] | None = None,
    rejected: Sequence[int] = (),
) -> Answer:
    """Make the answer to some queries: the photos that have something in common with them, the best first.

    `found` has the result of each query, optionally followed by those of their mirror images. `passing` are the photos
    that pass the filter `wanted`; `rejected` are marked as no match. Raises KeyError if a photo was removed from the
    collection since it was opened.
    """
    rankings = searcher.aligned([one.answer for one in found], match_all=match_all, top=top)
    ranked = [
        (which, hit) for which, hit in combine(rankings, match_all, top) if hit.score > 0 or hit.verification.inliers
    ]
    rows = searcher.collection.catalogue.seen_images([hit.number for _, hit in ranked])
    mapped = [hit.number for _, hit in ranked if may_fix(hit)]
    images = dict(zip(mapped, searcher.index.images.features_of(mapped), strict=True))
    seconds = {step: sum(one.answer.seconds[step] for one in found) for step in ("extract", "search", "verify")}
    seconds["extract"] += sum(one.extract for one in found)
    seconds["total"] = sum(seconds.values())
    own = {str(one.path) for one in query_images}  # a photo of the collection does not count itself as found
    answer = Answer(
        queries=tuple(map(query_photo, query_images, (one.query for one in found))),  # without mirrored ones
        results=tuple(
            _result(place, which % len(query_images), found[which].query, hit, row, images.get(hit.number))
            for place, ((which, hit), row) in enumerate(zip(ranked, rows, strict=True), 1)
        ),
        engine=searcher.options.engine,
        expand=searcher.options.expand,
        global_descriptors=searcher.options.global_descriptors,
        augmented=searcher.index.borrows,
        similarity=searcher.describe_similarity(),
        filter=wanted.describe() if wanted else None,
        passing=len(passing) if wanted and passing is not None else None,
        turned=any(one.answer.turned for one in found),
        sure=all(one.answer.sure for one in found),
        missing_shards=tuple(sorted({shard for one in found for shard in one.answer.missing})),
        seconds={step: round(value, 4) for step, value in seconds.items()},
        rejected=tuple(rejected),
    )
    others = [
        (found[which].query, hit, row) for (which, hit), row in zip(ranked, rows, strict=True) if row.path not in own
    ]
    vars(answer)["_shown"] = Shown(searcher, others, found[0].query, query_images)
    return answer


def query_photo(query_image: "QueryImage", query: "Query") -> QueryPhoto:
    """Return which photo was searched for."""
    # Indexing has reported the remarks of photos of the collection.
    remarks = query.remarks.sentences() if query_image.row is None else ()
    return QueryPhoto(query_image.name, str(query_image.path), query.width, query.height, query.box, tuple(remarks))


def _result(
    place: int, which: int, query: "Query", hit: "Hit", row: "ImageRow", image: "ImageFeatures | None"
) -> Result:
    return Result(
        rank=place,
        title=row.title,
        score=round(hit.score, 6),
        query_index=which,
        mirrored=query.mirrored,
        full=query.is_full_at(hit.view),
        **facts_of_hit(query, hit, row, image),
    )


def facts_of_hit(query: "Query", hit: "Hit", row: "ImageRow", image: "ImageFeatures | None") -> dict[str, Any]:
    """Attributes that a `Result` and a `Match` have."""
    matrix = homography(hit, query, row, image)
    file, page = split_page(row.path)
    return {
        **some_of(row, "number", "width", "height"),
        **some_of(hit, "probability", "found"),
        "name": row.name or "",
        "path": str(file),
        "page": page,
        "inliers": hit.verification.inliers,
        "homography": matrix,
        "region": found_region(query, matrix, row.width, row.height),
        "turn": round(query.views[hit.view].turn, 6),
    }


def _rounded(box: Box | None) -> list[float] | None:
    return [round(value, 3) for value in box] if box is not None else None
