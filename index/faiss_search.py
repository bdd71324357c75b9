"""Nearest neighbours by faiss: an inverted file of product codes, re-ranked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from index.arrays import save_arrays
from index.inverted_lists import check_list_factor, number_of_lists, read_arrays, set_training, single_thread
from index.neighbours import NearestNeighbours, NeighbourOptions, check_whole

# Its stubs lack some attributes that its C++ side adds.
_faiss: Any = faiss

# A 4-bit code is one of 16 values, learnt from at least as many points.
FEWEST_CODED = 16
_BLOCK = 32  # codes that faiss scans together
# Scan inverted lists one query after the other: with short lists that takes nine tenths of the time of faiss's default,
# in which several queries share a scan of a list.
_ONE_BY_ONE = 10
_SHORT = 400  # points of a list, on average


@dataclass(frozen=True)
class FaissOptions(NeighbourOptions):
    """Settings of the `faiss` back-end."""

    exact_below: int = 2_000  # with fewer points than this, all distances are computed
    lists_from: int = 30_000  # from this many points on, only some inverted lists are scanned, not all codes
    list_factor: float = 1.0  # inverted lists = list_factor * sqrt(points)
    probes: int = 32  # inverted lists scanned for a query
    code_dims: int = 2  # dimensions a 4-bit code stands for: 1 to 4; fewer is slower and more accurate
    candidates: int = 16  # best by code, in addition to the k requested, whose exact distances are then computed

    def __post_init__(self) -> None:
        check_whole(self, exact_below=0, lists_from=0, probes=1, code_dims=1, candidates=1)
        check_list_factor(self.list_factor)


class FaissSearch(NearestNeighbours):
    """Product-quantised codes scanned in registers, the best re-ranked by exact distance (André 2015; Douze 2024).

    Three sizes: few points are searched exactly; up to some ten thousand all codes are scanned; beyond that the points
    are split into inverted lists and only those near the query are scanned.
    """

    name = "faiss"
    options: FaissOptions
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
            set_training(index.cp, self.seed)
        else:
            index = _faiss.index_factory(dim, f"PQ{codes}x4fs")
        set_training(index.pq.cp, self.seed)
        with single_thread():
            index.train(self.points)
        index.add(self.points)
        self._index = index
        self._set_search()

    def _candidates(self, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        if self._index is None:
            return self._nearest(queries, k)
        return np.asarray(self._index.search(queries, self._wanted(k))[1])

    def _quick_candidates(self, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        if self._index is None or not self._lists:
            return self._candidates(queries, k)
        half = _faiss.SearchParametersIVF(nprobe=max(1, self._index.nprobe // 2))
        return np.asarray(self._index.search(queries, self._wanted(k), params=half)[1])

    def _wanted(self, k: int) -> int:
        """Candidates by code, from which the k nearest are taken."""
        return min(len(self.points), self.options.candidates + k + k // 4 - 1)

    def _write(self, file: Path) -> bool:
        if self._index is None:
            return False
        arrays = {
            "centroids": faiss.vector_to_array(self._index.pq.centroids),
            "codes": self._index.pq.compute_codes(self.points),
        }
        if self._lists:
            arrays["lists"] = self._index.quantizer.reconstruct_n(0, self._lists)
            arrays["list_of"] = np.empty(len(self.points), np.int32)
            for number in range(self._lists):
                size = self._index.invlists.list_size(number)
                arrays["list_of"][faiss.rev_swig_ptr(self._index.invlists.get_ids(number), size)] = number
        save_arrays(file, arrays)
        return True

    def _read(self, contents: bytes) -> None:
        count, dim = self.points.shape
        codes, lists = self._codes, self._lists
        shapes: dict[str, tuple[str, tuple[int | None, ...]]]
        shapes = {"centroids": ("<f4", (16 * dim,)), "codes": ("|u1", (count, (codes + 1) // 2))}
        if lists:
            shapes |= {"lists": ("<f4", (lists, dim)), "list_of": ("<i4", (count,))}
        arrays = read_arrays(contents, {} if self._is_exact else shapes)
        if lists:
            if not ((arrays["list_of"] >= 0) & (arrays["list_of"] < lists)).all():
                raise ValueError("a point is in a list that there is not")
            quantiser = _faiss.IndexFlatL2(dim)
            quantiser.add(arrays["lists"])
            plain = _faiss.IndexIVFPQ(quantiser, dim, lists, codes, 4)
            plain.by_residual = False
            # Numbers of 16 bits are sorted several times faster.
            order = np.argsort(arrays["list_of"].astype(np.uint16 if lists <= 1 << 16 else np.int32), kind="stable")
            ends = np.cumsum(np.bincount(arrays["list_of"], minlength=lists))
            for number, members in enumerate(np.split(order, ends[:-1])):
                if len(members):
                    rows = arrays["codes"][members]
                    plain.invlists.add_entries(number, len(members), faiss.swig_ptr(members), faiss.swig_ptr(rows))
        else:
            plain = _faiss.IndexPQ(dim, codes, 4)
            faiss.copy_array_to_vector(arrays["codes"].ravel(), plain.codes)
        faiss.copy_array_to_vector(arrays["centroids"], plain.pq.centroids)
        plain.is_trained, plain.ntotal = True, count
        self._index = (_faiss.IndexIVFPQFastScan if lists else _faiss.IndexPQFastScan)(plain, _BLOCK)
        self._set_search()

    def _set_search(self) -> None:
        """Set how inverted lists are scanned, where there are any."""
        if self._lists:
            self._index.nprobe = min(self.options.probes, self._lists)
            self._index.implem = _ONE_BY_ONE if len(self.points) < _SHORT * self._lists else 0

    @property
    def _is_exact(self) -> bool:
        """Whether all distances are computed."""
        return len(self.points) < max(self.options.exact_below, FEWEST_CODED)

    @property
    def _codes(self) -> int:
        """4-bit codes of a point."""
        dim, dims = self.points.shape[1], self.options.code_dims
        return int(dim // dims if dim % dims == 0 else dim)

    @property
    def _lists(self) -> int:
        """Number of inverted lists; 0 if the index has no lists."""
        count = len(self.points)
        if count < self.options.lists_from:
            return 0
        return number_of_lists(count, self.options.list_factor)
