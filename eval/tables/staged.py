"""Features of benchmark sets on disk: described once, then used with as many vocabularies as are measured.

What a photo's features are depends on the extractor alone, and the seed and the photos of a vocabulary have no part in
it. So photos are staged in one folder, in the form in which indexing looks for them, and linked into each collection;
queries, which are described at many turns, are kept beside them.
"""

import io
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval.tables.sets import PhotoSet, RetrievalSet
from index.arrays import reading, save_bytes
from index.parallel import run
from learning.labels.ground_truth import Query
from retrieval.collection.collection import Collection
from retrieval.collection.layout import STAGING
from retrieval.features.extraction import Extractor
from retrieval.features.staging import Staging
from retrieval.photos.decoding import Photo
from retrieval.photos.options import ImageOptions
from retrieval.regions.detection import Regions
from retrieval.regions.geometry import Frames
from retrieval.regions.options import RegionOptions
from retrieval.search.query import DescribedQuery, describe_query
from retrieval.search.views import DescribedView


def query_folder(work: Path, photos: RetrievalSet, extractor: Extractor, image: ImageOptions, turns: int) -> Path:
    """Folder of a set's described queries, ``NAME.npz``."""
    return work / "queries" / f"{extractor.fingerprint[:16]}-{image.name}-{turns}" / photos.key


def stage_photos(
    work: Path, photos: PhotoSet, extractors: Sequence[Extractor], image: ImageOptions, workers: int
) -> Iterator[tuple[int, int]]:
    """Describe the photos of a set by several extractors, unless they are there.

    Regions are detected once for all extractors that detect alike, such as those of several measurement scales.

    Parameters
    ----------
    work : Path
        Folder of all that is kept.
    photos : PhotoSet
        The set.
    extractors : sequence of Extractor
        Regions, patches and descriptors.
    image : ImageOptions
        How photos are read.
    workers : int
        Processes; the result does not depend on it.

    Yields
    ------
    (int, int)
        How many photos are done, and how many there are. Photos that cannot be read are passed over; indexing reports
        them.
    """
    once = {key: path for path, key in photos.photos.items()}  # a photo that is there twice is described once
    jobs = [partial(_stage_photo, work, extractors, image, path, key) for key, path in once.items()]
    for count, _ in enumerate(run(jobs, workers, ordered=False, batch=4), start=1):
        yield count, len(jobs)


def stage_queries(
    work: Path, photos: RetrievalSet, extractor: Extractor, image: ImageOptions, turns: int, workers: int
) -> Iterator[tuple[int, int]]:
    """Describe the queries of a set at some turns, unless they are there.

    Parameters and what it yields are those of `stage_photos`.

    Raises
    ------
    CairnError
        A query's photo cannot be read or found.
    """
    folder = query_folder(work, photos, extractor, image, turns)
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [partial(_stage_query, folder, extractor, image, path, query, turns) for query, path in photos.pairs()]
    for count, _ in enumerate(run(jobs, workers, ordered=False, batch=4), start=1):
        yield count, len(jobs)


def link_features(
    work: Path, photos: PhotoSet, extractor: Extractor, image: ImageOptions, collection: Collection
) -> None:
    """Put the staged features of a set where indexing into a collection looks for them."""
    source = Staging(work / "features", extractor, image)
    target = Staging(collection.folder / STAGING, extractor, image)
    for key in dict.fromkeys(photos.photos.values()):
        target.take(source.folder, key)


def save_described(path: Path, described: DescribedQuery) -> None:
    """Write a described query as .npz, whole or not at all."""
    views = described.views
    file = io.BytesIO()
    np.savez(
        file,
        size=np.array([described.width, described.height]),
        box=np.array(described.box or (), np.float64),
        turns=np.array([view.turn for view in views]),
        elongation=views[0].elongation,
        counts=np.array([len(view.descriptors) for view in views]),
        centres=np.concatenate([view.frames.centres for view in views]),
        linear=np.concatenate([view.frames.linear for view in views]),
        descriptors=np.concatenate([view.descriptors for view in views]),
    )
    save_bytes(path, file.getvalue())


def load_described(path: Path, photo: Path) -> DescribedQuery:
    """Read what `save_described` wrote of a photo.

    Raises
    ------
    CairnError
        The file is missing or damaged.
    """
    with reading(path, "described query", "describing the set again"), np.load(path, allow_pickle=False) as file:
        parts = np.cumsum(file["counts"])[:-1]
        rows = [np.split(file[name], parts) for name in ("centres", "linear", "descriptors")]
        views = [
            DescribedView(turn, Frames(centres, linear), descriptors, elongation=float(file.get("elongation", 1.0)))
            for turn, centres, linear, descriptors in zip(file["turns"].tolist(), *rows, strict=True)
        ]
        width, height = file["size"].tolist()
        x0_to_y1 = file["box"].tolist()
        box = (x0_to_y1[0], x0_to_y1[1], x0_to_y1[2], x0_to_y1[3]) if x0_to_y1 else None
        return DescribedQuery(photo, width, height, box, views)


# Pixels of a photo and its regions, by how they were looked for, and in which box.
_Known = dict[tuple[RegionOptions, tuple[float, float, float, float] | None], tuple[NDArray[np.float32], Regions]]


class _Sharing(Extractor):
    """An extractor that takes over the regions another one has just detected in the same photo in the same way."""

    def __init__(self, extractor: Extractor, known: _Known) -> None:
        super().__init__(extractor.descriptor, extractor.options)
        self._known = known

    def detect(self, photo: Photo, within: tuple[float, float, float, float] | None = None) -> Regions:
        """Detect regions, unless they are known; of a photo read again, the pixels say that it is the same."""
        key = self.options.regions, within
        before = self._known.get(key)
        if before is None or not np.array_equal(before[0], photo.grey):
            before = self._known[key] = photo.grey, super().detect(photo, within)
        return before[1]


def _share(extractors: Sequence[Extractor]) -> list[Extractor]:
    known: _Known = {}
    return [_Sharing(extractor, known) for extractor in extractors]


def _stage_photo(work: Path, extractors: Sequence[Extractor], image: ImageOptions, path: Path, key: str) -> None:
    for extractor in _share(extractors):
        Staging(work / "features", extractor, image).stage(path, key)


def _stage_query(folder: Path, extractor: Extractor, image: ImageOptions, path: Path, query: Query, turns: int) -> None:
    file = folder / f"{query.name}.npz"
    if not file.exists():
        save_described(file, describe_query(extractor, image, path, query.box, turns))
