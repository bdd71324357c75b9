"""The passes of k-means over all descriptors, block by block, in this process or on workers."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from index.clustering.sources import DescriptorSource
from index.inverted_lists import single_thread
from index.kernels.products import squared_distances
from index.neighbours import NearestNeighbours
from index.parallel import run

# Rows whose candidate lists are held at a time.
CLOSURE_ROWS = 8_192
# Points of largest error that are remembered in a pass, to re-seed empty clusters from.
RESERVE = 4_096


class Assignment:
    """Assigns descriptors to centres in one pass."""

    def __init__(
        self,
        centres: NDArray[np.float32],
        search: NearestNeighbours | None,
        near: NDArray[np.int32] | None,
    ) -> None:
        self.centres, self.search, self.near = centres, search, near

    def __call__(
        self, block: NDArray[np.float32], last: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Centres (n,) int32 of descriptors and squared distances (n,); `last`: their previous centres."""
        if self.search is not None:
            nearest, squared = self.search.search(block, 1)
            words, distances = nearest[:, 0], squared[:, 0]
        else:
            words, distances = last.copy(), np.full(len(block), np.inf, np.float32)
        if self.near is not None:
            for start in range(0, len(block), CLOSURE_ROWS):
                rows = slice(start, start + CLOSURE_ROWS)
                near = self.near[last[rows]]
                squared = squared_distances(block[rows], self.centres, near)
                best = squared.argmin(axis=1)[:, None]
                near, squared = np.take_along_axis(near, best, 1)[:, 0], np.take_along_axis(squared, best, 1)[:, 0]
                nearer = squared < distances[rows]
                words[rows][nearer], distances[rows][nearer] = near[nearer], squared[nearer]
        return words, distances


class Reserve:
    """The points of largest error in a pass, and their numbers; ties go to the point that came first."""

    def __init__(self, size: int, dim: int) -> None:
        self._size = size
        self.distances = np.empty(0, np.float32)
        self.points = np.empty((0, dim), np.float32)
        self.numbers = np.empty(0, np.int64)

    def add(self, points: NDArray[np.float32], distances: NDArray[np.float32], numbers: NDArray[np.int64]) -> None:
        """Consider points that come after those before. Of equal distances, the lower number must come first."""
        least = self.distances[-1] if len(self.distances) == self._size else np.float32(0)
        largest = np.flatnonzero(distances > least)
        largest = largest[np.argsort(-distances[largest], kind="stable")[: self._size]]
        all_distances = np.concatenate([self.distances, distances[largest]])
        keep = np.argsort(-all_distances, kind="stable")[: self._size]
        self.distances = all_distances[keep]
        self.points = np.concatenate([self.points, points[largest]])[keep]
        self.numbers = np.concatenate([self.numbers, numbers[largest]])[keep]


