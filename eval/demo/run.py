"""The demonstration: index, search for a box, draw the matches, measure."""

from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from eval.benchmark import run_queries
from eval.demo.synthetic import build_demo_collection
from index.errors import CairnError
from index.hamming.kinds import DEFAULT
from index.progress import Progress
from learning.labels.ground_truth import read_ground_truth
from learning.measures.precision import mean_average_precision
from retrieval.collection.options import CollectionOptions
from retrieval.library.answers import Result
from retrieval.library.collection import Collection
from retrieval.library.opening import make
from retrieval.library.photos import Photo
from retrieval.search.options import SearchOptions

_SETTINGS = {
    "tf-idf": SearchOptions(engine="tf-idf"),
    "tf-idf-sp": SearchOptions(engine="tf-idf-sp"),
    "tf-idf-sp, expanded": SearchOptions(engine="tf-idf-sp", expand="average"),
    "signatures": SearchOptions(engine="signatures"),
    "signatures-sp": SearchOptions(engine="signatures-sp"),
    "signatures-sp, expanded": SearchOptions(engine="signatures-sp", expand="average"),
}
_TOP = 50  # results counted
_TRIED = 30  # photos of a folder tried as queries
_SHOWN = "coffee_1"  # the query of the picture


def run_demo(out: Path, workers: int, progress: Progress) -> dict[str, Any]:
    """Make the synthetic collection, index it, measure it by engine (`mAP`), and draw one query's matches."""
    demo = build_demo_collection(out)
    with make(out / "demo.cairn", CollectionOptions(signature=DEFAULT)) as collection:
        collection.add(demo.images, workers=workers, progress=progress)
        queries = read_ground_truth(demo.gt)
        scores = {
            name: mean_average_precision([s.ap for s in run_queries(collection.opened, queries, None, options)[0]])
            for name, options in _SETTINGS.items()
        }
        query_shown = next((query for query in queries if query.name == _SHOWN), queries[0])
        name = next(photo.name for photo in collection if Path(photo.path).stem == query_shown.stem)
        result = _picture(collection, out, name, query_shown.box)
    return {**result, "mAP": {name: round(score, 4) for name, score in scores.items()}}


def run_own_demo(photos: Path, out: Path, workers: int, progress: Progress) -> dict[str, Any]:
    """Index a folder of photos, search for the middle of one that matches many others, and draw these."""
    with make(out / "own.cairn", CollectionOptions(signature=DEFAULT)) as collection:
        collection.add(photos, workers=workers, progress=progress)
        described = sorted((photo for photo in collection if photo.features), key=lambda photo: photo.number)
        if not described:
            raise CairnError(f"No photo of {photos} can be searched: none shows anything to match.")
        # A photo with many matches makes the best picture; try a fixed sample.
        candidates = [described[place] for place in np.random.default_rng(0).permutation(len(described))[:_TRIED]]
        _, name, box = max((_found_with(collection, photo) for photo in candidates), key=lambda one: one[0])
        return _picture(collection, out, name, box)


def _found_with(collection: Collection, photo: Photo) -> tuple[tuple[int, int], str, tuple[float, float, float, float]]:
    """Number of photos and inliers found with the middle of a photo; and the query."""
    width, height = photo.width or 1, photo.height or 1
    box = (width * 0.1, height * 0.1, width * 0.9, height * 0.9)
    others = [one for one in _surely(collection, photo.name, box) if one.name != photo.name]
    return (len(others), sum(one.inliers for one in others)), photo.name, box


def _surely(collection: Collection, name: str, box: tuple[float, float, float, float]) -> list[Result]:
    """The photos found with a box, up to the first that is not certain, for the picture."""
    return list(takewhile(lambda one: one.found, collection.search(name, box, top=_TOP)))


def _picture(collection: Collection, out: Path, name: str, box: tuple[float, float, float, float]) -> dict[str, Any]:
    picture = out / "matches.jpg"
    matches = _surely(collection, name, box)
    collection.search(name, box, top=max(1, len(matches))).save_picture(picture)
    held = collection.info()
    return {
        "collection": str(collection.folder),
        "images": held.images,
        "features": held.features,
        "words": held.words,
        "query": name,
        "box": [round(value, 1) for value in box],
        "found": sum(one.name != name for one in matches),
        "picture": str(picture),
    }
