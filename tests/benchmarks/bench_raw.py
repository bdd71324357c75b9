"""What the engine raw costs a photo, next to OpenCV's brute-force matcher, and in hours for 55 queries of 5,062 photos.

Run as `OMP_NUM_THREADS=1 python -m tests.benchmarks.bench_raw [--collection DIR]`; it never gates. The collection keeps
descriptors (`cairn index --keep-descriptors`); without one, descriptors are drawn at random, which says what matching
costs and nothing of verification. All is processor time on one thread: others at work on the machine count little.
The first features of a photo stand for those in a query's box.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from index.parallel import one_thread
from retrieval.collection.collection import Collection
from retrieval.matching.nearest import match_descriptors, prepare_query
from retrieval.search.engines.contract import load_engine
from retrieval.search.options import SearchOptions
from retrieval.search.views import View, indexed_view

PAIRS = 55 * 5062  # of a query and a photo, of Oxford5K


def seconds_each(work: Callable[[Any], object], items: Iterable[Any], runs: int = 3) -> float:
    """Processor time of some work on one item, in the fastest of some runs over all of them."""
    items = list(items)
    best = np.inf
    for _ in range(runs):
        start = time.process_time()
        for item in items:
            work(item)
        best = min(best, (time.process_time() - start) / len(items))
    return float(best)


def drawn(size: int, seed: int) -> NDArray[np.float16]:
    """Rows of unit length with no negative entry, as rootSIFT has them."""
    rows = np.abs(np.random.default_rng(seed).normal(size=(size, 128)))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)


def facts_of(query: NDArray[np.float16], photos: list[NDArray[np.float16]], workers: int) -> dict[str, Any]:
    """What matching costs, and how many hours all pairs take."""
    prepared, plain = prepare_query(query), query.astype(np.float32)
    matcher = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True)
    ours = seconds_each(lambda photo: match_descriptors(prepared, photo), photos)
    peer = seconds_each(lambda photo: matcher.match(plain, photo.astype(np.float32)), photos, runs=1)
    return {
        "query_features": len(query),
        "photo_features": round(float(np.mean([len(photo) for photo in photos]))),
        "match_ms": round(1e3 * ours, 1),
        "opencv_ms": round(1e3 * peer, 1),
        "times_faster": round(peer / ours, 1),
        "hours_of_matching": round(ours * PAIRS / 3600 / workers, 2),
    }


def measure_collection(folder: Path, size: int, most: int, workers: int) -> dict[str, Any]:
    """The same of real descriptors, with reading and verification."""
    with Collection.open(folder) as collection, one_thread():
        engine = load_engine("raw")(collection, SearchOptions(engine="raw"))
        images = engine.index.images
        numbers = [int(number) for number in images.numbers[:: max(1, len(images.numbers) // most)]]
        requested = images.features(int(images.numbers[int(np.argmax(images.lengths))]))
        view: View = indexed_view(requested)
        descriptors = np.asarray(requested.columns["descriptor"])
        size = min(size, len(descriptors))
        some = View(
            0.0, view.frames.at(np.arange(size)), descriptors[:size], view.words[:size], view.terms[:size], None
        )
        photos = [np.asarray(images.features(number).columns["descriptor"]) for number in numbers]
        facts = facts_of(some.descriptors, photos, workers)
        whole = seconds_each(lambda number: engine.verify_many(some, [number]), numbers)
    return {
        **facts,
        "verify_ms": round(1e3 * whole, 1),  # with reading, matching and geometry
        "hours": round(whole * PAIRS / 3600 / workers, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1500, 3000, 5500], help="features of the query")
    parser.add_argument("--photos", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2, help="that the queries are shared among")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    for size in options.sizes:
        if options.collection is not None:
            facts = measure_collection(options.collection, size, options.photos, options.workers)
        else:
            with one_thread():
                facts = facts_of(
                    drawn(size, 0), [drawn(4500, 1 + one) for one in range(options.photos)], options.workers
                )
        print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
