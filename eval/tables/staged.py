"""Staged features of benchmark sets: described once, then linked into each measured collection."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval.tables.sets import PhotoSet
from index.parallel import run
from retrieval.collection.collection import Collection
from retrieval.collection.layout import STAGING
from retrieval.features.extraction import Extractor
from retrieval.features.staging import Staging
from retrieval.photos.decoding import Photo
from retrieval.photos.options import ImageOptions
from retrieval.regions.detection import Regions
from retrieval.regions.options import RegionOptions


def stage_photos(
    work: Path, photos: PhotoSet, extractors: Sequence[Extractor], image: ImageOptions, workers: int
) -> Iterator[tuple[int, int]]:
    """Describe photos by several extractors, unless already done, sharing regions; yields the number done and the
    total.
    """
    once = {key: path for path, key in photos.photos.items()}  # duplicate photos are described once
    jobs = [partial(_stage_photo, work, extractors, image, path, key) for key, path in once.items()]
    for count, _ in enumerate(run(jobs, workers, ordered=False, batch=4), start=1):
        yield count, len(jobs)


def link_features(
    work: Path, photos: PhotoSet, extractor: Extractor, image: ImageOptions, collection: Collection
) -> None:
    """Link the staged features of a set into a collection, where indexing finds them."""
    source = Staging(work / "features", extractor, image)
    target = Staging(collection.folder / STAGING, extractor, image)
    for key in dict.fromkeys(photos.photos.values()):
        target.take(source.folder, key)


# Pixels of a photo and its regions, by detection options and box.
_Known = dict[tuple[RegionOptions, tuple[float, float, float, float] | None], tuple[NDArray[np.float32], Regions]]


class _Sharing(Extractor):
    """An extractor that reuses the regions just detected in the same photo by another one with the same options."""

    def __init__(self, extractor: Extractor, known: _Known) -> None:
        super().__init__(extractor.descriptor, extractor.options)
        self._known = known

    def detect(self, photo: Photo, within: tuple[float, float, float, float] | None = None) -> Regions:
        """Detect regions, unless cached; a photo read again is recognised by its pixels."""
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
