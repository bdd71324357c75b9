"""Verification of an engine's best photos by their features of equal words, many at once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from index.segments.segment import ImageFeatures
from retrieval.features.encoding import decode_geometries, decode_geometry
from retrieval.matching.local_agreement import find_pieces
from retrieval.matching.shortlist import shortlist
from retrieval.matching.verification import (
    NOTHING,
    TWO_MATCHES,
    Verification,
    identify,
    recount,
    verify,
    verify_pieces,
)
from retrieval.regions.geometry import Frames
from retrieval.search.engines.contract import Engine, Searchable
from retrieval.search.options import SearchOptions
from retrieval.search.views import View

_AT_ONCE = 256  # photos: their matches take some tens of megabytes
_COUNTED_AT_ONCE = 16  # photos whose matches are computed in full


@dataclass(frozen=True)
class Tentative:
    """Tentative matches of a view with some photos, photo by photo."""

    pairs: NDArray[np.int32]  # (K, 2) int32: feature of the view, feature of the photo
    starts: NDArray[np.int64]  # (B + 1,) int64: first pair of each photo
    ambiguity: NDArray[np.int64]  # (K,) int64: how many pairs the word of each pair has in its photo
    left_out: NDArray[np.bool_]  # (B,) bool: whether a photo has more matches than these


class MatchingEngine(Engine):
    """An engine that verifies photos by their features that have the same words as the query's."""

    def __init__(self, collection: Searchable, options: SearchOptions) -> None:
        super().__init__(collection, options)
        self.verification = options.verification
        self._mean_idf: WeakKeyDictionary[View, float] = WeakKeyDictionary()

    def _tentative(self, view: View, images: Sequence[ImageFeatures], most: int) -> Tentative:
        """Match features of a view with those of some photos that have the same word. `most`: largest number of matches
        of one photo; if there are more, those of the least ambiguous words are returned.
        """
        offsets = np.concatenate([[0], np.cumsum([len(image.words) for image in images])]).astype(np.int64)
        words = np.concatenate([image.words for image in images]) if images else np.zeros(0, np.int32)
        pairs, starts, ambiguity, totals = view.lookup.match_many(words, offsets, most)
        return Tentative(pairs, starts, ambiguity, totals > np.diff(starts))

    def verify(self, view: View, number: int) -> Verification:
        """Verify a photo by its tentative matches: see `Engine.verify`."""
        return self.verify_many(view, [number])[0]

    def verify_many(self, view: View, numbers: Sequence[int]) -> list[Verification]:
        """Verify photos by their tentative matches: see `Engine.verify_many`."""
        images = self.index.images.features_of(numbers)
        results = [self._identify(view, image) for image in images]
        others = [place for place, same in enumerate(results) if not same.inliers]
        for start in range(0, len(others), _AT_ONCE):
            some = others[start : start + _AT_ONCE]
            for place, verification in self._verify_some(view, some, images):
                results[place] = verification.in_sides(view.elongation, images[place].elongation)
        return results

    def _identify(self, view: View, image: ImageFeatures) -> Verification:
        """Verify a photo that is the query itself; `NOTHING` for any other."""
        if not view.lookup.equal(image.words):
            return NOTHING
        every = decode_geometry(image.columns, np.arange(len(image.words)))
        return identify(view.lookup, view.frames, image.words, every)

    def _verify_some(
        self, view: View, places: Sequence[int], images: Sequence[ImageFeatures]
    ) -> Iterator[tuple[int, Verification]]:
        """Verify the photos at some places of a list; return those that are worth a closer look."""
        options = self.verification

        def match(which: Sequence[int], most: int) -> _Matches:
            some = [images[place] for place in which]
            return _Matches(view, some, self._tentative(view, some, most))

        matches = match(places, options.max_matches)
        if options.freedom == TWO_MATCHES:  # a shortlist assesses maps of single matches
            for number, place in enumerate(places):
                rarity = self.rarity(view, images[place].words)
                yield place, verify(*matches.of(number), options, rarity=rarity, extent=view.extent)
            return
        promising = shortlist(matches.query, matches.image, matches.starts, matches.ambiguity, options.looks)
        verified: list[tuple[int, Verification]] = []
        again: list[int] = []
        for number, (place, maps) in enumerate(zip(places, promising, strict=True)):
            if maps is None:
                continue
            rarity = self.rarity(view, images[place].words)
            found = verify(*matches.of(number), options, rarity=rarity, maps=maps, extent=view.extent)
            verified.append((place, found))
            if found.inliers and matches.left_out[number]:
                again.append(place)
        counted = self._recounts(again, match)
        for place, found in verified:
            yield place, recount(found, *next(counted), options, extent=view.extent) if place in again else found
        if options.local.matches:
            yield from self._verify_pieces(view, places, images, matches, dict(verified))

    def _verify_pieces(
        self,
        view: View,
        places: Sequence[int],
        images: Sequence[ImageFeatures],
        matches: "_Matches",
        known: Mapping[int, Verification],
    ) -> Iterator[tuple[int, Verification]]:
        """Verify some photos piece by piece, without a single map; return those with more matches than before."""
        options = self.verification
        so_far = [known.get(place, NOTHING) for place in places]
        wanted = np.array([one.transform is None for one in so_far], np.bool_)
        found = find_pieces(matches.query, matches.image, matches.starts, matches.ambiguity, wanted, options.local)
        for number, (place, pieces) in enumerate(zip(places, found, strict=True)):
            if pieces is None:
                continue
            rarity = self.rarity(view, images[place].words)
            verification = verify_pieces(*matches.of(number), pieces, options, rarity=rarity, extent=view.extent)
            if verification.strength > so_far[number].strength:
                yield place, verification

    def _recounts(
        self, places: Sequence[int], match: Callable[[Sequence[int], int], "_Matches"]
    ) -> Iterator[tuple[Frames, Frames, NDArray[np.int32]]]:
        """Match the photos at some places, in batches, by as many features as inliers are counted among."""
        for start in range(0, len(places), _COUNTED_AT_ONCE):
            some = places[start : start + _COUNTED_AT_ONCE]
            matches = match(some, self.verification.max_counted)
            yield from (matches.of(number) for number in range(len(some)))

    def rarity(self, view: View, words: NDArray[np.integer]) -> float:
        """Rarity of the words of the query or of a photo (`words`), whichever are commoner: see `weigh`."""
        own = self._mean_idf.get(view)
        if own is None:
            own = self._mean_idf[view] = self._mean(view.words)
        return min(own, self._mean(words)) - self.index.common_idf

    def _mean(self, words: NDArray[np.integer]) -> float:
        """Mean idf of some words."""
        return float(self.index.idf.take(words).sum()) / max(len(words), 1)


class _Matches:
    """Tentative matches of a view with some photos, and the regions of both."""

    def __init__(self, view: View, images: Sequence[ImageFeatures], tentative: Tentative) -> None:
        self.starts, self.ambiguity, self.left_out = tentative.starts, tentative.ambiguity, tentative.left_out
        self.query = view.frames.at(tentative.pairs[:, 0]).enlarged(view.elongation)
        self.image = decode_geometries([image.columns for image in images], tentative.pairs[:, 1], self.starts)
        for number, image in enumerate(images):
            if image.elongation != 1:
                some = slice(self.starts[number], self.starts[number + 1])
                self.image.centres[some] *= np.float32(image.elongation)
                self.image.linear[some] *= np.float32(image.elongation)
        self._pairs = tentative.pairs

    def of(self, number: int) -> tuple[Frames, Frames, NDArray[np.int32]]:
        """Return the matched features of one photo, and their pairs, as `verify` takes them."""
        some = slice(self.starts[number], self.starts[number + 1])
        query, image = (Frames(side.centres[some], side.linear[some]) for side in (self.query, self.image))
        return query, image, self._pairs[some]
