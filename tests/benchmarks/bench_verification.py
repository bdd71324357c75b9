"""How long it takes to verify the 200 best photos of a query, on one core.

Run as `python -m tests.benchmarks.bench_verification --photos DIR`; it never gates. The photos are indexed as with
`cairn index`, some of them are searched for with the default options, and what the engine spends on verification is
printed.
"""

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"  # one core; read when the libraries are first imported

BAR_MS = 300.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, required=True, help="folder of photos")
    parser.add_argument("--words", type=int, default=0, help="size of the vocabulary; 0: one word for 30 features")
    parser.add_argument("--queries", type=int, default=40, help="how many of the photos are queries, evenly spread")
    parser.add_argument("--collection", type=Path, help="keep the collection here, or use the one that is there")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()

    import cv2

    from retrieval.collection.collection import Collection
    from retrieval.collection.options import CollectionOptions
    from retrieval.commands.options import cores
    from retrieval.indexing.adding import index_photos
    from retrieval.search.answers import search_photo
    from retrieval.search.options import SearchOptions
    from retrieval.search.searcher import Searcher

    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.collection or Path(scratch) / "bench.cairn"
        with Collection.create(folder, CollectionOptions(words=arguments.words)) as collection:
            index_photos(collection, [arguments.photos], workers=cores())
            paths = [Path(row.path) for row in collection.catalogue.images()]
            chosen = paths[:: max(1, len(paths) // arguments.queries)][: arguments.queries]
            searcher = Searcher(collection, SearchOptions())
            search_photo(searcher, chosen[0])  # what is loaded once is not the query's
            times = [1000 * search_photo(searcher, path).answer.seconds["verify"] for path in chosen]
            words = collection.vocabulary.words
    facts = {
        "photos": len(paths),
        "words": words,
        "queries": len(times),
        "verified": min(len(paths), searcher.options.verification.depth),
        "mean_ms": round(statistics.mean(times), 1),
        "median_ms": round(statistics.median(times), 1),
        "max_ms": round(max(times), 1),
        "bar_ms": BAR_MS,
    }
    if arguments.json:
        print(json.dumps(facts))
        return
    print(f"{len(times)} queries, {facts['verified']} of {len(paths)} photos verified, {words} words, one core:")
    print(f"mean {facts['mean_ms']} ms, median {facts['median_ms']} ms, longest {facts['max_ms']} ms a query")
    print(f"at most {BAR_MS:.0f} ms wanted: {'met' if facts['mean_ms'] < BAR_MS else 'missed'}")


if __name__ == "__main__":
    main()
