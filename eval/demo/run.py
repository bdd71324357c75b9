"""The demonstration: index, search for a box, draw the matches, measure."""

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
from retrieval.library.collection import Collection
from retrieval.library.opening import make
from retrieval.search.options import SearchOptions

_SETTINGS = {
    "tf-idf": SearchOptions(engine="tf-idf"),
    "tf-idf-sp": SearchOptions(engine="tf-idf-sp"),
    "tf-idf-sp, expanded": SearchOptions(engine="tf-idf-sp", expand="average"),
    "signatures": SearchOptions(engine="signatures"),
    "signatures-sp": SearchOptions(engine="signatures-sp"),
    "signatures-sp, expanded": SearchOptions(engine="signatures-sp", expand="average"),
}
_SHOWN = "coffee_1"  # the query of the picture


def run_demo(out: Path, workers: int, progress: Progress) -> dict[str, Any]:
    """Make the synthetic collection, index it, measure it, and draw one query's matches.

    Parameters
    ----------
    out : Path
        Folder for everything; may hold an earlier demo.
    workers : int
        Processes.
    progress : callable
        Told how far each step is.

    Returns
    -------
    dict
        Counts, paths, and `mAP` by engine.
    """
    made = build_demo_collection(out)
    with make(out / "demo.cairn", CollectionOptions(signature=DEFAULT)) as collection:
        collection.add(made.images, workers=workers, progress=progress)
        queries = read_ground_truth(made.gt)
        scores = {
            name: mean_average_precision([s.ap for s in run_queries(collection.opened, queries, None, options)[0]])
            for name, options in _SETTINGS.items()
        }
        shown = next((query for query in queries if query.name == _SHOWN), queries[0])
        name = next(photo.name for photo in collection if Path(photo.path).stem == shown.stem)
        result = _picture(collection, out, name, shown.box)
    return {**result, "mAP": {name: round(score, 4) for name, score in scores.items()}}


def run_own_demo(photos: Path, out: Path, workers: int, progress: Progress) -> dict[str, Any]:
    """Index a folder of photos, search for the middle of one that has matches, and draw them."""
    with make(out / "own.cairn", CollectionOptions(signature=DEFAULT)) as collection:
        collection.add(photos, workers=workers, progress=progress)
        described = sorted((photo for photo in collection if photo.features), key=lambda photo: photo.number)
        if not described:
            raise CairnError(f"No photo of {photos} can be searched: none shows anything to match.")
        # A photo that another one matches makes a better picture; a few are tried, always the same ones.
        tried = [described[place] for place in np.random.default_rng(0).permutation(len(described))[:10]]
        best, most = tried[0], -1
        for photo in tried:
            inliers = sum(one.inliers for one in collection.search(photo.name, top=2) if one.name != photo.name)
            if inliers > most:
                best, most = photo, inliers
        width, height = best.width or 1, best.height or 1
        box = (width * 0.1, height * 0.1, width * 0.9, height * 0.9)
        return _picture(collection, out, best.name, box)


def _picture(collection: Collection, out: Path, name: str, box: tuple[float, float, float, float]) -> dict[str, Any]:
    picture = out / "matches.jpg"
    collection.search(name, box).save_picture(picture)
    held = collection.info()
    return {
        "collection": str(collection.folder),
        "images": held.images,
        "features": held.features,
        "words": held.words,
        "query": name,
        "box": [round(value, 1) for value in box],
        "picture": str(picture),
    }
