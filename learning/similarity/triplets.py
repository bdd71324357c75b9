"""Training triplets of images for a similarity (Yan13 section IV.B)."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from learning.labels.labels import Relevance
from learning.similarity.options import TripletOptions

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Triplets:
    """Image i is to be more similar to j than to l."""

    query: NDArray[np.int32]  # (T,) int32: i, an index into the database
    positive: NDArray[np.int32]  # (T,) int32: j
    negative: NDArray[np.int32]  # (T,) int32: l
    weights: NDArray[np.float32]  # (T,) float32: max N(t) / N(i), N the number of queries of an object
    hard: int  # the first `hard` are hard: wrong with tf-idf

    def __len__(self) -> int:
        return len(self.query)


def collect_triplets(vectors: "csr_matrix", relevance: Relevance, options: TripletOptions) -> Triplets:
    """Collect triplets from the ranked lists of the training queries of `relevance`.

    Hard: l is no positive, and tf-idf ranks it above the positive j. Random: any positive j and any l that is neither
    positive nor ignored.
    """
    rng = np.random.default_rng(options.seed)
    options = _shared(options, len(relevance.queries))
    parts: dict[bool, list[tuple[int, NDArray[np.int64], NDArray[np.int64], float]]] = {True: [], False: []}
    images = places(relevance, relevance.queries)
    of = zip(images.tolist(), relevance.positives, relevance.ignored, relevance.weights.tolist(), strict=True)
    for image, positives, ignored, weight in of:
        wanted = places(relevance, positives)
        kind = np.zeros(len(relevance.database), np.int8)
        kind[places(relevance, ignored)] = -1
        kind[image] = -1
        kind[wanted] = 1
        others = np.flatnonzero(kind == 0)
        if not len(wanted) or not len(others):
            continue
        scores = np.asarray((vectors @ vectors[image].T).todense()).ravel()
        ranked = np.lexsort((np.arange(len(scores)), -scores))
        parts[True].append((image, *_hard(ranked[kind[ranked] >= 0], kind, options, rng), weight))
        chosen = rng.choice(wanted, options.random), rng.choice(others, options.random)
        parts[False].append((image, *chosen, weight))
    rows = parts[True] + parts[False]
    if not rows:
        none = np.zeros(0, np.int32)
        return Triplets(none, none, none, np.zeros(0, np.float32), 0)
    many = [len(positive) for _, positive, _, _ in rows]
    return Triplets(
        np.repeat(np.array([image for image, *_ in rows], np.int32), many),
        np.concatenate([positive for _, positive, _, _ in rows]).astype(np.int32),
        np.concatenate([negative for _, _, negative, _ in rows]).astype(np.int32),
        np.repeat(np.array([weight for *_, weight in rows], np.float32), many),
        sum(many[: len(parts[True])]),
    )


def places(relevance: Relevance, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of images in the database of a relevance (M,) int64."""
    return np.searchsorted(relevance.database, numbers)


def _shared(options: TripletOptions, queries: int) -> TripletOptions:
    """Limit the triplets of each query to its share of all triplets."""
    if options.total is None:
        return options
    share = max(1, options.total // (2 * max(1, queries)))
    hard = share if options.hard is None else min(options.hard, share)
    return replace(options, hard=hard, random=min(options.random, share))


def _hard(
    ranked: NDArray[np.int64], kind: NDArray[np.int8], options: TripletOptions, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """From the top of a ranked list: each false positive with true positives below it."""
    hits = np.flatnonzero(kind[ranked] == 1)
    positives: list[NDArray[np.int64]] = []
    negatives: list[NDArray[np.int64]] = []
    total = 0
    for place in np.flatnonzero(kind[ranked[: hits[-1] + 1]] == 0).tolist():
        below = hits[np.searchsorted(hits, place) :]
        if options.lower is not None and len(below) > options.lower:
            below = rng.choice(below, options.lower, replace=False)
        positives.append(ranked[below])
        negatives.append(np.full(len(below), ranked[place]))
        total += len(below)
        if options.hard is not None and total >= options.hard:
            break
    empty = np.zeros(0, ranked.dtype)
    return (
        np.concatenate([empty, *positives])[: options.hard],
        np.concatenate([empty, *negatives])[: options.hard],
    )