class Sums(NamedTuple):
    """Changes that some points make to the sums of words."""

    words: NDArray[np.int32]  # (p,), each once, ascending
    sums: NDArray[np.float64]  # (p, D)
    counts: NDArray[np.int64]  # (p,)

    def add_to(self, sums: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        """Add to the sums (K, D) and counts (K,) of all words, in place."""
        sums[self.words] += self.sums
        counts[self.words] += self.counts


class Looked(NamedTuple):
    """The result of one pass over consecutive blocks."""

    found: NDArray[np.int32]  # (n,) their descriptors' centres
    errors: Sequence[float]  # of each block: the sum of its squared distances
    moved: Sequence[Sums]  # the changes that its descriptors make to the sums, in this order
    points: NDArray[np.float32]  # (r, D) all descriptors, or RESERVE of those of largest error
    distances: NDArray[np.float32]  # (r,) theirs
    numbers: NDArray[np.int64]  # (r,) theirs, counted over all blocks


class DescriptorBlocks(Protocol):
    """Descriptors in fixed blocks; those outside the sample are skipped."""

    @property
    def dim(self) -> int:
        """Length of a descriptor; 0 if there are no descriptors."""

    def __len__(self) -> int:
        """Number of descriptors that take part."""

    def hashes(self) -> Iterator[NDArray[np.uint64]]:
        """Hashes of the descriptors in order (see `row_hashes`); raises ValueError if one is not finite."""

    def rows(self, numbers: NDArray[np.integer]) -> NDArray[np.float32]:
        """The descriptors of ascending numbers, (n, D)."""

    def look(self, assignment: Assignment, assigned: NDArray[np.int32]) -> Iterator[Looked]:
        """Assign all descriptors in order; `assigned`: their previous centres (N,), -1 for no centre."""


class LocalBlocks:
    """Descriptors in blocks that this process reads: see `DescriptorBlocks`."""

    def __init__(self, source: DescriptorSource, sample: NDArray[np.int64] | None = None) -> None:
        self._source = source
        self._sample = sample

    @property
    def dim(self) -> int:
        """Length of a descriptor: see `DescriptorBlocks.dim`."""
        return self._source.dim

    def __len__(self) -> int:
        return len(self._source) if self._sample is None else len(self._sample)

    def hashes(self) -> Iterator[NDArray[np.uint64]]:
        """Hash the descriptors: see `DescriptorBlocks.hashes`."""
        return map(hash_block, self._blocks())

    def rows(self, numbers: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return descriptors by their numbers: see `DescriptorBlocks.rows`."""
        return gathered(select(self._blocks(), numbers), self.dim)

    def look(self, assignment: Assignment, assigned: NDArray[np.int32]) -> Iterator[Looked]:
        """Assign all descriptors: see `DescriptorBlocks.look`. Blocks are assigned in as many threads as faiss has."""
        import faiss  # here: it takes a tenth of a second to load

        return run(self._tasks(assignment, assigned), faiss.omp_get_max_threads(), threads=True)

    def _tasks(self, assignment: Assignment, assigned: NDArray[np.int32]) -> Iterator[Callable[[], Looked]]:
        start = 0
        for block in self._blocks():
            yield partial(_look_alone, block, assigned[start : start + len(block)], assignment, start)
            start += len(block)

    def _blocks(self) -> Iterator[NDArray[np.float32]]:
        return self._source.blocks() if self._sample is None else select(self._source.blocks(), self._sample)


def _look_alone(*arguments: Any) -> Looked:
    """Assign a block in one thread: see `look`. Other blocks have the other cores."""
    with single_thread():
        return look(*arguments)


def look(block: NDArray[np.float32], last: NDArray[np.int32], assignment: Assignment, start: int) -> Looked:
    """Assign a block of descriptors (n, D). `last` (n,): their previous centres; `start`: number of the first."""
    words, distances = assignment(block, last)
    moved = np.flatnonzero(words != last)
    before = moved[last[moved] >= 0]
    changes = [sums_of(block[before], last[before], -1), sums_of(block[moved], words[moved], 1)]
    error = float(distances.sum(dtype=np.float64))
    return Looked(words, [error], changes, block, distances, np.arange(start, start + len(block)))


def put_together(parts: Sequence[Looked]) -> Looked:
    """Merge the results of consecutive blocks.

    The merged sums are the same to the bit as long as each sum is exact. This holds for up to 500,000 descriptors of a
    word with 16-bit values of up to 1,000: each is a multiple of 2^-24, and a sum has 53 bits.
    """
    dim = parts[0].points.shape[1]
    reserve = Reserve(RESERVE, dim)
    for part in parts:
        reserve.add(part.points, part.distances, part.numbers)
    moved = [sums for part in parts for sums in part.moved]
    words = np.concatenate([one.words for one in moved])
    added = sums_of(np.concatenate([one.sums for one in moved]), words, 1)
    counts = np.bincount(
        np.searchsorted(added.words, words),
        weights=np.concatenate([one.counts for one in moved]),
        minlength=len(added.words),
    )
    return Looked(
        np.concatenate([part.found for part in parts]),
        [error for part in parts for error in part.errors],
        [added._replace(counts=counts.astype(np.int64))],
        reserve.points,
        reserve.distances,
        reserve.numbers,
    )


def sums_of(points: NDArray[np.floating], words: NDArray[np.int32], sign: int) -> Sums:
    """Sums (p, D) float64 of the points (n, D) of each word, and their numbers; both negated for a sign of -1."""
    if len(points) == 0:
        return Sums(np.empty(0, np.int32), np.empty((0, points.shape[1])), np.empty(0, np.int64))
    order = np.argsort(words, kind="stable")
    present, starts = np.unique(words[order], return_index=True)
    # Sums over groups of rows: product with a sparse matrix of ones, one row for each word present.
    shape = (len(present), len(points))
    indptr = np.append(starts, len(points))
    groups = scipy.sparse.csr_matrix((np.full(len(points), float(sign)), order, indptr), shape=shape)
    return Sums(present, groups @ points, sign * np.diff(groups.indptr).astype(np.int64))


def select(blocks: Iterator[NDArray[np.float32]], rows: NDArray[np.integer]) -> Iterator[NDArray[np.float32]]:
    """Select rows from blocks by ascending numbers; blocks without a selected row are skipped."""
    start = 0
    for block in blocks:
        first, last = np.searchsorted(rows, (start, start + len(block)))
        if last > first:
            yield block[rows[first:last] - start]
        start += len(block)


def gathered(parts: Iterator[NDArray[np.float32]], dim: int) -> NDArray[np.float32]:
    """Concatenate parts (n, D) of an array; there may be no parts."""
    return np.concatenate([np.empty((0, dim), np.float32), *parts])


def hash_block(block: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Hash the descriptors of a block: see `row_hashes`. Raises ValueError if one is not finite."""
    if not np.isfinite(block).all():
        raise ValueError("descriptors must be finite")
    return row_hashes(block)


def row_hashes(rows: NDArray[np.float32]) -> NDArray[np.uint64]:
    """A 64-bit number for each row of float32, equal for equal rows and, in practice, for no others."""
    # Adding 0 turns -0.0, equal to 0.0 but with other bits, into 0.0.
    bits = np.ascontiguousarray(rows + np.float32(0)).view(np.uint32).astype(np.uint64)
    factors = np.random.default_rng(0).integers(1 << 63, size=rows.shape[1], dtype=np.uint64) * np.uint64(
        2
    ) + np.uint64(1)
    return bits @ factors
