"""How long scoring takes, a posting: the queries together, one at a time, and by adding up one posting at a time.

Run as `python -m tests.benchmarks.bench_scoring`; it never gates. The photos are synthetic: words at random, some more
frequent than others. Queries are turned views of one photo: some words are common to all. The same photos are divided
into segments of several sizes, since each list of postings costs time of its own.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from index.inverted import InvertedIndex
from index.segments.writing import write_segment

ROUNDS = 5


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=2_000, help="of a photo")
    parser.add_argument("--words", type=int, default=500_000)
    parser.add_argument("--views", type=int, default=8)
    parser.add_argument("--common", type=float, default=0.4, help="share of the words that all views have")
    parser.add_argument("--segments", type=int, nargs="*", default=[20, 4, 1], help="into how many to divide")
    parser.add_argument("--folder", type=Path, help="where to keep the segments")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    shares = np.exp(0.5 * rng.standard_normal(arguments.words)).cumsum()
    drawn = np.searchsorted(shares, rng.random(1 << 22) * shares[-1]).astype(np.int32)
    same = rng.choice(drawn, round(arguments.features * arguments.common))
    other = arguments.features - len(same)
    views = [np.concatenate([same, rng.choice(drawn, other)]) for _ in range(arguments.views)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for segments in arguments.segments:
            index = build(folder / str(segments), drawn, segments, arguments)
            measure(index, views)
    return 0


def build(folder: Path, drawn: np.ndarray, segments: int, arguments: argparse.Namespace) -> InvertedIndex:
    """Write the photos, divided into some segments of one size."""
    folder.mkdir()
    rng = np.random.default_rng(arguments.seed)
    photos = arguments.photos // segments
    written = []
    for k in range(segments):
        written.append(
            write_segment(
                folder / f"{k:06d}",
                image_numbers=np.arange(k * photos, (k + 1) * photos, dtype=np.uint32),
                words=list(rng.choice(drawn, (photos, arguments.features))),
                columns={},
                vocabulary_fingerprint="",
                descriptor_fingerprint="",
            )
        )
    return InvertedIndex(written, arguments.words)


def measure(index: InvertedIndex, views: list[np.ndarray]) -> None:
    """Time scoring; all ways find the same."""
    postings = sum(int(index.document_frequency[np.unique(view)].sum()) for view in views)
    every = int(index.document_frequency[np.unique(np.concatenate(views))].sum())
    print(
        f"{len(index.image_numbers)} photos in {len(index.segments)} segments, {len(views)} views of "
        f"{postings / len(views):.0f} postings each, {every} in all"
    )
    ways: dict[str, Callable[[], np.ndarray]] = {
        "together": lambda: index.score_many([(view, None) for view in views]),
        "one at a time": lambda: np.stack([index.score(view).scores for view in views]),
        "by np.add.at": lambda: np.stack([added_up(index, view) for view in views]),
    }
    expected = ways["together"]()
    for name, way in ways.items():
        taken = []
        for _ in range(ROUNDS):
            start = time.process_time()
            found = way()
            taken.append(time.process_time() - start)
        assert np.array_equal(found, expected)
        print(f"  {name:14} {min(taken) * 1e3:7.1f} ms, {min(taken) / postings * 1e9:5.1f} ns a posting of a view")


def added_up(index: InvertedIndex, view: np.ndarray) -> np.ndarray:
    """Scores as the definition has them, of a plain index: gather, multiply, and add one posting after the other."""
    words, counts = np.unique(view, return_counts=True)
    idf = index.idf[words]
    weights = counts * idf
    weights = weights / np.sqrt(weights @ weights) * idf
    dots = np.zeros(len(index.image_numbers))
    first = 0
    for segment in index.segments:
        postings = segment.postings(words)
        known = np.repeat(weights[np.searchsorted(words, postings.words)], postings.lengths)
        np.add.at(dots[first : first + segment.images], postings.images, postings.counts.astype(np.float64) * known)
        first += segment.images
    return (dots / index.norms).astype(np.float32)


if __name__ == "__main__":
    sys.exit(main())
