"""Proposals of image pairs: drawn at random, or by the tf-idf ranking of a collection."""

import itertools
import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from index.inverted import Scores, rank
from index.parallel import one_thread
from retrieval.collection.collection import Collection
from retrieval.search.options import SearchOptions
from retrieval.search.views import indexed_view
from retrieval.shards.joins import AT_ONCE, Joins
from retrieval.shards.shards import Shards

_DEEPEST = 50  # most photos proposed for a photo
_TOGETHER = 4  # photos drawn together with one
_OPTIONS = SearchOptions(engine="tf-idf", turns=1, augmented=False)


class Ranker(Protocol):
    """Ranks photos for others by a tf-idf index; photos are indices into a list."""

    def best_of(self, photos: Sequence[int]) -> list[list[int]]:
        """For each of some photos, the others with common words, best first."""


def random_pairs(photos: int, number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw pairs (T, 2) of two different photos, sorted, no two photos twice (Simonyan14, section 9)."""
    total = photos * (photos - 1) // 2
    drawn = rng.choice(total, min(number, total), replace=False) if total else np.zeros(0, np.int64)
    # Pair t is (i, j), j < i, at t = i (i - 1) / 2 + j.
    i = np.array([(1 + math.isqrt(1 + 8 * t)) // 2 for t in drawn.tolist()], np.int64)
    pairs = np.column_stack([i, drawn - i * (i - 1) // 2]).astype(np.int64)
    turned = rng.random(len(pairs)) < 0.5
    pairs[turned] = pairs[turned, ::-1]
    return _sorted(pairs)


def ranked_pairs(ranker: Ranker, photos: int, pairs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Pair photos of a collection with those that its tf-idf index ranks highest: distinct sorted indices (T, 2).

    Half as many photos as pairs are queries: each contributes its best other photo, then its second, and so on.
    """
    queries = rng.permutation(photos)[: math.ceil(pairs / 2)].tolist()
    best = dict(zip(queries, ranker.best_of(queries), strict=True))
    pairs_found: dict[tuple[int, int], tuple[int, int]] = {}
    for depth, photo in itertools.product(range(_DEEPEST), queries):
        if len(pairs_found) == pairs:
            break
        if depth < len(best[photo]):
            other = best[photo][depth]
            pairs_found.setdefault((min(photo, other), max(photo, other)), (photo, other))
    return _sorted(np.array(list(pairs_found.values()), np.int64).reshape(-1, 2))


def together(ranker: Ranker, photos: int, wanted: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw photos of a collection (ascending indices), each with those that its tf-idf index ranks highest."""
    chosen: dict[int, None] = {}
    for photo in rng.permutation(photos).tolist():
        if len(chosen) >= wanted:
            break
        if photo not in chosen:
            chosen |= dict.fromkeys([photo, *ranker.best_of([photo])[0][:_TOGETHER]])
    return np.sort(np.array(list(chosen)[:wanted], np.int64))


class LocalRanker:
    """Ranks photos, by image numbers (P,), by the index of a collection: see `Ranker`."""

    def __init__(self, collection: Collection, numbers: NDArray[np.integer]) -> None:
        self._index = collection.index
        self._numbers = numbers
        self._places = {int(number): at for at, number in enumerate(numbers.tolist())}

    def best_of(self, photos: Sequence[int]) -> list[list[int]]:
        """Rank the others for each of some photos: see `Ranker.best_of`."""
        return [self._best(photo) for photo in photos]

    def _best(self, photo: int) -> list[int]:
        with one_thread():
            scores = self._index.score(self._index.images.features(int(self._numbers[photo])).words)
        return _others(photo, scores, self._places)


class ShardedRanker:
    """Ranks photos, by image numbers (P,), by shards of a collection: see `Ranker`."""

    def __init__(self, collection: Collection, numbers: NDArray[np.integer], shards: Shards) -> None:
        self._joins = Joins(collection, _OPTIONS, shards)
        self._features = shards.epoch.index.images
        self._numbers = numbers
        self._places = {int(number): at for at, number in enumerate(numbers.tolist())}

    def best_of(self, photos: Sequence[int]) -> list[list[int]]:
        """Rank the others for each of some photos: see `Ranker.best_of`."""
        ranked: list[list[int]] = []
        for start in range(0, len(photos), AT_ONCE):
            some = list(photos[start : start + AT_ONCE])
            images = self._features.features_of(self._numbers[some].tolist())
            with self._joins.ask([indexed_view(image) for image in images]) as searches:
                for photo, best in zip(some, searches.best(_DEEPEST + 1), strict=True):
                    ranked.append(_others(photo, Scores(best.numbers, best.table[0]), self._places))
        return ranked


def _others(photo: int, scores: Scores, places: dict[int, int]) -> list[int]:
    """Indices of the other photos with a positive score, best first."""
    scored = scores.scores > 0
    ranked = rank(Scores(scores.image_numbers[scored], scores.scores[scored]), _DEEPEST + 1)
    others = [places[number] for number in ranked.image_numbers.tolist() if number in places]
    return [other for other in others if other != photo]


def _sorted(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
