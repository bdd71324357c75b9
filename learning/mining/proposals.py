"""Image pairs that are worth a look: drawn at random, or proposed by the tf-idf ranking of a collection."""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from index.inverted import Scores, rank
from index.parallel import one_thread
from retrieval.collection.collection import Collection

_DEEPEST = 50  # photos that a photo proposes, at most
_TOGETHER = 4  # photos that are drawn with one


def random_pairs(photos: int, number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw different pairs of photos (Simonyan14, section 9).

    Parameters
    ----------
    photos : int
        How many there are.
    number : int
        How many pairs; all there are, where there are fewer.
    rng : Generator
        Decides.

    Returns
    -------
    ndarray, shape (T, 2), int64
        Two different photos each, either of the two first, sorted; no two photos twice.
    """
    total = photos * (photos - 1) // 2
    drawn = rng.choice(total, min(number, total), replace=False) if total else np.zeros(0, np.int64)
    # Pair t is (i, j), j < i, at t = i (i - 1) / 2 + j.
    i = np.array([(1 + math.isqrt(1 + 8 * t)) // 2 for t in drawn.tolist()], np.int64)
    pairs = np.column_stack([i, drawn - i * (i - 1) // 2]).astype(np.int64)
    turned = rng.random(len(pairs)) < 0.5
    pairs[turned] = pairs[turned, ::-1]
    return _sorted(pairs)


def ranked_pairs(
    collection: Collection, numbers: NDArray[np.integer], pairs: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Pair photos of a collection with those that its tf-idf index ranks highest for them.

    Parameters
    ----------
    collection : Collection
        Open, with a vocabulary.
    numbers : ndarray, shape (P,), int
        Its image numbers.
    pairs : int
        How many pairs are wanted.
    rng : Generator
        Decides which photos are asked, and in which order.

    Returns
    -------
    ndarray, shape (T, 2), int64
        Places of a photo and of one it ranks high in `numbers`, sorted; no two photos twice. Half as many photos are
        asked as pairs are wanted: each for its best other photo, then each for its second, until there are enough.
    """
    asked = rng.permutation(len(numbers))[: math.ceil(pairs / 2)].tolist()
    ranking = _Ranking(collection, numbers)
    best = {photo: ranking.best(photo) for photo in asked}
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for depth, photo in itertools.product(range(_DEEPEST), asked):
        if len(found) == pairs:
            break
        if depth < len(best[photo]):
            other = best[photo][depth]
            found.setdefault((min(photo, other), max(photo, other)), (photo, other))
    return _sorted(np.array(list(found.values()), np.int64).reshape(-1, 2))


def together(
    collection: Collection, numbers: NDArray[np.integer], wanted: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw photos of a collection, each with those that its tf-idf index ranks highest for it.

    Parameters
    ----------
    collection, numbers, rng
        See `ranked_pairs`.
    wanted : int
        How many photos, P at most.

    Returns
    -------
    ndarray, shape (wanted,), int64
        Places in `numbers`, rising.
    """
    ranking = _Ranking(collection, numbers)
    chosen: dict[int, None] = {}
    for photo in rng.permutation(len(numbers)).tolist():
        if len(chosen) >= wanted:
            break
        if photo not in chosen:
            chosen |= dict.fromkeys([photo, *ranking.best(photo)[:_TOGETHER]])
    return np.sort(np.array(list(chosen)[:wanted], np.int64))


class _Ranking:
    """The photos that a tf-idf index ranks highest for others, by their places in `numbers`."""

    def __init__(self, collection: Collection, numbers: NDArray[np.integer]) -> None:
        self._index = collection.index
        self._numbers = numbers
        self._places = {int(number): at for at, number in enumerate(numbers.tolist())}

    def best(self, photo: int) -> list[int]:
        """Other photos that have words in common with one, the best first."""
        index = self._index
        with one_thread():
            scores = index.score(index.images.features(int(self._numbers[photo])).words)
        seen = scores.scores > 0
        ranked = rank(Scores(scores.image_numbers[seen], scores.scores[seen]), _DEEPEST + 1)
        others = [self._places[number] for number in ranked.image_numbers.tolist() if number in self._places]
        return [other for other in others if other != photo]


def _sorted(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
