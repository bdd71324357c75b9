"""Query expansion: features that verified photos add to a query, and weights of the combined words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from index.segments.segment import ImageFeatures
from retrieval.matching.verification import Verification
from retrieval.regions.geometry import Frames
from retrieval.search.linear_svm import train
from retrieval.search.photos import SearchedPhotos
from retrieval.search.views import View, indexed_view, part_of


@dataclass(frozen=True)
class ExpansionOptions:
    """Which photos expand a query, and which are verified with the added features."""

    photos: int = 8  # at most this many, the best verified
    min_inliers: int = 12  # a photo with fewer adds nothing: a false match would mislead the search
    copy: float = 0.9  # a photo with this part of the query's features as inliers adds nothing new
    words: float = 1.0  # words to score, those of largest weight: at most this times the query's
    rounds: int = 3  # at most; photos found in one round are added in the next
    candidates: int = 25  # photos of the best scores verified with the added features in each round, at most
    # Largest distance of an added feature from a match with the query, as a part of the longer side of the query's
    # region.
    reach: float = 0.04
    negatives: int = 100  # lowest ranked photos used to train a classifier, at most
    cost: float = 1.0  # of a photo on the wrong side: C of the support vector machine


@dataclass(frozen=True)
class WeighedWords:
    """Words to score photos by, as `InvertedIndex.score` takes them."""

    words: NDArray[np.int32]  # (M,)
    weights: NDArray[np.float32]  # (M,), at least 0


def back_project(
    image: ImageFeatures,
    verification: Verification,
    region: NDArray[np.float64],
    signatures: NDArray[np.uint8] | None = None,
) -> View:
    """Map the features of a verified photo into the query, and keep those inside its region (x0, y0, x1, y1 in units of
    the query's longer side); no features if the photo is not verified. `verification`: with a transform from the query
    to the photo.
    """
    view = indexed_view(image, signatures)
    if verification.transform is None:
        return part_of(view, np.zeros(0, np.intp))
    inverse = np.linalg.inv(verification.transform[:, :2])
    centres = (view.frames.centres - verification.transform[:, 2]) @ inverse.T
    inside = np.flatnonzero(((centres >= region[:2]) & (centres <= region[2:])).all(axis=1))
    there = part_of(view, inside)
    linear = inverse.astype(np.float32) @ there.frames.linear
    return replace(there, frames=Frames(centres[inside].astype(np.float32), linear))


def near_places(view: View, places: NDArray[np.floating], reach: float) -> View:
    """Keep the features of a view near places (N, 2) where a photo agrees with the query, in units of its longer side:
    elsewhere in the region the photo may show other objects. `reach`: largest distance, in the same units.
    """
    from scipy.spatial import cKDTree

    if not len(places):
        return part_of(view, np.zeros(0, np.intp))
    distances, _ = cKDTree(places).query(view.frames.centres, distance_upper_bound=reach)
    return part_of(view, np.flatnonzero(np.isfinite(distances)))


def average_words(words: NDArray[np.integer], added: Sequence[NDArray[np.integer]]) -> WeighedWords:
    """Average the word counts of a query and of photos back-projected into it. A photo that shows the region in more
    detail counts no more than others (Chum et al., *Total Recall*, ICCV 2007).
    """
    parts = [words, *added]
    weights = [np.full(len(part), min(1.0, len(words) / max(len(part), 1)) / len(parts)) for part in parts]
    return WeighedWords(np.concatenate(parts).astype(np.int32), np.concatenate(weights).astype(np.float32))


def discriminative_words(
    words: NDArray[np.integer],
    added: Sequence[NDArray[np.integer]],
    index: SearchedPhotos,
    negatives: Sequence[int],
    cost: float,
) -> WeighedWords:
    """Weigh words by a linear classifier: the query and the added photos are its positives, the lowest ranked photos
    its negatives. It is a support vector machine on tf-idf vectors over the words of the positives (Arandjelović &
    Zisserman, CVPR 2012, section 4). Words of negative weight are dropped, so that scores are like those of any query.

    `cost`: C of the machine: see `retrieval.search.linear_svm.train`.
    """
    from scipy.sparse import csr_array

    positives = [part for part in (words, *added) if len(part)]
    known = np.unique(np.concatenate([np.zeros(0, np.int32), *positives]))
    known = known[index.idf[known] > 0]
    if not len(known):
        return WeighedWords(np.zeros(0, np.int32), np.zeros(0, np.float32))
    others = [np.asarray(image.words) for image in index.images.features_of(negatives)]
    place = np.full(index.words, -1, np.int32)  # of each word that the positives have
    place[known] = np.arange(len(known), dtype=np.int32)
    rows = np.repeat(np.arange(len(positives) + len(others)), [len(one) for one in (*positives, *others)])
    columns = place[np.concatenate([*positives, *others])]
    rows, columns = rows[columns >= 0], columns[columns >= 0]
    samples = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(positives) + len(others), len(known)))
    samples.sum_duplicates()
    samples.data = index.term_frequency(samples.data) * index.idf[known[samples.indices]]
    norms = np.sqrt(samples.multiply(samples).sum(axis=1))
    # Norms of the negatives include words that the positives lack.
    norms[len(positives) :] = index.norms_of(negatives)
    samples.data /= np.repeat(np.where(norms > 0, norms, 1.0), np.diff(samples.indptr))
    positive = np.arange(len(norms)) < len(positives)
    vector = samples.T @ train((samples @ samples.T).toarray(), positive, cost)
    useful = vector > 0
    weights = index.counts_of(vector[useful] / index.idf[known[useful]])
    return WeighedWords(known[useful].astype(np.int32), (weights / weights.max(initial=1e-30)).astype(np.float32))


def strongest(scored: WeighedWords, index: SearchedPhotos, most: int) -> WeighedWords:
    """Keep the words that can add most to a score, as many words take long to score."""
    distinct, which = np.unique(scored.words, return_inverse=True)
    weights = np.bincount(which, weights=scored.weights, minlength=len(distinct))
    if len(distinct) > most:
        strength = index.term_frequency(weights) * np.square(index.idf[distinct])
        chosen = np.sort(np.argsort(-strength, kind="stable")[:most])
        distinct, weights = distinct[chosen], weights[chosen]
    return WeighedWords(distinct, weights.astype(np.float32))
