"""Time of scoring with a similarity matrix of k neighbours a word compared with tf-idf, on words with Zipf statistics.

Run as `python -m tests.benchmarks.bench_similarity_search`; it never gates. Neighbours are random words, so that their
posting lists are as long as any: what a query costs is told by the postings it meets. Times are those of the processor,
which other work on the machine changes little.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from index.inverted import InvertedIndex
from index.segments.segment import Segment
from index.segments.writing import write_segment
from index.similarity import SimilarityMatrix

VOCABULARY = "synthetic"


def write_images(folder: Path, images: int, features: int, shares: np.ndarray, rng: np.random.Generator) -> Segment:
    """A segment of images whose features have random words, with the shares given."""
    # A word by its share: where a uniform number falls among the sums.
    sums = np.cumsum(shares)
    rows = [np.searchsorted(sums, rng.random(features) * sums[-1]).astype(np.int32) for _ in range(images)]
    return write_segment(
        folder,
        image_numbers=np.arange(images, dtype=np.uint32),
        words=[np.minimum(row, len(shares) - 1) for row in rows],
        columns={},
        vocabulary_fingerprint=VOCABULARY,
        descriptor_fingerprint=VOCABULARY,
    )


def random_matrix(words: int, k: int, rng: np.random.Generator) -> SimilarityMatrix:
    """R with random positive values on the diagonal and for k random neighbours a word, symmetrised."""
    word = np.repeat(np.arange(words), k)
    other = (word + rng.integers(1, words, words * k)) % words
    first, second = np.divmod(np.unique(np.minimum(word, other) * words + np.maximum(word, other)), words)
    return SimilarityMatrix(
        VOCABULARY,
        diagonal=rng.uniform(0.5, 1.5, words).astype(np.float32),
        first=first.astype(np.int32),
        second=second.astype(np.int32),
        values=rng.uniform(0.01, 1.0, len(first)).astype(np.float32),
    )


def postings_met(index: InvertedIndex, query: np.ndarray) -> int:
    """How many postings a query meets."""
    return int(index.document_frequency[index._query_vector(query, None)[0]].sum())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=1_000, help="features of an image")
    parser.add_argument("--words", type=int, default=200_000, help="size of the vocabulary")
    parser.add_argument("--exponent", type=float, default=0.5, help="s of Zipf's law: the r-th word has a share r^-s")
    parser.add_argument("--neighbours", type=int, default=3, help="the largest k")
    parser.add_argument("--queries", type=int, default=50, help="images that are queries")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()

    rng = np.random.default_rng(arguments.seed)
    # Words of all frequencies are neighbours: ranks are dealt at random.
    shares = rng.permutation(np.arange(1, arguments.words + 1.0) ** -arguments.exponent)
    with tempfile.TemporaryDirectory() as scratch:
        segment = write_images(Path(scratch) / "s", arguments.images, arguments.features, shares, rng)
        indexes, rows = [], []
        for k in range(-1, arguments.neighbours + 1):
            similarity = random_matrix(arguments.words, k, rng) if k >= 0 else None
            start = time.process_time()
            index = InvertedIndex([segment], arguments.words, similarity=similarity)
            opened = time.process_time() - start
            indexes.append(index)
            rows.append({"k": k if k >= 0 else None, "pairs": len(similarity.values) if similarity else 0})
            rows[-1] |= {"open_s": round(opened, 2)}
        queries = [
            index.images.features(int(number)).words.astype(np.int32)
            for number in rng.choice(arguments.images, arguments.queries, replace=False)
        ]
        times = np.empty((len(indexes), len(queries)))
        # By turns, so that what else the machine does falls on all alike; the first is not measured.
        for column in range(-1, len(queries)):
            for row, index in enumerate(indexes):
                start = time.process_time()
                index.score(queries[column])
                times[row, column] = 1000 * (time.process_time() - start)
        for row, index in enumerate(indexes):
            rows[row]["postings"] = round(float(np.mean([postings_met(index, query) for query in queries])))
            rows[row]["ms"] = round(float(np.median(times[row])), 2)
            rows[row]["ratio"] = round(float(np.median(times[row]) / np.median(times[0])), 2)
        imbalance = round(indexes[0].imbalance, 2)
    if arguments.json:
        print(json.dumps({"images": arguments.images, "words": arguments.words, "imbalance": imbalance, "rows": rows}))
        return
    print(
        f"{arguments.images:,} images of {arguments.features:,} features, {arguments.words:,} words, "
        f"imbalance {imbalance}, {len(queries)} queries of {arguments.features:,} features:"
    )
    print(f"{'':8}{'pairs':>11}{'open, s':>10}{'postings met':>14}{'ms a query':>12}{'ratio':>8}")
    for one in rows:
        name = "tf-idf" if one["k"] is None else f"k = {one['k']}"
        print(
            f"{name:8}{one['pairs']:11,}{one['open_s']:10.2f}{one['postings']:14,}{one['ms']:12.2f}{one['ratio']:8.2f}"
        )


if __name__ == "__main__":
    main()
