"""What a large vocabulary takes: to make, extrapolated from two passes of k-means, and to look words up in.

Run as `OMP_NUM_THREADS=1 python -m tests.benchmarks.bench_vocabulary --features DIR`; it never gates. The features are
those of real photos, as `bench_scale` keeps them in its folder. A tenth of the photos is left out of k-means, and their
descriptors are what words are looked up for.
"""

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from index.clustering.kmeans import (
    COST_BUILD,
    COST_NEAR,
    COST_READ,
    COST_SEARCH,
    KMeansOptions,
    approximate_kmeans,
    sample_descriptors,
)
from index.clustering.sources import FileSource
from index.kernels.products import squared_distances
from index.parallel import one_thread
from index.search_backends import search_backend


def time_passes(source: FileSource, words: int) -> tuple[dict[str, float], np.ndarray]:
    """Processor time of the steps of two passes, in µs of a descriptor or, of what comes before a pass, of a word."""
    points = len(source)
    begun = time.process_time()
    reached: dict[int, float] = {}
    made = approximate_kmeans(
        source,
        KMeansOptions(words=words, iterations=2, sample_per_word=0),
        progress=lambda done, of: reached.setdefault(done, time.process_time() - begun),
    )
    steps = np.cumsum(
        [COST_READ * points, COST_BUILD * words, COST_SEARCH * points, (COST_BUILD + COST_NEAR) * words]
    ).tolist()
    times = np.diff([0.0, *(reached[step] for step in steps), time.process_time() - begun])
    names = ("read", "build", "search", "build_and_neighbours", "compare")
    per = (points, words, points, words, points)
    return {
        name: 1e6 * float(spent) / count for name, spent, count in zip(names, times, per, strict=True)
    }, made.centres


def extrapolate(steps: dict[str, float], words: int, descriptors: int, options: KMeansOptions) -> float:
    """CPU hours of all passes over so many descriptors."""
    searched = len(range(0, options.iterations, options.refresh))
    each = steps["read"] + searched * steps["search"] + (options.iterations - 1) * steps["compare"]
    before = steps["build"] + (options.iterations - 1) * steps["build_and_neighbours"]
    return (each * descriptors + before * words) / 3.6e9


def look_up(centres: np.ndarray, queries: np.ndarray) -> list[dict[str, Any]]:
    """Recall@1 and µs a descriptor, of the default back-end next to faiss alone, quick and thorough."""
    nearest = faiss.knn(queries, centres, 1)[1]
    exact = squared_distances(queries, centres, nearest)
    rows = []
    for name in ("ivf", "faiss"):
        search = search_backend(name).build(centres)
        for quick in (True, False):
            search.search(queries[:500], 1, quick=quick)
            start = time.process_time()
            distances = search.search(queries, 1, quick=quick)[1]
            microseconds = 1e6 * (time.process_time() - start) / len(queries)
            recall = float((distances <= exact).mean())
            rows.append({"search": name, "quick": quick, "recall": round(recall, 4), "us": round(microseconds, 1)})
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=Path, required=True, metavar="DIR", help="folder of *.descriptors.npy")
    parser.add_argument("--words", type=int, default=500_000)
    parser.add_argument("--descriptors", type=int, default=25_000_000, help="that the time is extrapolated to")
    parser.add_argument("--json", action="store_true", help="print one JSON object without line breaks")
    arguments = parser.parse_args()
    files = sorted(arguments.features.rglob("*.descriptors.npy"))
    if len(files) < 10:
        raise SystemExit(f"{arguments.features} holds features of {len(files)} photos: 10 at least are needed.")
    requested, learnt = files[::10], [file for number, file in enumerate(files) if number % 10]
    faiss.omp_set_num_threads(1)
    with one_thread():
        source = FileSource(learnt)
        steps, centres = time_passes(source, arguments.words)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        queries = sample_descriptors(FileSource(requested), 8192, 0)
        rows = look_up(centres, queries)
    facts = {
        "descriptors": len(source),
        "words": len(centres),
        "microseconds": {name: round(value, 2) for name, value in steps.items()},
        "cpu_hours": round(extrapolate(steps, arguments.words, arguments.descriptors, KMeansOptions()), 2),
        "of_descriptors": arguments.descriptors,
        # A descriptor adds its word and, before the first pass, its hash and two orders of these.
        "memory_gb": round(
            max(peak + 4e-9 * (arguments.descriptors - len(source)), 0.4 + 28e-9 * arguments.descriptors), 2
        ),
        "look_up": rows,
    }
    print(json.dumps(facts, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()
