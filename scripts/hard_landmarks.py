#!/usr/bin/env python3
"""Measure searching where it is hard: small boxes in landmarks, among photos of other sets.

Each query's box is shrunk to half its width and height about its centre, and the photos of paintings and matching are
searched as well. Prints mAP by engine and by the number of turns that a query is tried at: what turning brings, and
what it costs upright photos, shows here and not on the easier sets. The collection that is given is used as it is,
where it holds photos; else the photos are indexed into it.

usage: PYTHONPATH=. scripts/hard_landmarks.py [--collection FOLDER] [--engine NAME]... [--turns N]... [--box 0.5]
           [--workers N] [--json]
"""

import argparse
import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from eval.benchmark import run_queries
from eval.tables.retrieval import markdown
from eval.tables.sets import RetrievalSet
from index.errors import CairnError
from index.hamming.kinds import DEFAULT
from learning.labels.ground_truth import Query
from learning.measures.precision import mean_average_precision
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.commands.options import cores
from retrieval.indexing.adding import index_photos
from retrieval.search.engines.registry import ENGINES
from retrieval.search.options import SearchOptions

DISTRACTORS = ("paintings/images", "matching")


def shrunk(query: Query, part: float) -> Query:
    """Shrink a query's box to a part of its width and height about its centre."""
    x0, y0, x1, y1 = query.box
    across, down = (1 - part) / 2 * (x1 - x0), (1 - part) / 2 * (y1 - y0)
    return replace(query, box=(x0 + across, y0 + down, x1 - across, y1 - down))


def find_datasets() -> Path:
    """Find the folder of the sets."""
    root = os.environ.get("CAIRN_DATASETS")
    if not root:
        raise CairnError("Set CAIRN_DATASETS to the folder of photos.")
    return Path(root)


def measure(collection: Collection, queries: list[Query], engines: list[str], turns: list[int]) -> list[dict[str, Any]]:
    """Give mAP, and each query's average precision, by engine and turns."""
    results = []
    for engine in engines:
        for count in turns:
            print(f"{engine}, {count} turns", file=sys.stderr, flush=True)
            scores, missing = run_queries(collection, queries, None, SearchOptions(engine=engine, turns=count))
            if missing:
                raise CairnError(f"{len(missing)} photos of the ground truth are not indexed, such as {missing[0]}.")
            mean = mean_average_precision([score.ap for score in scores])
            by_query = {score.name: round(score.ap, 6) for score in scores}
            results.append({"engine": engine, "turns": count, "mAP": round(mean, 6), "queries": by_query})
    return results


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--collection", type=Path, help="use this collection, or keep the one that is made here")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="may be repeated [tf-idf, tf-idf-sp]")
    parser.add_argument("--turns", action="append", type=int, help="may be repeated [8, 1]")
    parser.add_argument("--box", type=float, default=0.5, help="part of a box's sides that is left [0.5]")
    parser.add_argument("--workers", type=int, default=0, help="processes that index; 0: one a core")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    arguments = parser.parse_args()
    if not 0 < arguments.box <= 1:
        parser.error("--box: more than 0, and at most 1.")
    try:
        root = find_datasets()
        landmarks = RetrievalSet.find(root / "landmarks")
        queries = [shrunk(query, arguments.box) for query in landmarks.asked]
        with tempfile.TemporaryDirectory() as scratch:
            folder = arguments.collection or Path(scratch) / "hard.cairn"
            with Collection.create(folder, CollectionOptions(signature=DEFAULT)) as collection:
                if not collection.catalogue.counts()["indexed"]:
                    photos = [landmarks.images, *(root / name for name in DISTRACTORS)]
                    index_photos(collection, photos, workers=arguments.workers or cores())
                engines, turns = arguments.engine or ["tf-idf", "tf-idf-sp"], arguments.turns or [8, 1]
                results = measure(collection, queries, engines, turns)
                facts = {"photos": collection.catalogue.counts()["indexed"], "words": collection.vocabulary.words}
    except CairnError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    facts |= {"box": arguments.box, "queries": len(queries)}
    if arguments.json:
        print(json.dumps({**facts, "results": results}))
        return
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    print(
        markdown(
            ["engine", "turns", "mAP"], [[one["engine"], str(one["turns"]), f"{one['mAP']:.4f}"] for one in results]
        )
    )


if __name__ == "__main__":
    main()
