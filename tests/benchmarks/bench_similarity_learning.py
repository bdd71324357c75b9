"""Similarity learning at the size of Yan13: 500,000 words, 2 neighbours, 10 million triplets over 6,000 images.

Words are synthetic, with Zipf statistics: word r comes with a chance proportional to 1 / (r + b), b set so that the
vocabulary is as unbalanced as a real one (`imbalance` of cairn info, 1.5 to 2 on photos). Photos of one object share a
part of their features; each of those keeps its word or moves to one of the word's neighbours. Triplets are drawn as
in section IV.B: lists of hard negatives for each query, and random ones.

The paper's time for 1.3 million variables: 7.0 hours (Oxford5K) on two 6-core processors.

usage: python -m tests.benchmarks.bench_similarity_learning [--words 500000] [--images 6000] [--features 3000]
           [--queries 600] [--triplets 10000000] [--iterations 10] [--assumed-iterations 100] [--as-published]
           [--workers N]
"""

import argparse
import resource
import time

import numpy as np

from learning.similarity.options import SimilarityOptions
from learning.similarity.pair_gradients import WordPairs
from learning.similarity.problem import TripletProblem
from learning.similarity.triplets import Triplets
from retrieval.commands.options import cores


def draw_words(words: int, offset: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw words with a chance proportional to 1 / (rank + offset)."""
    return (offset * ((1 + words / offset) ** rng.random(size) - 1)).astype(np.int64).clip(0, words - 1)


def imbalance(words: int, offset: float) -> float:
    """K Σ p², of the law of `draw_words`."""
    mass = 1 / (np.arange(words) + offset)
    return float(words * np.square(mass / mass.sum()).sum())


def make_pairs(words: int, neighbours: int, rng: np.random.Generator) -> WordPairs:
    """Give each word some random neighbours, symmetrised."""
    first = np.repeat(np.arange(words), neighbours)
    second = rng.integers(0, words, len(first))
    keys = np.unique(np.minimum(first, second) * words + np.maximum(first, second))
    first, second = np.divmod(keys, words)
    return WordPairs(words, first[first != second].astype(np.int32), second[first != second].astype(np.int32))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--words", type=int, default=500_000)
    parser.add_argument("--images", type=int, default=6_000)
    parser.add_argument("--features", type=int, default=3_000, help="of an image")
    parser.add_argument("--objects", type=int, default=11)
    parser.add_argument("--shared", type=float, default=0.03, help="share of a photo's features that its object has")
    parser.add_argument("--queries", type=int, default=600, help="positives that are issued")
    parser.add_argument("--neighbours", type=int, default=2)
    parser.add_argument("--triplets", type=int, default=10_000_000)
    parser.add_argument("--imbalance", type=float, default=1.7, help="of the vocabulary")
    parser.add_argument("--iterations", type=int, default=10, help="timed, of L-BFGS-B")
    parser.add_argument("--assumed-iterations", type=int, default=100, help="of a whole run, to extrapolate to")
    parser.add_argument("--as-published", action="store_true", help="the paper's objective, not ours")
    parser.add_argument("--workers", type=int, default=0)
    arguments = parser.parse_args()
    from scipy.optimize import minimize
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(0)
    words, images, workers = arguments.words, arguments.images, arguments.workers or cores()
    low, high = 1.0, 1e9
    for _ in range(60):  # the larger the offset, the more even the words
        middle = (low * high) ** 0.5
        low, high = (middle, high) if imbalance(words, middle) > arguments.imbalance else (low, middle)
    offset = low
    permutation = rng.permutation(words)
    pairs = make_pairs(words, arguments.neighbours, rng)
    print(
        f"{words:,} words (imbalance {imbalance(words, offset):.2f}), {len(pairs.first):,} pairs: "
        f"{pairs.parameters:,} variables; {images:,} images of {arguments.features:,} features"
    )
    # The first images show objects: some of their features are the object's, half of them under a neighbour's word.
    shown = np.full(images, -1)
    shown[: arguments.queries] = np.arange(arguments.queries) % arguments.objects
    own = [permutation[draw_words(words, offset, 1_000, rng)] for _ in range(arguments.objects)]
    beside = np.arange(words)
    beside[pairs.first] = pairs.second
    rows = []
    for image in range(images):
        found = permutation[draw_words(words, offset, arguments.features, rng)]
        if shown[image] >= 0:
            some = rng.random(len(found)) < arguments.shared
            seen = rng.choice(own[shown[image]], int(some.sum()))
            found[some] = np.where(rng.random(len(seen)) < 0.5, seen, beside[seen])
        rows.append(np.unique(found, return_counts=True))
    frequency = np.bincount(np.concatenate([which for which, _ in rows]), minlength=words)
    idf = np.log(images / np.maximum(frequency, 1))
    values = [counts * idf[which] for which, counts in rows]
    values = [row / np.linalg.norm(row) for row in values]
    vectors = csr_matrix(
        (
            np.concatenate(values).astype(np.float32),
            np.concatenate([which for which, _ in rows]).astype(np.int32),
            np.cumsum([0, *(len(which) for which, _ in rows)]),
        ),
        shape=(images, words),
    )
    # Half the triplets are hard, from the first five hundred of a query's list; half are random.
    many = arguments.triplets // arguments.queries
    query = np.repeat(np.arange(arguments.queries), many)
    positive = np.concatenate(
        [
            rng.choice(np.flatnonzero((shown == shown[i]) & (np.arange(images) != i)), many)
            for i in range(arguments.queries)
        ]
    )
    others = [rng.permutation(np.flatnonzero(shown != shown[i])) for i in range(arguments.queries)]
    negative = np.concatenate(
        [np.concatenate([rng.choice(one[:500], many // 2), rng.choice(one, many - many // 2)]) for one in others]
    )
    triplets = Triplets(
        query.astype(np.int32),
        positive.astype(np.int32),
        negative.astype(np.int32),
        np.ones(len(query), np.float32),
        len(query) // 2,
    )

    began = time.perf_counter()
    options = SimilarityOptions.as_published() if arguments.as_published else SimilarityOptions()
    problem = TripletProblem(vectors, pairs, triplets, options.objective, workers)
    built = time.perf_counter() - began
    print(
        f"gradients of {problem.image_pairs:,} image pairs, {problem.entries / problem.image_pairs:.0f} entries each: "
        f"{built:.0f} s"
    )
    began = time.perf_counter()
    problem.evaluate(problem.start)
    whole = time.perf_counter() - began
    began = time.perf_counter()
    first = problem.refresh(problem.start)
    refreshed = time.perf_counter() - began
    print(
        f"a pass over all {len(triplets):,} triplets, value and gradient: {whole:.1f} s; a look for the active ones: "
    )
    print(f"{refreshed:.1f} s, {problem.active:,} active")
    began, evaluations = time.perf_counter(), 0

    def evaluate(matrix: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal evaluations
        evaluations += 1
        return problem.evaluate(matrix)

    found = minimize(
        evaluate,
        problem.start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * len(problem.start),
        options={"maxiter": arguments.iterations, "maxcor": 10, "ftol": 0, "gtol": 0},
    )
    spent = time.perf_counter() - began
    rounds = arguments.assumed_iterations / max(found.nit, 1)
    print(
        f"{found.nit} iterations of L-BFGS-B, {evaluations} evaluations: {spent:.0f} s; objective {first:.3f} to "
        f"{found.fun:.3f}, {problem.active:,} triplets active"
    )
    total = built + rounds * (spent + refreshed)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{arguments.assumed_iterations} iterations would take {total / 60:.0f} minutes on {workers} cores "
        f"(Yan13: 7.0 hours on 12); peak memory {peak:.1f} GB"
    )


if __name__ == "__main__":
    main()
