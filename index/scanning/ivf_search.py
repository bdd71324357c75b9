"""Nearest neighbours by inverted lists of short codes, re-ranked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import save_arrays
from index.inverted_lists import check_list_factor, number_of_lists, read_arrays
from index.kernels.products import product
from index.neighbours import NearestNeighbours, NeighbourOptions, check_whole
from index.scanning.codes import GROUP, Codes, asked_as
from index.scanning.components import principal_components

# Least share of the variance of the points that the dimensions of a code keep.
KEPT = 0.8
# Share of components that fit eight signed bits; the rest are clipped.
WITHIN = 0.9999
MOST = 127
# Points a list from which the lists are learnt, and passes over them.
_LIST_SAMPLE, _LIST_PASSES = 64, 8
# The scan chooses more lists than requested: at most this multiple.
_ROOM = 4


@dataclass(frozen=True)
class IvfOptions(NeighbourOptions):
    """Settings of the `ivf` back-end."""

    exact_below: int = 2_000  # with fewer points than this, all distances are computed
    list_factor: float = 1.5  # inverted lists = list_factor * sqrt(points)
    probes: int = 44  # inverted lists scanned for a query
    sure: int = 5  # best by code in the nearest list, in addition to k: they set the bound for other lists
    candidates: int = 16  # best by code, in addition to the k requested, whose exact distances are then computed

    def __post_init__(self) -> None:
        check_whole(self, exact_below=0, probes=1, sure=0, candidates=1)
        check_list_factor(self.list_factor)


class IvfSearch(NearestNeighbours):
    """Inverted lists of points: those near a query are scanned by short codes, and the best re-ranked.

    A code is a byte for each of the first principal components: what faiss calls PCA32,IVF1024,SQ8 with refinement
    (Jégou et al., ICASSP 2011). But a list is scanned for all its queries while it is in the processor's cache, and the
    list nearest to a query sets a bound for the others. With hundreds of queries at once it takes a quarter of the time
    of `faiss`.
    """

    name = "ivf"
    options: IvfOptions
    options_type = IvfOptions
    draft = IvfOptions(probes=12, candidates=12)
    batch = 16_384  # all codes are read once for each batch

    def _build(self) -> None:
        if self._is_exact:
            return
        self._basis, self._offset = principal_components(
            self.points, kept=KEPT, multiple=GROUP, largest=MOST, within=WITHIN
        )
        codes = _rounded(self._projected(self.points))
        centres = self._learnt_lists(codes)
        self._centres = Codes.of_one_group(centres)
        # Each point goes to the list that a query at its place scans first.
        list_of = self._nearest_lists(asked_as(codes), 1)[0][:, 0]
        names = np.argsort(list_of, kind="stable").astype(np.int32)
        self._codes = Codes.of(codes[names], names, np.bincount(list_of, minlength=self._lists))

    def _learnt_lists(self, codes: NDArray[np.int8]) -> NDArray[np.int8]:
        """Centres (lists, d) of the lists, learnt from a sample of the codes (n, d)."""
        from index.clustering.kmeans import KMeansOptions, approximate_kmeans  # here: it searches itself
        from index.clustering.sources import ArraySource

        options = KMeansOptions(
            self._lists, iterations=_LIST_PASSES, seed=self.seed, backend=self.name, sample_per_word=_LIST_SAMPLE
        )
        centres = _rounded(approximate_kmeans(ArraySource(codes.astype(np.float32)), options).centres)
        # Of fewer codes than lists, the last lists are empty.
        return np.pad(centres, ((0, self._lists - len(centres)), (0, 0)), mode="edge")

    def _candidates(self, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        return self._scan(queries, k, self.options.probes)

    def _quick_candidates(self, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        return self._scan(queries, k, max(1, self.options.probes // 2))

    def _scan(self, queries: NDArray[np.float32], k: int, probes: int) -> NDArray[np.int64]:
        if self._is_exact:
            return self._nearest(queries, k)
        from index.scanning.scan_kernels import scan_lists

        packed, codes = asked_as(_rounded(self._projected(queries))), self._codes
        lists, chosen = self._nearest_lists(packed, probes)
        wanted = min(len(self.points), self.options.candidates + k + k // 4 - 1)
        neighbours = np.empty((len(queries), wanted), np.int32)
        sure = min(k + self.options.sure, wanted)
        scan_lists(codes.bytes, codes.biases, codes.names, codes.ends, packed, lists, chosen, sure, wanted, neighbours)
        return neighbours.astype(np.int64)

    def _nearest_lists(self, packed: NDArray[np.int32], probes: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The lists to scan for queries (n, w), the nearest before the others, and how many are for each query (n,)."""
        from index.scanning.scan_kernels import nearest_lists

        lists = np.empty((len(packed), min(self._lists, _ROOM * probes)), np.int32)
        return lists, nearest_lists(self._centres.bytes, self._centres.biases, packed, min(probes, self._lists), lists)

    def _projected(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Principal components (n, d) of points or queries, in units of a code's steps."""
        return np.asarray(product(rows, self._basis) - self._offset)

    def _write(self, file: Path) -> bool:
        if self._is_exact:
            return False
        components = self._basis.shape[1]
        codes, names, sizes = self._codes.parts(components)
        centres = self._centres.parts(components)[0]
        parts: dict[str, NDArray[Any]] = {"codes": codes, "names": names, "sizes": sizes, "centres": centres}
        save_arrays(file, {"basis": self._basis, "offset": self._offset, **parts})
        return True

    def _read(self, contents: bytes) -> None:
        if self._is_exact:
            raise ValueError("so few points have no index")
        count, dim = self.points.shape
        some = None  # dimensions of a code
        arrays = read_arrays(
            contents,
            {
                "basis": ("<f4", (dim, some)),
                "offset": ("<f4", (some,)),
                "codes": ("|i1", (count, some)),
                "names": ("<i4", (count,)),
                "sizes": ("<i8", (self._lists,)),
                "centres": ("|i1", (self._lists, some)),
            },
        )
        components = arrays["basis"].shape[1]
        if not 1 <= components <= dim or any(
            arrays[name].shape[-1] != components for name in ("offset", "codes", "centres")
        ):
            raise ValueError("its arrays have different numbers of dimensions")
        names, sizes = arrays["names"], arrays["sizes"]
        # The scan does not check either.
        if names.min() < 0 or names.max() >= count or (np.bincount(names, minlength=count) != 1).any():
            raise ValueError("a point is in no list, or in several")
        if sizes.min() < 0 or sizes.max() > count or sizes.sum() != count:
            raise ValueError("its lists have another number of points")
        self._basis, self._offset = arrays["basis"], arrays["offset"]
        self._codes, self._centres = Codes.of(arrays["codes"], names, sizes), Codes.of_one_group(arrays["centres"])

    @property
    def _is_exact(self) -> bool:
        """Whether all distances are computed."""
        return len(self.points) < max(self.options.exact_below, 1)

    @property
    def _lists(self) -> int:
        return number_of_lists(len(self.points), self.options.list_factor)


def _rounded(values: NDArray[np.float32]) -> NDArray[np.int8]:
    """Round to the nearest 8-bit integers."""
    return np.clip(np.rint(values), -MOST - 1, MOST).astype(np.int8)
