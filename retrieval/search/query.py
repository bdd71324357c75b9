"""A query: the features of a photo, or of a box drawn in one, seen upright and at several turns."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.segment import ImageFeatures
from index.vocabulary import Vocabulary
from retrieval.collection.collection import Collection
from retrieval.features.encoding import decode_geometry, frames_of
from retrieval.features.extraction import Extractor
from retrieval.matching.word_matches import QueryWords
from retrieval.photos.decoding import ImageOptions, read_photo
from retrieval.regions.geometry import Frames

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 in pixels of the upright original."""


TURNED_REGIONS = 2_000
"""Regions described at other turns than upright; measured, see docs/decisions.md."""


@dataclass(frozen=True, eq=False)
class DescribedView:
    """The query's features at one turn, before they are words."""

    turn: float  # radians, clockwise
    frames: Frames
    descriptors: NDArray[np.float16]  # (N, D)


@dataclass(frozen=True)
class DescribedQuery:
    """A photo or a box in one, described: it does not depend on a vocabulary."""

    path: Path
    width: int  # pixels of the upright original
    height: int
    box: Box | None
    ellipses: NDArray[np.float32]  # (N, 5) float32, pixels of the upright original
    views: Sequence[DescribedView]  # the first is upright

    @property
    def side(self) -> int:
        """Longer side of the photo, pixels."""
        return max(self.width, self.height)

    @property
    def region(self) -> NDArray[np.float64]:
        """Its box, or all of the photo: x0, y0, x1, y1 (4,) in units of the longer side."""
        box = self.box or (-0.5, -0.5, self.width - 0.5, self.height - 0.5)
        return (np.array(box) + 0.5) / self.side


@dataclass(frozen=True, eq=False)
class View(DescribedView):
    """The query's features under the assumption that its content is turned by some angle."""

    words: NDArray[np.int32]  # (N,) int32
    terms: NDArray[np.int32]  # (M,) int32, the words that are scored: more than one a feature with soft assignment
    weights: NDArray[np.float32] | None  # (M,) float32, their weights; None: one each

    @cached_property
    def lookup(self) -> QueryWords:
        """The words, ready to be looked up."""
        return QueryWords(self.words)


@dataclass(frozen=True)
class Query(DescribedQuery):
    """A photo or a box in one, ready to be searched for."""

    views: Sequence[View]  # the first is upright


def read_query(collection: Collection, path: Path, box: Box | None = None, turns: int = 1, *, soft: int = 1) -> Query:
    """Extract the features of a query.

    Parameters
    ----------
    collection : Collection
        Whose descriptor, regions and vocabulary are used.
    path : Path
        The photo.
    box : tuple of four floats, optional
        Only features whose centre lies in this box are used; corners in any order.
    turns : int
        Number of equally spaced turns at which the query is tried; 1 is upright only. A collection whose patches are
        rotated needs none. At other turns than upright the strongest `TURNED_REGIONS` are described: the weaker ones
        cost time and, by what they match by chance, precision.
    soft : int
        Nearest words that a feature is shared between in scoring (soft assignment; Philbin et al., CVPR 2008); 1: the
        nearest alone.

    Raises
    ------
    CairnError
        The photo cannot be read, or the box lies outside it.
    """
    described = describe_query(collection.extractor, collection.options.image, path, box, turns)
    return quantise_query(described, collection.vocabulary, soft=soft)


def describe_query(
    extractor: Extractor, image: ImageOptions, path: Path, box: Box | None = None, turns: int = 1
) -> DescribedQuery:
    """Detect and describe the features of a query: the part of `read_query` that no vocabulary has a say in.

    Parameters
    ----------
    extractor : Extractor
        Regions, patches and descriptor.
    image : ImageOptions
        How the photo is read.
    path, box, turns
        See `read_query`.

    Raises
    ------
    CairnError
        The photo cannot be read, or the box lies outside it.
    """
    try:
        photo = read_photo(path, image)
    except CairnError as error:
        raise CairnError(f"The query {path.name!r} cannot be used: {error}.") from error
    regions = extractor.detect(photo)
    clipped = clip_box(box, photo.width, photo.height) if box is not None else None
    if clipped is not None:
        regions = regions.where(inside_box(photo.to_original(regions.ellipses[:, :2]), clipped))
    strongest = regions.where(np.arange(len(regions)) < TURNED_REGIONS)
    views = []
    ellipses = np.zeros((0, 5), np.float32)
    for turn in 2 * np.pi * np.arange(turns if extractor.options.upright else 1) / turns:
        features = extractor.describe(photo, strongest if turn else regions, float(turn))
        if turn == 0:
            ellipses = features.ellipses
        frames = frames_of(features, max(photo.width, photo.height), float(turn))
        views.append(DescribedView(float(turn), frames, features.descriptors))
    return DescribedQuery(path, photo.width, photo.height, clipped, ellipses, views)


def quantise_query(described: DescribedQuery, vocabulary: Vocabulary, *, soft: int = 1) -> Query:
    """Give each feature of a described query its word: the other part of `read_query`.

    Parameters
    ----------
    described : DescribedQuery
        From `describe_query`, with the extractor that the vocabulary was made with.
    vocabulary : Vocabulary
        The words.
    soft : int
        See `read_query`.
    """
    views = []
    for view in described.views:
        rows = view.descriptors.astype(np.float32)
        words = vocabulary.assign(rows)
        terms, weights = words, None
        if soft > 1:
            several, shares = vocabulary.assign_soft(rows, soft)
            terms, weights = several.reshape(-1), shares.reshape(-1)
        views.append(View(view.turn, view.frames, view.descriptors, words, terms, weights))
    return Query(described.path, described.width, described.height, described.box, described.ellipses, views)


def indexed_view(image: ImageFeatures) -> View:
    """Give the view that asks with a photo of a collection by its features as they are indexed: no file is read.

    It is upright, and has no descriptors: the engine raw cannot verify by it.
    """
    frames = decode_geometry(image.columns, np.arange(len(image.words)))
    words = np.asarray(image.words).astype(np.int32)
    return View(0.0, frames, np.zeros((len(words), 0), np.float16), words=words, terms=words, weights=None)


def inside_box(points: NDArray[np.float32], box: Box) -> NDArray[np.bool_]:
    """Say which points (N, 2) lie in a box, its border included."""
    x0, y0, x1, y1 = box
    return (points[:, 0] >= x0) & (points[:, 0] <= x1) & (points[:, 1] >= y0) & (points[:, 1] <= y1)


def clip_box(box: Box, width: int, height: int) -> Box:
    """Order a box's corners and clip it to the photo.

    Raises
    ------
    CairnError
        A corner is not a number, or nothing of the box lies in the photo.
    """
    if not np.isfinite(box).all():
        raise CairnError("The corners of the box must be numbers.")
    x0, x1 = sorted((box[0], box[2]))
    y0, y1 = sorted((box[1], box[3]))
    left, top, right, bottom = max(x0, 0.0), max(y0, 0.0), min(x1, width - 1.0), min(y1, height - 1.0)
    if left > right or top > bottom:
        raise CairnError(
            f"The box {x0:g} {y0:g} {x1:g} {y1:g} lies outside the photo, which is {width} by {height} pixels."
        )
    return left, top, right, bottom
