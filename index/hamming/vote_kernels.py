"""Compiled selection of the matches that vote."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT64, INT32, INT64, array, compiled

_SCATTERING = np.uint64(11400714819323198485)  # 2**64 / golden ratio: Fibonacci hashing


@compiled()
def _stable_order(keys: Any, order: Any, below: Any) -> Any:
    """Sort rows, listed in `order`, stably by keys in [0, below)."""
    starts = np.zeros(below + 1, np.int64)
    for key in keys:
        starts[key + 1] += 1
    for key in range(below):
        starts[key + 1] += starts[key]
    ordered = np.empty(len(order), np.int64)
    for row in order:
        ordered[starts[keys[row]]] = row
        starts[keys[row]] += 1
    return ordered


@compiled(array(INT32), array(INT32), array(INT32), array(INT32), array(FLOAT64), INT64, INT64)
def best_matches(
    photos: NDArray[np.int32],
    query: NDArray[np.int32],
    words: NDArray[np.int32],
    ranks: NDArray[np.int32],
    votes: NDArray[np.float64],
    images: int,
    features: int,
) -> NDArray[np.int64]:
    """Select the best match of each feature with each photo: rows (K,) ordered by photo and query feature. First each
    feature of the query keeps its best match with a photo, then each feature of the photo; ties go to the first by
    query feature, word and rank. No two matches (see `SignedMatches`) agree in photo, feature, word and rank. `images`,
    `features`: exclusive upper bounds of photos and query features.
    """
    number = len(photos)
    order = _stable_order(photos, _stable_order(query, np.arange(number), features), images)
    chosen, wins = np.empty(number, np.int64), np.empty(number, np.bool_)
    done = 0
    room = 16
    while room < 2 * number:
        room *= 2
    table, stamps = np.empty(room, np.int64), np.zeros(room, np.int64)
    start, stamp = 0, 0
    while start < number:
        photo = photos[order[start]]
        first = done
        # Best match of each query feature.
        while start < number and photos[order[start]] == photo:
            best = order[start]
            feature = query[best]
            start += 1
            while start < number and photos[order[start]] == photo and query[order[start]] == feature:
                other = order[start]
                start += 1
                if votes[other] > votes[best] or (
                    votes[other] == votes[best]
                    and (words[other] < words[best] or (words[other] == words[best] and ranks[other] < ranks[best]))
                ):
                    best = other
            chosen[done] = best
            done += 1
        # Best match of each photo feature, by a hash table of word and rank.
        stamp += 1
        size = 16
        while size < 2 * (done - first):
            size *= 2
        for place in range(first, done):
            row = chosen[place]
            at = np.int64(
                (np.uint64(words[row]) << np.uint64(32) | np.uint64(ranks[row])) * _SCATTERING >> np.uint64(32)
            )
            at &= size - 1
            while stamps[at] == stamp and not (
                words[chosen[table[at]]] == words[row] and ranks[chosen[table[at]]] == ranks[row]
            ):
                at = (at + 1) & (size - 1)
            wins[place] = stamps[at] != stamp or votes[row] > votes[chosen[table[at]]]
            if wins[place]:
                if stamps[at] == stamp:
                    wins[table[at]] = False
                table[at], stamps[at] = place, stamp
        last, done = done, first
        for place in range(first, last):
            if wins[place]:
                chosen[done] = chosen[place]
                done += 1
    return chosen[:done]


@compiled(array(INT32), array(INT32), array(FLOAT64), array(FLOAT64), INT64)
def shared_votes(
    photos: NDArray[np.int32],
    query: NDArray[np.int32],
    votes: NDArray[np.float64],
    totals: NDArray[np.float64],
    images: int,
) -> NDArray[np.float64]:
    """Add up votes for photos, shared among matches of a query feature: s ← s √(s / Σs); `totals` (N,): Σs of all."""
    sums = np.zeros(images, np.float64)
    for one in range(len(photos)):
        vote, total = votes[one], totals[query[one]]
        sums[photos[one]] += vote * np.sqrt(vote / total) if total > 0 else vote
    return sums
