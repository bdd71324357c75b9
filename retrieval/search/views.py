"""The features of a query at one turn, and lazily computed views at several turns."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, overload

import numpy as np
from numpy.typing import NDArray

from index.hamming.voting import SignedFeatures, join_signed
from index.segments.segment import ImageFeatures
from retrieval.features.encoding import decode_geometry
from retrieval.matching.word_matches import QueryWords
from retrieval.regions.geometry import Frames


@dataclass(frozen=True, eq=False)
class DescribedView:
    """The query's features at one turn, before quantisation."""

    turn: float  # radians, clockwise
    frames: Frames
    descriptors: NDArray[np.float16]  # (N, D)
    elongation: float = field(default=1.0, kw_only=True)  # of the photo whose sides `frames` are in units of
    size: tuple[int, int] = field(default=(1000, 1000), kw_only=True)  # its width and height, pixels


@dataclass(frozen=True, eq=False)
class View(DescribedView):
    """The query's features under the assumption that its content is turned by some angle."""

    words: NDArray[np.int32]  # (N,) int32
    terms: NDArray[np.int32]  # (M,) int32, words to score: several for each feature with soft assignment
    weights: NDArray[np.float32] | None  # (M,) float32, their weights; None: one each
    signed: SignedFeatures | None = None  # of the N features, where they are looked up by signatures

    @cached_property
    def extent(self) -> float:
        """Height of the part of the photo that contains the features, in the units of verification."""
        return self.elongation * float(np.ptp(self.frames.centres[:, 1])) if len(self.words) else 0.0

    @cached_property
    def lookup(self) -> QueryWords:
        """The words, ready to be looked up."""
        return QueryWords(self.words)


class PlacedViews(Sequence[View], ABC):
    """Views that are computed one at a time, by place."""

    @abstractmethod
    def made(self, place: int) -> View:
        """The view at a place, counted from 0."""

    @abstractmethod
    def complete(self, place: int) -> bool:
        """Describe the view at a place in full: by more features, which come last, or by more words of each.

        Return whether that changed it.
        """

    @overload
    def __getitem__(self, which: int) -> View: ...
    @overload
    def __getitem__(self, which: slice) -> list[View]: ...
    def __getitem__(self, which: int | slice) -> View | list[View]:
        places = range(len(self))[which]
        return [self[place] for place in places] if isinstance(places, range) else self.made(places)


class DescribeViews(Protocol):
    """What computes the views of a query."""

    def __call__(self, turns: Sequence[float], /, *, full: bool = False) -> Sequence[View]:
        """Describe a query at some turns, radians; `full`: as fully as upright, see `PlacedViews.complete`."""


class LazyViews(PlacedViews):
    """The views of a query at `turns` (T,) radians, the first 0; other turns are computed at first access."""

    def __init__(
        self,
        upright: View,
        turns: NDArray[np.float64],
        describe: DescribeViews,
        full_upright: Callable[[], View] | None = None,
    ) -> None:
        self._turns: list[float] = turns.tolist()
        self._made = {0.0: upright}  # by turn
        self._full: dict[int, View] = {}  # those described fully, by place
        self._describe = describe
        self._full_upright = full_upright  # for an upright view from less than the photo

    def at(self, turns: NDArray[np.float64]) -> "LazyViews":
        """Views at other turns; computed views of equal turns are reused, but none that was described fully."""
        other = LazyViews(self._made[0.0], turns, self._describe, self._full_upright)
        other._made = self._made
        return other

    def __len__(self) -> int:
        return len(self._turns)

    def made(self, place: int) -> View:
        """The view at a place: see `PlacedViews.made`."""
        if place in self._full:
            return self._full[place]
        self.make([place])
        return self._made[self._turns[place]]

    def make(self, places: Sequence[int]) -> None:
        """Compute the missing views at some places, in one go."""
        turns = [turn for turn in map(self._turns.__getitem__, places) if turn not in self._made]
        if turns:
            self._made.update(zip(turns, self._describe(turns), strict=True))

    def is_full(self, place: int) -> bool:
        """Whether a view is described as fully as upright."""
        return not self._turns[place] or place in self._full

    def complete(self, place: int) -> bool:
        """Describe a view in full: see `PlacedViews.complete`."""
        if place in self._full:
            return False
        if self._turns[place]:
            (self._full[place],) = self._describe([self._turns[place]], full=True)
        elif self._full_upright is not None:
            self._full[place] = self._full_upright()
        return place in self._full


def indexed_view(image: ImageFeatures, signatures: NDArray[np.uint8] | None = None) -> View:
    """Return the upright view of a photo of a collection, from its indexed features, without reading its file.

    It has no descriptors, so the engine raw cannot verify by it. `signatures` (N, B): of its features, for the one word
    of each.
    """
    frames = decode_geometry(image.columns, np.arange(len(image.words)))
    words = np.asarray(image.words).astype(np.int32)
    signed = SignedFeatures(words[:, None], signatures[:, None]) if signatures is not None else None
    rows = np.zeros((len(words), 0), np.float16)
    return View(0.0, frames, rows, words, words, None, signed, elongation=image.elongation)


def part_of(view: View, features: NDArray[np.integer]) -> View:
    """Return a view with some of the features of another, each scored by its one word."""
    words = view.words[features]
    return replace(
        view,
        frames=view.frames.at(features),
        descriptors=view.descriptors[features],
        words=words,
        terms=words,
        signed=view.signed.at(features) if view.signed is not None else None,
    )


def joined(views: Sequence[View]) -> View:
    """Concatenate the features of several views into one, without descriptors."""
    frames = Frames(
        np.concatenate([view.frames.centres for view in views]), np.concatenate([view.frames.linear for view in views])
    )
    words = np.concatenate([view.words for view in views])
    signed = [view.signed for view in views if view.signed is not None]
    together = join_signed(signed) if len(signed) == len(views) else None
    first, rows = views[0], np.zeros((len(words), 0), np.float16)
    return View(first.turn, frames, rows, words, words, None, together, elongation=first.elongation, size=first.size)
