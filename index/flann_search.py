"""Nearest neighbours by FLANN: a forest of randomised kd-trees."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.neighbours import NearestNeighbours, NeighbourOptions, check_whole

# Settings may come from a file: more than these would only take time and memory.
MOST_TREES = 64


@dataclass(frozen=True)
class FlannOptions(NeighbourOptions):
    """Settings of the `flann` and `pyflann` back-ends."""

    trees: int = 8  # randomised kd-trees (Philbin 2007)
    checks: int = 1_024  # leaves visited for a query, over all trees

    def __post_init__(self) -> None:
        check_whole(self, trees=1, checks=1)
        if self.trees > MOST_TREES:
            raise CairnError(f"trees must be at most {MOST_TREES}.")


class FlannSearch(NearestNeighbours):
    """Randomised kd-trees (Muja & Lowe 2009), the search of Philbin 2007, by OpenCV's binding.

    No index is stored: FLANN trusts its files, pointers included, and rebuilding 100,000 points takes 1.3 s.
    """

    name = "flann"
    options_type = FlannOptions
    draft = FlannOptions(checks=256)

    def _build(self) -> None:
        # OpenCV has one generator a thread, and its trees draw from it.
        import cv2

        cv2.setRNGSeed(self.seed % 2**31)
        flann: Any = cv2
        self._index = flann.flann_Index(self.points, {"algorithm": 1, "trees": self.options.trees})

    def _candidates(self, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        if len(queries) == 0:
            return np.empty((0, k), np.int64)
        numbers, _ = self._index.knnSearch(queries, k, params={"checks": self.options.checks})
        return np.asarray(numbers, np.int64)


class PyflannSearch(NearestNeighbours):
    """Randomised kd-trees by pyflann, the binding of the original FLANN; an optional extra.

    The library ignores the seed, so two builds differ, and so do two loads, which rebuild. It works on the caller's
    array without holding a reference.
    """

    name = "pyflann"
    options_type = FlannOptions
    draft = FlannOptions(checks=256)
    seeded = False

    def _new(self) -> Any:
        import pyflann_ibeis

        return pyflann_ibeis.FLANN()

    def _build(self) -> None:
        self._index = self._new()
        # A search of few points visits all of them anyway, and the trees may find fewer than k and leave the rest of
        # the result uninitialised.
        algorithm = "linear" if len(self.points) <= self.options.checks else "kdtree"
        self._index.build_index(
            self.points, algorithm=algorithm, trees=self.options.trees, random_seed=self.seed % 2**31
        )

    def _candidates(self, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        if len(queries) == 0:
            return np.empty((0, k), np.int64)
        numbers, _ = self._index.nn_index(queries, k, checks=self.options.checks)
        return np.asarray(numbers, np.int64).reshape(len(queries), k)
