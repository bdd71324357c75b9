"""What global descriptors do in a search: which photos are searched, and how their likeness changes scores."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.extensions import ExtensionMissing
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.filters import PhotoFilter
from retrieval.collection.collection import Collection
from retrieval.collection.global_rows import GlobalRows
from retrieval.foreign.global_descriptors import GlobalDescriptor, find_global, row_by
from retrieval.matching.verification import Verification
from retrieval.search.engines.contract import Engine
from retrieval.search.views import View

_WEIGHT, _MOST = 0.1, 5.0  # of the likeness, and standard deviations that count


def load_global(kept: GlobalRows) -> GlobalDescriptor:
    """The extension that describes other photos as those of a collection; raises CairnError if it is not here."""
    extension: GlobalDescriptor = find_global(str(kept.place)).load()
    if str(extension.fingerprint) != kept.model:
        raise CairnError(
            "The global descriptor {name} is another now than that of the collection, by another model or version: "
            "take that, or run {cairn global} again.",
            name=kept.name,
        )
    return extension


def photos_like(collection: Collection, text: str, wanted: PhotoFilter, top: int) -> list[tuple[int, float]]:
    """Numbers of the photos that are the most like some words, the best first, and their likeness."""
    kept = collection.global_rows
    if kept is None or kept.place is None:
        raise CairnError(
            "The photos of {folder} have no global descriptors that can also describe words: add such with "
            "{cairn global} and an extension that does.",
            folder=collection.folder,
        )
    try:
        row = row_by(load_global(kept), text)
    except ExtensionMissing:
        raise
    except CairnError as error:
        raise CairnError("No photos can be found by words: {reason}.", reason=error.message) from error
    numbers = collection.catalogue.read(numbers_of, wanted)
    likeness = kept.likeness(row, numbers)
    best = np.argsort(-likeness, kind="stable")[:top]
    return [(int(numbers[one]), float(likeness[one])) for one in best if likeness[one] > -1]


def shortlisted(
    likeness: NDArray[np.float32], numbers: NDArray[np.integer], among: NDArray[np.integer] | None, most: int
) -> NDArray[np.integer]:
    """Numbers of the `most` photos that are the most like the query, of all (N,) or of some."""
    there = np.ones(len(numbers), bool) if among is None else np.isin(numbers, among)
    some, numbers = likeness[there], numbers[there]
    return np.sort(numbers[np.argsort(-some, kind="stable")[:most]])


class LikenessEngine(Engine):
    """Scores as an engine does, raised by the likeness (N,) of whole photos to the query; or by that alone."""

    def __init__(self, engine: Engine, likeness: NDArray[np.float32], *, alone: bool) -> None:
        self.options, self.index = engine.options, engine.index
        self._engine, self._alone = engine, alone
        self._likeness = likeness

    def score_many(self, views: Sequence[View]) -> NDArray[np.float32]:
        """Score all photos: see `Engine.score_many`."""
        if self._alone:
            return np.stack([np.maximum(self._likeness, 0)] * len(views))
        return np.asarray(self._engine.score_many(views) * raised(self._likeness), np.float32)

    def verify(self, view: View, number: int) -> Verification:
        """Verify one photo as the engine does: see `Engine.verify`."""
        return self._engine.verify(view, number)

    def verify_many(self, view: View, numbers: Sequence[int]) -> list[Verification]:
        """Verify some photos as the engine does: see `Engine.verify_many`."""
        return self._engine.verify_many(view, numbers)


def raised(likeness: NDArray[np.float32]) -> NDArray[np.float64]:
    """By what scores are multiplied for the likeness (N,) of whole photos: it counts by how far it stands out from that
    of the others, in standard deviations, as cosines of one network lie near 0 and those of another near 1.
    """
    there = likeness > -1
    spread = float(likeness[there].std()) if there.any() else 0.0
    if spread <= 0:
        return np.ones(len(likeness))
    stands_out = np.where(there, (likeness - likeness[there].mean(dtype=np.float64)) / spread, 0)
    return np.asarray(np.exp(_WEIGHT * np.clip(stands_out, -_MOST, _MOST)), np.float64)
