"""Nearest neighbours by faiss: an inverted file of product codes, re-ranked."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from index.errors import CairnError
from index.faiss_file import check_listed, check_scanned
from index.neighbours import NearestNeighbours, SearchOptions, _faiss, check_whole

# A 4-bit code is one of 16, learnt from as many points at least.
FEWEST_CODED = 16
# Settings may come from a file: more than these would only take time and memory.
MOST_LIST_FACTOR = 16


@dataclass(frozen=True)
class FaissOptions(SearchOptions):
    """Settings of the `faiss` back-end."""

    exact_below: int = 2_000  # with fewer points than this, all distances are computed
    lists_from: int = 30_000  # from so many points on, only some inverted lists are scanned, not all codes
    list_factor: float = 1.0  # inverted lists = list_factor * sqrt(points)
    probes: int = 32  # inverted lists scanned for a query
    code_dims: int = 2  # dimensions a 4-bit code stands for: 1 to 4; fewer is slower and more accurate
    candidates: int = 16  # best by code, whose exact distances are then computed, beside the k asked for

    def __post_init__(self) -> None:
        check_whole(self, exact_below=0, lists_from=0, probes=1, code_dims=1, candidates=1)
        factor = self.list_factor
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= MOST_LIST_FACTOR:
            raise CairnError(f"list_factor must be a number above 0 and at most {MOST_LIST_FACTOR}.")


class FaissSearch(NearestNeighbours):
    """Product-quantised codes scanned in registers, the best re-ranked by exact distance (André 2015; Douze 2024).

    Three sizes: few points are searched exactly; up to some ten thousand all codes are scanned; beyond that the points
    are split into inverted lists and only those near the query are scanned.
    """

    name = "faiss"
    options_type = FaissOptions
    draft = FaissOptions(lists_from=0, probes=8, code_dims=4, candidates=6)

    def _build(self) -> None:
        dim = self.points.shape[1]
        self._index: Any = None
        if self._is_exact:
            return
        codes, lists = self._codes, self._lists
        if lists:
            index = _faiss.index_factory(dim, f"IVF{lists},PQ{codes}x4fs")
            index.nprobe = min(self.options.probes, lists)
            _set_training(index.cp, self.seed)
        else:
            index = _faiss.index_factory(dim, f"PQ{codes}x4fs")
        _set_training(index.pq.cp, self.seed)
        with _one_thread():
            index.train(self.points)
        index.add(self.points)
        self._index = index

    def _candidates(self, queries: np.ndarray, k: int) -> np.ndarray:
        if self._index is None:
            return faiss.knn(queries, self.points, k)[1]
        wanted = min(len(self.points), self.options.candidates + k + k // 4 - 1)
        return self._index.search(queries, wanted)[1]

    def _write(self, file: Path) -> bool:
        if self._index is None:
            return False
        # Not by faiss, which does not notice that a full disk has not taken all of it.
        file.write_bytes(faiss.serialize_index(self._index).tobytes())
        return True

    def _read(self, contents: bytes) -> None:
        if self._is_exact:
            raise ValueError("so few points need none")
        array = np.frombuffer(contents, np.uint8)
        count, dim = self.points.shape
        if self._lists:
            check_listed(array, count, dim, self._codes, self._lists, min(self.options.probes, self._lists))
        else:
            check_scanned(array, count, dim, self._codes)
        self._index = faiss.deserialize_index(array)

    @property
    def _is_exact(self) -> bool:
        """Whether all distances are computed."""
        return len(self.points) < max(self.options.exact_below, FEWEST_CODED)

    @property
    def _codes(self) -> int:
        """4-bit codes of a point."""
        dim, dims = self.points.shape[1], self.options.code_dims
        return dim // dims if dim % dims == 0 else dim

    @property
    def _lists(self) -> int:
        """Inverted lists; 0: there are none."""
        count = len(self.points)
        if count < self.options.lists_from:
            return 0
        return min(count, max(1, round(self.options.list_factor * count**0.5)))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run faiss in one thread for a while.

    Its small codebooks are learnt in so many tiny parallel steps that waiting for each other, on a busy machine, takes
    threads a hundred times longer than the work does.
    """
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def _set_training(clustering: Any, seed: int) -> None:
    clustering.seed = seed % 2**31
    clustering.niter = 8
    # The small codebooks are good from few points, and a warning on standard error would help nobody.
    clustering.min_points_per_centroid = 1
