"""Matches of two photos, which can be printed and drawn."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from index.attributes import some_of
from index.docstrings import documented
from index.text import likely
from retrieval.features.encoding import CENTRE_ERROR, decode_geometry
from retrieval.features.kept import nearest_frames, places_of
from retrieval.library.answers import QueryPhoto, Shown, _Drawn, facts_of_hit, query_photo
from retrieval.library.photos import PageNumber

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from index.segments.segment import ImageFeatures
    from retrieval.catalogue.schema import ImageRow
    from retrieval.regions.geometry import Frames
    from retrieval.search.answers import QueryImage
    from retrieval.search.picture import PictureOptions
    from retrieval.search.query import Query
    from retrieval.search.ranking import Hit
    from retrieval.search.searcher import Searcher


@documented
@dataclass(frozen=True, eq=False, repr=False)
class Match(_Drawn):
    """The match of a query with one photo of a collection."""

    query: Annotated[QueryPhoto, "The query photo."]
    name: Annotated[str, "Name of the other in the collection."]
    path: Annotated[str, "Its file."]
    number: Annotated[int, "Its number."]
    width: Annotated[int | None, "Pixels of its upright original."]
    height: Annotated[int | None, "Pixels of its upright original."]
    score: Annotated[float, "Similarity by the engine."]
    inliers: Annotated[int, "Matches that agree on one map; 0 without a map."]
    probability: Annotated[float, "That both show the same, 0 to 1."]
    found: Annotated[bool, "Whether that is sure."]
    homography: Annotated[
        NDArray[np.float64] | None,
        "(3, 3)",
        "Maps pixels of the query photo to pixels of the other.",
    ]
    region: Annotated[list[list[float]] | None, "Outline (x, y) of the query in the other, clipped to it."]
    turn: Annotated[float, "Angle in radians, clockwise, at which the query was found."]
    query_ellipses: Annotated[
        NDArray[np.float32],
        "(N, 5)",
        "Matched regions of the query: x, y, a, b, c with a(u-x)² + 2b(u-x)(v-y) + c(v-y)² = 1, pixels of "
        "the upright original.",
    ] = field(repr=False)
    photo_ellipses: Annotated[NDArray[np.float32], "(N, 5)", "Matched regions of the photo, likewise."] = field(
        repr=False
    )
    page: PageNumber = None
    indices: Annotated[
        NDArray[np.int32],
        "(N, 2)",
        "Matched features: row of the query's, row of the photo's, in the order of `Collection.features`. "
        "The query's are -1 if it is no photo of the collection.",
    ] = field(default_factory=lambda: np.zeros((0, 2), np.int32), repr=False)

    def __repr__(self) -> str:
        return f"<Match of {self.query.name!r} and {self.name!r}: {self.inliers} inliers, {likely(self.probability)}>"

    @cached_property
    def is_of_text(self) -> bool:
        """Whether the matches lie in printed text in both photos; reads their files at first access.

        False if a file has changed since it was indexed.
        """
        return self._shown is not None and bool(self._shown.text_alone())

    def to_dict(self) -> dict[str, Any]:
        """Return the match as the server's ``/api/match`` does."""
        here, there = _short(self.query_ellipses), _short(self.photo_ellipses)
        return {
            "query": self.query.to_dict(),
            "number": self.number,
            "score": round(self.score, 6),
            **some_of(self, "inliers", "probability", "found"),
            "homography": self.homography.tolist() if self.homography is not None else None,
            **some_of(self, "region", "turn", "is_of_text"),
            "matches": [
                {"query": one[:2], "photo": other[:2], "query_ellipse": one[2:], "photo_ellipse": other[2:]}
                for one, other in zip(here, there, strict=True)
            ],
        }

    def save_picture(self, path: str | Path, options: "PictureOptions | None" = None) -> Path:
        """Write a picture of both photos and their matches.

        Parameters
        ----------
        path : path-like
            Output file; .jpg or .png.
        options : PictureOptions, optional
            Sizes.

        Returns
        -------
        Path
            The picture.

        Raises
        ------
        CairnError
            It cannot be written there, or this is a copy, or comes from a pickle.
        """
        return self._draw(path, options)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw both photos side by side with their matches, with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw in; new axes otherwise.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        CairnError
            Matplotlib is not installed.
        """
        from retrieval.library.display.pictures import picture_of
        from retrieval.library.display.plots import plot_match

        return plot_match(self, picture_of(self.query), picture_of(self), self.query.box, ax)

    def _repr_html_(self) -> str:
        from retrieval.library.display.markup import match_html
        from retrieval.library.display.pictures import picture_of

        return match_html(self, picture_of(self.query), picture_of(self), self.query.box)


def make_match(searcher: "Searcher", query_image: "QueryImage", query: "Query", row: "ImageRow", hit: "Hit") -> Match:
    """Make the match of a query and a photo from a hit of the searcher."""
    image = searcher.index.images.features(hit.number)
    matches = hit.verification.matches
    frames = decode_geometry(image.columns, matches[:, 1])
    match = Match(
        query=query_photo(query_image, query),
        score=hit.score,
        query_ellipses=query.ellipses(hit.view, matches[:, 0]),
        photo_ellipses=frames.ellipses(max(row.width or 1, row.height or 1)),
        indices=_indices(searcher, query_image, query.views[hit.view].frames, matches, image),
        **facts_of_hit(query, hit, row, image),
    )
    vars(match)["_shown"] = Shown(searcher, [(query, hit, row)], query, [query_image])
    return match


def _indices(
    searcher: "Searcher",
    query_image: "QueryImage",
    frames: "Frames",
    matches: NDArray[np.integer],
    image: "ImageFeatures",
) -> NDArray[np.int32]:
    """Rows (N, 2) of matched features in the order of `kept_features`."""
    indices = np.full((len(matches), 2), -1, np.int32)
    indices[:, 1] = places_of(image)[matches[:, 1]]
    if query_image.row is not None and not query_image.mirrored:
        own = searcher.index.images.features(query_image.row.number)
        # The query may have been described again, in another order or within a box: match its features by place.
        kept = decode_geometry(own.columns, np.arange(len(own.words)))
        rows = nearest_frames(frames.at(matches[:, 0]), kept, 2 * CENTRE_ERROR)
        indices[:, 0] = np.where(rows < 0, -1, places_of(own)[rows])
    return indices


def _short(ellipses: NDArray[np.float32]) -> list[list[float]]:
    """Ellipse rows (N, 5) with seven significant digits, the precision of a float32."""
    return [[float(f"{value:.7g}") for value in row] for row in ellipses.tolist()]
