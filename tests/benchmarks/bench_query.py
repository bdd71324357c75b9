"""What a query costs compared with SIFT: processor time over that of describing the same photo with OpenCV's SIFT.

Run as `OMP_NUM_THREADS=1 python -m tests.benchmarks.bench_query --collection DIR [--gt DIR]`; it never gates. R is the
processor time of `cv2.SIFT_create().detectAndCompute` on the query's photo at the size that the collection works with,
on one thread, measured beside each query. Queries go through the jobs of the server's workers, with the collection open
and warm: the default engine, 20 results with homographies, eight turns offered. Each photo, or box in one, is asked
with twice: as the photo of the collection that it is, and as an upload, encoded again so that it is not known by its
content. The former is asked upright only, too: the page of results shows that answer first.
"""

import argparse
import gc
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from index.parallel import one_thread
from learning.labels.ground_truth import read_ground_truth
from retrieval.catalogue.photos import all_indexed, counts_of_photos
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.photos.decoding import Photo, read_colour, read_photo
from retrieval.photos.options import ImageOptions
from retrieval.photos.thumbnails import encode_jpeg
from retrieval.search.query import Box, QuerySource
from retrieval.search.views import DescribedView
from retrieval.web.jobs import SearchJobs, ServedCollection
from retrieval.web.search_models import QueryPhoto, SearchRequest

QUALITY = 90  # of the JPEG files that are uploaded
SHARES = (50, 95)
# What is asked: its title, whether it is an upload, and the turns offered; 0: those of the option.
KINDS = {
    "indexed": ("an indexed photo, or a box in one", False, 0),
    "upload": ("the same as an upload", True, 0),
    "indexed_upright": ("an indexed photo, upright only", False, 1),
}


@dataclass(frozen=True)
class Asked:
    """A photo of the collection, or a box in one."""

    row: ImageRow
    box: Box | None = None


@dataclass
class Costs:
    """What queries of one kind cost."""

    milliseconds: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)  # to R of the same photo
    turned: int = 0  # queries that were described at another turn than upright
    results: int = 0
    verified: int = 0  # of the results

    def facts(self) -> dict[str, Any]:
        """Means and percentiles."""
        facts: dict[str, Any] = {"queries": len(self.ratios)}
        for name, values, digits in (("ms", self.milliseconds, 1), ("ratio", self.ratios, 3)):
            facts[name] = {f"p{share}": round(float(np.percentile(values, share)), digits) for share in SHARES}
            facts[name]["mean"] = round(float(np.mean(values)), digits)
        return {**facts, "turned": self.turned, "results": self.results, "verified": self.verified}


class CountTurned:
    """Counts descriptions at other turns than upright, by standing before what makes the view of a turn."""

    def __init__(self) -> None:
        self.turned = 0
        self._describe = QuerySource.describe

    def __enter__(self) -> "CountTurned":
        def describe(source: QuerySource, turn: float, full: bool = False) -> DescribedView:
            self.turned += turn != 0
            return self._describe(source, turn, full)

        QuerySource.describe = describe  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        QuerySource.describe = self._describe  # type: ignore[method-assign]


