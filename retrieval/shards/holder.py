"""A holder of shards: opens them, scores and verifies their photos, and stores searches between messages."""

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from index.cluster.storage import open_storage
from index.errors import CairnError
from index.segments.segment import ImageFeatures, Segment
from index.similarity import SimilarityMatrix
from retrieval.collection.layout import SEGMENTS
from retrieval.collection.segments import open_segment
from retrieval.matching.verification import Verification
from retrieval.search.engines.contract import Engine
from retrieval.search.options import SearchOptions
from retrieval.search.ranking import Tried
from retrieval.search.scoreboard import Candidates, LocalScoreboard, Rule, Weights
from retrieval.search.views import View
from retrieval.shards.epoch import Basics, Shard
from retrieval.shards.merging import Counted, count_high, count_low
from retrieval.shards.part import Gone, Part

PARTS = 4
"""Parts that a holder has open: those of an epoch and of the one before, as two fronts may want them."""
SEARCHES = 64
"""Searches that a holder remembers; those that are let go of do not count."""
_ONLY_HERE = "descriptor"  # column that only a holder needs


@dataclass(frozen=True)
class Call:
    """A remote call: a method of `Holder`, and its arguments."""

    method: str
    arguments: tuple[Any, ...] = ()


@dataclass
class _HeldSearch:
    """A search under way."""

    board: LocalScoreboard
    engine: Engine
    views: dict[int, View] = field(default_factory=dict)  # by the client's names for them


