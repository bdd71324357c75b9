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
from retrieval.catalogue.photos import all_indexed, counts_of_photos
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.adding import index_photos
from retrieval.library.opening import open as open_collection
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
    with Collection.create(out / "demo.cairn", CollectionOptions(signature=DEFAULT)) as collection:
        index_photos(collection, [made.images], workers=workers, progress=progress)
        queries = read_ground_truth(made.gt)
        scores = {
            name: mean_average_precision([s.ap for s in run_queries(collection, queries, None, options)[0]])
            for name, options in _SETTINGS.items()
        }
        shown = next((query for query in queries if query.name == _SHOWN), queries[0])
        name = next(row.name for row in collection.catalogue.read(all_indexed) if Path(row.path).stem == shown.stem)
        result = _picture(collection, out, str(name), shown.box)
    return {**result, "mAP": {name: round(score, 4) for name, score in scores.items()}}


def run_own_demo(photos: Path, out: Path, workers: int, progress: Progress) -> dict[str, Any]:
    """Index a folder of photos, search for the middle of one that has matches, and draw them."""
    with Collection.create(out / "own.cairn", CollectionOptions(signature=DEFAULT)) as collection:
        index_photos(collection, [photos], workers=workers, progress=progress)
        rows = [row for row in collection.catalogue.read(all_indexed) if row.features]
        if not rows:
            raise CairnError(f"No photo of {photos} can be searched: none shows anything to match.")
        # A photo that another one matches makes a better picture; a few are tried, always the same ones.
        tried = np.random.default_rng(0).permutation(len(rows))[:10]
        best, most = rows[int(tried[0])], -1
        for number in tried:
            row = rows[int(number)]
            with open_collection(collection.folder) as opened:
                answer = opened.search(str(row.name), top=2)
            inliers = sum(one.inliers for one in answer if one.name != row.name)
            if inliers > most:
                best, most = row, inliers
        width, height = best.width or 1, best.height or 1
        box = (width * 0.1, height * 0.1, width * 0.9, height * 0.9)
        return _picture(collection, out, str(best.name), box)


def _picture(collection: Collection, out: Path, name: str, box: tuple[float, float, float, float]) -> dict[str, Any]:
    picture = out / "matches.jpg"
    with open_collection(collection.folder) as opened:
        opened.search(name, box).save_picture(picture)
    counts = collection.catalogue.read(counts_of_photos)
    return {
        "collection": str(collection.folder),
        "images": counts["indexed"],
        "features": counts["features"],
        "words": collection.vocabulary.words,
        "query": name,
        "box": [round(value, 1) for value in box],
        "picture": str(picture),
    }