def queries_of(collection: Collection, ground_truth: Path | None, most: int) -> list[Asked]:
    """Choose queries, evenly spread: those of a ground truth whose photos are in the collection, or whole photos."""
    rows = collection.catalogue.read(all_indexed)
    if ground_truth is None:
        requested = [Asked(row) for row in rows]
    else:
        by_stem = {Path(row.path).stem: row for row in rows}
        known = [query for query in read_ground_truth(ground_truth) if query.stem in by_stem]
        requested = [Asked(by_stem[query.stem], query.box) for query in known]
    return requested[:: max(1, len(requested) // most)][:most] if most else requested


def sift_time(photo: Photo) -> float:
    """R: seconds of processor time that OpenCV's SIFT takes for a photo."""
    opencv: Any = cv2  # whose type stubs do not know SIFT
    grey = np.round(photo.grey).clip(0, 255).astype(np.uint8)
    start = time.process_time()
    opencv.SIFT_create().detectAndCompute(grey, None)
    return time.process_time() - start


def measure(folder: Path, requested: Sequence[Asked], image: ImageOptions, turns: int = 8) -> dict[str, Any]:
    """Ask with photos of a collection and with uploads of the same.

    Parameters
    ----------
    folder : Path
        The collection.
    asked : sequence of Asked
        The queries; their files are there.
    image : ImageOptions
        How the collection reads photos.
    turns : int
        Turns offered.

    Returns
    -------
    dict of str to object
        R, and the costs of both kinds of query, in ms of processor time and as ratios to R.
    """
    cv2.setNumThreads(1)
    jobs = SearchJobs(ServedCollection(folder))
    costs = {kind: Costs() for kind in KINDS}
    references = []

    def ask(some: Costs, request: dict[str, Any], reference: float) -> None:
        with CountTurned() as count:
            start = time.process_time()
            answer, _ = jobs.do("search", request)
            seconds = time.process_time() - start
        some.milliseconds.append(1000 * seconds)
        some.ratios.append(seconds / reference)
        some.turned += count.turned > 0
        some.results += len(answer["results"])
        some.verified += sum(one["inliers"] > 0 for one in answer["results"])

    gc.collect()
    gc.freeze()  # as a worker of the server does
    with one_thread(), tempfile.TemporaryDirectory() as scratch:
        upload = Path(scratch) / "upload.jpg"
        for place, one in enumerate([*requested[:1], *requested]):
            path = Path(one.row.path)
            upload.write_bytes(encode_jpeg(read_colour(path, ImageOptions(max_side=0)), QUALITY))
            reference = sift_time(read_photo(path, image))
            if place == 0:  # what is loaded or computed once is not the first query's
                ask(Costs(), request_of(one, None, turns + 1), reference)
                ask(Costs(), request_of(one, upload, turns + 1), reference)
                continue
            references.append(reference)
            for kind, (_, is_upload, offered) in KINDS.items():
                ask(costs[kind], request_of(one, upload if is_upload else None, offered or turns), reference)
    return {
        "turns": turns,
        "R_ms": round(1000 * float(np.mean(references)), 1),
        **{kind: some.facts() for kind, some in costs.items()},
    }


def request_of(requested: Asked, upload: Path | None, turns: int) -> dict[str, Any]:
    """Write the request of a search as a worker of the server takes it."""
    box = list(requested.box) if requested.box is not None else None
    if upload is None:
        return SearchRequest(queries=[QueryPhoto(photo=requested.row.number, box=box)], turns=turns).model_dump(
            mode="json"
        )
    request = SearchRequest(queries=[QueryPhoto(upload=0, box=box)], turns=turns).model_dump(mode="json")
    request["queries"][0] |= {"path": str(upload), "name": upload.name}
    return request


def show(facts: dict[str, Any]) -> None:
    """Print what was measured."""
    print(f"R: {facts['R_ms']} ms; {facts['turns']} turns offered")
    for kind, (title, *_) in KINDS.items():
        costs = facts[kind]
        figures = [f"{name} {costs['ms'][name]} ms ({costs['ratio'][name]} R)" for name in costs["ms"]]
        tried = f"{costs['turned']} of {costs['queries']} queries tried turned views"
        print(f"{title}: {', '.join(figures)}; {tried}; {costs['verified']} of {costs['results']} results verified")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path, required=True, help="an indexed collection")
    parser.add_argument("--gt", type=Path, help="ground truth whose queries are asked; without it, whole photos")
    parser.add_argument("--queries", type=int, default=0, help="so many at most, evenly spread; 0: all")
    parser.add_argument("--turns", type=int, default=8, help="turns at which a query may be tried")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    with Collection.open(arguments.collection) as collection:
        requested = queries_of(collection, arguments.gt, arguments.queries)
        image = collection.options.image
        photos = collection.catalogue.read(counts_of_photos)["indexed"]
    facts = {"photos": photos, **measure(arguments.collection, requested, image, arguments.turns)}
    if arguments.json:
        print(json.dumps(facts))
    else:
        show(facts)


if __name__ == "__main__":
    main()