class Holder:
    """Holds shards of collections, and searches them: one a process.

    `run` calls all other methods. Their arguments and results are as small as possible, as they are sent over the
    network.
    """

    def __init__(self) -> None:
        self._parts: OrderedDict[str, Part] = OrderedDict()
        self._segments: WeakValueDictionary[tuple[str, str, str, str], Segment] = WeakValueDictionary()
        self._searches: OrderedDict[str, _HeldSearch] = OrderedDict()
        self._calls: dict[str, Callable[..., Any]] = {
            method.__name__: method
            for method in (
                self.has,
                self.load,
                self.open_engine,
                self.begin,
                self.finish,
                self.borrow_nothing,
                self.best,
                self.count_high,
                self.count_low,
                self.lowest,
                self.verify,
                self.verify_all,
                self.verify_one,
                self.align,
                self.features,
                self.signatures,
                self.norms,
                self.release,
            )
        }

    def run(self, calls: Sequence[Call]) -> list[Any]:
        """Make several calls one after another, and return their results. Raises Gone if an object no longer exists."""
        return [self._calls[call.method](*call.arguments) for call in calls]

    def has(self, key: str) -> bool:
        """Whether a part is open."""
        return key in self._parts

    def load(self, key: str, basics: Basics, shards: Sequence[Shard]) -> None:
        """Open a part."""
        if key not in self._parts:
            self._parts[key] = Part.open(basics, shards, self._open_segment)
        self._parts.move_to_end(key)
        while len(self._parts) > PARTS:
            self._parts.popitem(last=False)

    def open_engine(self, key: str, options: SearchOptions, similarity: SimilarityMatrix | None) -> None:
        """Open an engine of a part."""
        self._part(key).open_engine(options, similarity)

    def begin(
        self,
        search: tuple[str, str, SearchOptions, int],
        among: NDArray[np.integer] | None,
        which: Sequence[int],
        names: Sequence[int],
        views: Mapping[int, View],
    ) -> list[NDArray[np.float64]]:
        """Begin to score with views: see `LocalScoreboard.begin`.

        `search`: name of the search, the key of the part, the options of the engine, the number of views. `among`:
        numbers of the photos that may be found, if not all. `which`, `names`: places of the views, and the client's
        names for them. `views`: by these names, those that the client has not sent before.
        """
        token, key, options, number = search
        if token not in self._searches:
            engine = self._part(key).engine(options)
            self._searches[token] = _HeldSearch(LocalScoreboard(engine, number, among), engine)
            while len(self._searches) > SEARCHES:
                self._searches.popitem(last=False)
        found = self._search(token)
        found.views |= views
        return found.board.begin(which, [found.views[name] for name in names])

    def finish(self, token: str, totals: Sequence[NDArray[np.float64]]) -> bool:
        """Finish `begin` with the sums over all parts; return whether photos are scored with borrowed features."""
        search = self._search(token)
        search.board.finish(totals)
        return search.engine.index.borrows

    def borrow_nothing(self, key: str, options: SearchOptions) -> None:
        """Score photos only by their own features from now on."""
        part = self._part(key)
        with contextlib.suppress(Gone):  # it is not open
            part.engine(options).index.borrow_nothing()

    def best(self, token: str, weights: Weights, top: int, also: Iterable[int]) -> Candidates:
        """Return the best photos: see `Scoreboard.best`."""
        return self._search(token).board.best(weights, top, also)

    def count_high(self, token: str, weights: Weights) -> Counted:
        """Count the scores of all photos by their upper bits."""
        return count_high(self._search(token).board.weighted(weights))

    def count_low(self, token: str, weights: Weights, high: Sequence[int]) -> dict[int, Counted]:
        """Count the scores of all photos that have some upper bits by the lower ones."""
        scores = self._search(token).board.weighted(weights)
        return {one: count_low(scores, one) for one in high}

    def lowest(self, token: str, which: int, most: int) -> Candidates:
        """Return the photos of the lowest scores: see `LocalScoreboard.lowest_scores`."""
        return self._search(token).board.lowest_scores(which, most)

    def verify(self, token: str, views: Mapping[int, View], view: int, numbers: Sequence[int]) -> list[Verification]:
        """Verify photos with a view; `views`: those that the client has not sent before."""
        search = self._search(token)
        search.views |= views
        (found,) = search.board.verify([(search.views[view], numbers)])
        return found

    def verify_all(self, token: str, weights: Weights) -> dict[int, Tried]:
        """Verify every photo: see `Scoreboard.verify_all`."""
        return self._search(token).board.verify_all(weights)

    def verify_one(self, key: str, options: SearchOptions, view: View, number: int) -> Verification:
        """Verify one photo outside a search."""
        return self._part(key).engine(options).verify(view, number)

    def align(self, tokens: Sequence[str], weights: Sequence[Weights], rule: Rule) -> list[Candidates]:
        """Return the same photos in several searches: see `Scoreboard.aligned`."""
        first, *others = (self._search(token).board for token in tokens)
        return first.aligned(others, weights, rule)

    def features(self, key: str, numbers: Sequence[int]) -> list[ImageFeatures]:
        """Return the features of photos, without descriptors."""
        images = self._part(key).index.images.features_of(numbers)
        return [
            ImageFeatures(
                np.asarray(image.words),
                {name: np.asarray(column) for name, column in image.columns.items() if name != _ONLY_HERE},
                image.elongation,
            )
            for image in images
        ]

    def signatures(self, key: str, numbers: Sequence[int]) -> list[NDArray[np.uint8]]:
        """Return the signatures of the features of photos."""
        return self._part(key).index.images.signatures_of(numbers)

    def norms(self, key: str, options: SearchOptions, numbers: Sequence[int]) -> NDArray[np.float64]:
        """Return the norms of photos: see `InvertedIndex.norms_of`."""
        return self._part(key).engine(options).index.norms_of(numbers)

    def release(self, tokens: Iterable[str]) -> None:
        """Delete finished searches."""
        for token in tokens:
            self._searches.pop(token, None)

    def _part(self, key: str) -> Part:
        if key not in self._parts:
            raise Gone
        return self._parts[key]

    def _search(self, token: str) -> _HeldSearch:
        if token not in self._searches:
            raise Gone
        self._searches.move_to_end(token)
        return self._searches[token]

    def _open_segment(self, name: str, basics: Basics) -> Segment:
        """Open a segment, or return the open one: segments are immutable."""
        path = open_storage(basics.place).fetch(name)
        try:
            made = (path / "meta.json").stat()
        except OSError:
            raise CairnError(
                "{path} cannot be read: see whether the folder is there on this machine.", path=path
            ) from None
        # A collection that was remade has folders of the same names.
        key = (str(path), f"{made.st_mtime_ns} {made.st_ino}", basics.vocabulary, basics.descriptor)
        segment = self._segments.get(key)
        if segment is None:
            opening = open_segment if path.parent.name == SEGMENTS else Segment.open  # otherwise borrowed features
            segment = self._segments[key] = opening(
                path, vocabulary_fingerprint=basics.vocabulary, descriptor_fingerprint=basics.descriptor
            )
        return segment
