"""How long it takes to verify the 200 best photos of a query, on one core: processor time.

Run as `python -m tests.benchmarks.bench_verification --photos DIR`; it never gates. The photos are indexed as with
`cairn index`, some of them are searched for by the features that are indexed, upright, and what the engine spends on
verification is printed, next to what OpenCV takes to detect and describe SIFT features in a photo of theirs (R).
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from retrieval.catalogue.photos import all_indexed

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"  # one core; read when the libraries are first imported

BAR_R = 0.15


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

    from index.inverted import rank
    from retrieval.collection.collection import Collection
    from retrieval.collection.options import CollectionOptions
    from retrieval.commands.options import cores
    from retrieval.indexing.adding import index_photos
    from retrieval.photos.decoding import read_photo
    from retrieval.photos.options import ImageOptions
    from retrieval.search.engines.tf_idf import TfIdf
    from retrieval.search.options import SearchOptions
    from retrieval.search.query import indexed_view

    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.collection or Path(scratch) / "bench.cairn"
        with Collection.create(folder, CollectionOptions(words=arguments.words, signature="none")) as collection:
            index_photos(collection, [arguments.photos], workers=cores())
            rows = collection.catalogue.read(all_indexed)
            chosen = rows[:: max(1, len(rows) // arguments.queries)][: arguments.queries]
            engine = TfIdf(collection, SearchOptions(turns=1))
            words, depth = collection.vocabulary.words, engine.options.verification.depth
            times, opencv, photos, found = [], [], 0, 0
            for row in chosen:
                pixels = read_photo(Path(row.path), ImageOptions()).grey.astype("uint8")
                start = time.process_time()
                cv2.SIFT_create().detectAndCompute(pixels, None)
                opencv.append(1000 * (time.process_time() - start))
                view = indexed_view(engine.index.images.features(row.number))
                best = rank(engine.index.score(view.terms, view.weights), depth)
                numbers = best.image_numbers[best.scores > 0].tolist()
                start = time.process_time()
                verified = engine.verify_many(view, numbers)
                times.append(1000 * (time.process_time() - start))
                photos += len(numbers)
                found += sum(one.inliers > 0 for one in verified)
    facts = {
        "photos": len(rows),
        "words": words,
        "queries": len(times),
        "verified_a_query": round(found / len(times), 1),
        "mean_ms": round(statistics.mean(times), 1),
        "median_ms": round(statistics.median(times), 1),
        "max_ms": round(max(times), 1),
        "photo_us": round(1000 * sum(times) / photos, 1),
        "opencv_ms": round(statistics.mean(opencv), 1),
        "r": round(statistics.mean(times) / statistics.mean(opencv), 3),
        "bar_r": BAR_R,
    }
    if arguments.json:
        print(json.dumps(facts))
        return
    print(f"{len(times)} queries in {len(rows)} photos, {words} words, the best {depth} verified, one core:")
    print(f"mean {facts['mean_ms']} ms, median {facts['median_ms']} ms, longest {facts['max_ms']} ms a query")
    print(f"{facts['photo_us']} us a photo; {facts['verified_a_query']} photos a query pass, itself included")
    print(f"{facts['r']} R (R: OpenCV's SIFT, {facts['opencv_ms']} ms); {BAR_R} R are wanted of a whole query")


if __name__ == "__main__":
    main()
