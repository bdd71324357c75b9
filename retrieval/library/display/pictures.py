"""Display of a photo: a thumbnail if available, and the certainty of a result in words."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from index.errors import CairnError
from index.text import likely, printable, printable_name
from retrieval.library.parts.images import as_colour
from retrieval.metadata.pages import page_path
from retrieval.photos.decoding import read_colour
from retrieval.photos.options import ImageOptions
from retrieval.photos.thumbnails import encode_jpeg

_TILE = 256  # one of the sizes that collections keep
Box = Sequence[float]
"""x0, y0, x1, y1 in pixels of the upright photo."""


@dataclass(frozen=True)
class Picture:
    """A photo to display."""

    name: str
    width: int | None  # pixels of the upright original, the units of boxes, regions and ellipses; None if unknown
    height: int | None
    path: "str | PathLike[str] | None" = None  # its file; None if it is only in memory
    pixels: ArrayLike | None = None  # its pixels, as for `as_image`, if they are in memory: then no file is read
    # returns a stored thumbnail (JPEG) of a size; raises CairnError if it is missing
    kept: Callable[[int], bytes] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height; those of a square if unknown."""
        return (self.width, self.height) if self.width and self.height else (1, 1)

    @property
    def label(self) -> str:
        """The name as it can be shown in one line, whatever it is."""
        return printable_name(printable(self.name))

    def thumbnail(self, side: int) -> NDArray[np.uint8]:
        """Read the photo, reduced to a limit of its longer side: RGB (H, W, 3) uint8; errors give only the reason."""
        if self.pixels is not None:
            return as_colour(self.pixels, side)
        if self.path is None:
            raise CairnError("its pixels are not kept")
        return read_colour(Path(self.path), ImageOptions(max_side=side))

    def tile(self) -> bytes:
        """Return the photo as a JPEG with a longer side of at most 256 pixels."""
        if self.kept is not None:
            with contextlib.suppress(CairnError):  # reading the file then gives the reason
                return self.kept(_TILE)
        return encode_jpeg(self.thumbnail(_TILE))


class ShownPhoto(Protocol):
    """The attributes of a photo of a collection that are displayed."""

    @property
    def name(self) -> str:
        """Its name in the collection."""

    @property
    def path(self) -> Any:
        """Its file."""

    @property
    def width(self) -> int | None:
        """Pixels of the upright original."""

    @property
    def height(self) -> int | None:
        """Pixels of the upright original."""


class MatchSummary(Protocol):
    """Certainty that two photos show the same, and the region of one in the other."""

    @property
    def inliers(self) -> int:
        """Number of matches that agree on one map."""

    @property
    def probability(self) -> float:
        """That both show the same, 0 to 1."""

    @property
    def found(self) -> bool:
        """Whether that is sure."""

    @property
    def region(self) -> Sequence[Sequence[float]] | None:
        """Corners [x, y] of the query, or its box, in the photo, in the photo's pixels."""


class ResultPicture(ShownPhoto, MatchSummary, Protocol):
    """A photo of an answer."""

    @property
    def rank(self) -> int:
        """1 for the best."""

    @property
    def query_index(self) -> int:
        """Which of several queries it was found by, from 0."""


class MatchPicture(MatchSummary, Protocol):
    """A match of two photos."""

    @property
    def query_ellipses(self) -> NDArray[np.float32]:
        """Regions (N, 5) of the inliers in the query: rows x, y, a, b, c, pixels."""

    @property
    def photo_ellipses(self) -> NDArray[np.float32]:
        """Regions (N, 5) of the inliers in the photo; row by row those of `query_ellipses`."""


def picture_of(photo: ShownPhoto) -> Picture:
    """A photo of a collection as a picture."""
    path = str(page_path(photo.path, getattr(photo, "page", None)))
    return Picture(photo.name, photo.width, photo.height, path, kept=getattr(photo, "thumbnail", None))


def strength(match: MatchSummary) -> str:
    """In words how sure a result is: "sure (98%)" or "perhaps (63%)"."""
    return f"{'sure' if match.found else 'perhaps'} ({likely(match.probability)})"


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 photo", "12 photos"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
