"""Approximate k-means (Philbin 2007) over descriptors that are streamed, never held."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from index.arrays import load_array
from index.errors import CairnError
from index.neighbours import squared_distances
from index.progress import Step
from index.search_backends import search_backend

# 16 MiB of 128-D descriptors: larger ones would be given back to the system, and cleared by it, each time.
BLOCK_ROWS = 32_768
# Rows whose candidate lists are held at a time.
CLOSURE_ROWS = 8_192
# What the steps cost in processor time, beside each other (microseconds of one core, 128 dimensions, 500,000 words):
# progress is told by them, so that the time that is left can be estimated.
COST_READ = 2  # of a descriptor: read, and told from those before it
COST_SEARCH = 21  # of a descriptor that is searched among all centres
COST_COMPARE = 6  # of a descriptor that is compared with the centres near its last one
COST_BUILD = 12  # of a centre, where the search is built
COST_NEAR = 37  # of a centre, whose neighbours are searched
# Points of largest error that are remembered in a pass, to re-seed empty clusters from.
RESERVE = 4_096


class DescriptorSource(Protocol):
    """Descriptors that can be read from the start as often as needed, in the same order each time."""

    @property
    def dim(self) -> int:
        """Length of a descriptor; 0 where there are none to tell."""

    def __len__(self) -> int:
        """Number of descriptors."""

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """All descriptors in order, as (n, D) float32 arrays of a bounded size."""


@dataclass(frozen=True)
class KMeansOptions:
    """Settings of approximate k-means."""

    words: int = 20_000  # clusters wanted; never more than there are distinct descriptors
    iterations: int = 10  # passes over the descriptors
    seed: int = 0  # of the first centres, the training sample and the search
    backend: str = "faiss"  # search back-end, by its registered name
    sample_per_word: int = 50  # descriptors used at most for each word, a random sample; 0 uses all
    neighbours: int = 48  # centres near a descriptor's last one that a pass compares it with
    refresh: int = 5  # every so many passes, the first included, each descriptor is searched among all centres too

    def __post_init__(self) -> None:
        for name, least in (("words", 1), ("iterations", 1), ("sample_per_word", 0), ("neighbours", 1), ("refresh", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")


@dataclass(frozen=True)
class KMeansResult:
    """Centres, and how they were come by.

    Attributes
    ----------
    centres : (K, D) float32 ndarray
        K is the number of words wanted or, if that is less, of distinct descriptors.
    counts : (K,) int64 ndarray
        Descriptors assigned to each centre in the last pass; none is 0.
    errors : tuple of float
        Mean squared distance of a descriptor to its centre, in each pass, before the centres moved.
    wanted : int
        The number of words asked for.
    distinct : int
        Distinct descriptors among those used.
    points : int
        Descriptors used.
    reseeded : int
        Empty clusters that were given a new centre, over all passes.
    """

    centres: NDArray[np.float32]
    counts: NDArray[np.int64]
    errors: tuple[float, ...]
    wanted: int
    distinct: int
    points: int
    reseeded: int


class ArraySource:
    """Descriptors in an array or a memory map.

    Parameters
    ----------
    array : (N, D) float16 or float32 ndarray
    block_rows : int
        Rows of a block.
    """

    def __init__(self, array: NDArray[np.floating], block_rows: int = BLOCK_ROWS) -> None:
        if array.ndim != 2 or array.dtype not in (np.float16, np.float32):
            raise ValueError(f"descriptors must be (N, D) float16 or float32, not {array.shape} {array.dtype}")
        self._array = array
        self._block_rows = block_rows

    @property
    def dim(self) -> int:
        """Length of a descriptor."""
        return int(self._array.shape[1])

    def __len__(self) -> int:
        return len(self._array)

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """All descriptors in order, as (n, D) float32 arrays."""
        for start in range(0, len(self), self._block_rows):
            yield np.ascontiguousarray(self._array[start : start + self._block_rows], dtype=np.float32)


class FileSource:
    """Descriptors in .npy files, one after the other; only one block of them is in memory at a time.

    Blocks are filled across files, so how the descriptors are spread over files makes no difference to a result.

    Parameters
    ----------
    paths : sequence of Path
        Files of (n, D) float16 or float32 arrays; n may be 0.
    block_rows : int
        Rows of a block.

    Raises
    ------
    CairnError
        A file is missing or damaged, holds something else, or has another D than the first.
    """

    def __init__(self, paths: Sequence[Path], block_rows: int = BLOCK_ROWS) -> None:
        self._paths = [Path(path) for path in paths]
        self._block_rows = block_rows
        self._dim = 0
        self._count = 0
        for path in self._paths:
            array = load_array(path, mmap=True)
            if array.ndim != 2 or array.dtype not in (np.float16, np.float32):
                raise CairnError(f"{path} holds no descriptors, which are (n, D) float16 or float32: extract it again.")
            if self._dim not in (0, array.shape[1]):
                raise CairnError(f"{path} has descriptors of {array.shape[1]} numbers, the others of {self._dim}.")
            self._dim = array.shape[1]
            self._count += len(array)

    @property
    def dim(self) -> int:
        """Length of a descriptor; 0 where there are no files."""
        return self._dim

    def __len__(self) -> int:
        return self._count

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """All descriptors in order, as (n, D) float32 arrays."""
        left = self._count
        block, filled = np.empty((min(left, self._block_rows), self._dim), np.float32), 0
        for path in self._paths:
            array = load_array(path, mmap=True)
            start = 0
            while start < len(array):
                part = array[start : start + len(block) - filled]
                block[filled : filled + len(part)] = part
                start, filled = start + len(part), filled + len(part)
                if filled == len(block):
                    left -= filled
                    yield block
                    block, filled = np.empty((min(left, self._block_rows), self._dim), np.float32), 0


def approximate_kmeans(
    source: DescriptorSource, options: KMeansOptions, *, progress: Step | None = None
) -> KMeansResult:
    """Cluster descriptors with an approximate nearest centre in place of the exact one (Philbin et al., CVPR 2007).

    The search is built anew over the centres in each pass. In most passes it is asked for the neighbours of the
    centres, and a descriptor is compared with those of its last centre, where its new one nearly always is (cluster
    closures: Wang et al., CVPR 2012); in every `refresh`-th it is asked for the descriptors themselves as well, and
    the nearer answer is taken. Sums are kept in float64. A cluster left empty takes over a descriptor of largest error.

    Memory holds a block of descriptors, a few arrays as large as the centres, and four bytes for each descriptor used,
    of which there are at most `sample_per_word` a word.

    Parameters
    ----------
    source : DescriptorSource
    options : KMeansOptions
    progress : callable, optional
        Called with the work done so far and in all, over all passes: about as much of it is done in any minute.

    Returns
    -------
    KMeansResult

    Raises
    ------
    CairnError
        There are no descriptors.
    ValueError
        A descriptor has a value that is not finite.
    """
    if len(source) == 0 or source.dim == 0:
        raise CairnError("There are no descriptors to make a vocabulary from: add photos with some texture in them.")
    rng = np.random.default_rng(options.seed)
    rows = _sample(len(source), options.sample_per_word * options.words, rng)
    points = len(source) if rows is None else len(rows)
    plan = _Plan(points, min(options.words, points), options, progress)
    firsts = _first_of_each(source, rows, points, plan)
    words = min(options.words, len(firsts))
    chosen = np.sort(rng.choice(firsts, words, replace=False))
    centres = np.concatenate(list(_select(_selected(source, rows), chosen)))

    assigned = np.full(points, -1, np.int32)
    sums, counts = np.zeros((words, source.dim)), np.zeros(words, np.int64)
    errors, reseeded = [], 0
    for number in range(options.iterations):
        assign = _Assignment(centres, options, first=number == 0, everywhere=number % options.refresh == 0)
        plan.looked(number, 0)
        reserve = _Reserve(RESERVE, source.dim)
        start, total = 0, 0.0
        for block in _selected(source, rows):
            last = assigned[start : start + len(block)]
            found, distances = assign(block, last)
            moved = np.flatnonzero(found != last)
            if number > 0:
                _accumulate(sums, counts, block[moved], last[moved], -1)
            _accumulate(sums, counts, block[moved], found[moved], 1)
            reserve.add(block, distances, start)
            assigned[start : start + len(block)] = found
            total += float(distances.sum(dtype=np.float64))
            start += len(block)
            plan.looked(number, start)
        errors.append(total / points)
        reseeded += _reseed(sums, counts, assigned, reserve)
        # Where nothing was left to re-seed from, the old centre stays, and may win descriptors in a later pass.
        full = counts > 0
        centres[full] = sums[full] / counts[full, None]
    full = counts > 0
    return KMeansResult(
        centres=centres[full],
        counts=counts[full],
        errors=tuple(errors),
        wanted=options.words,
        distinct=len(firsts),
        points=points,
        reseeded=reseeded,
    )


def sample_descriptors(source: DescriptorSource, count: int, seed: int) -> NDArray[np.float32]:
    """A random sample of the descriptors, in their order.

    Parameters
    ----------
    source : DescriptorSource
    count : int
        How many, at least 1; all of them where there are no more.
    seed : int

    Returns
    -------
    (n, D) float32 ndarray
    """
    rows = _sample(len(source), count, np.random.default_rng(seed))
    parts = list(_selected(source, rows))
    return np.concatenate(parts) if parts else np.empty((0, source.dim), np.float32)


class _Plan:
    """How much work all passes are, and how much of it is done."""

    def __init__(self, points: int, words: int, options: KMeansOptions, progress: Step | None) -> None:
        self._progress = progress
        self._points = points
        self._first = COST_READ * points
        self._passes = []  # of each pass: what comes before its descriptors, and the cost of each of these
        for number in range(options.iterations):
            searched = COST_SEARCH if number % options.refresh == 0 else 0
            near = COST_NEAR if number else 0
            self._passes.append(((COST_BUILD + near) * words, searched + (COST_COMPARE if number else 0)))
        self._all = self._first + sum(before + each * points for before, each in self._passes)
        self._tell(0)

    def read(self, descriptors: int) -> None:
        """Tell that so many descriptors were read for the first time."""
        self._tell(COST_READ * descriptors)

    def looked(self, number: int, descriptors: int) -> None:
        """Tell that so many descriptors were looked at in a pass."""
        done = sum(before + each * self._points for before, each in self._passes[:number])
        before, each = self._passes[number]
        self._tell(self._first + done + before + each * descriptors)

    def _tell(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done, self._all)


class _Assignment:
    """One pass's way from a descriptor to its centre."""

    def __init__(self, centres: NDArray[np.float32], options: KMeansOptions, *, first: bool, everywhere: bool) -> None:
        backend = search_backend(options.backend)
        search = backend.build(centres, backend.draft, options.seed)
        self._centres = centres
        self._near = None if first else search.search(centres, options.neighbours)[0]
        # Lists that hold all centres make the comparison exact, and a search beside it pointless.
        complete = options.neighbours >= len(centres)
        self._search = search if first or (everywhere and not complete) else None

    def __call__(
        self, block: NDArray[np.float32], last: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Centres (n,) int32 of descriptors and squared distances (n,), given the centres they had before."""
        if self._search is not None:
            found, squared = self._search.search(block, 1)
            words, distances = found[:, 0], squared[:, 0]
        else:
            words, distances = last.copy(), np.full(len(block), np.inf, np.float32)
        if self._near is not None:
            for start in range(0, len(block), CLOSURE_ROWS):
                rows = slice(start, start + CLOSURE_ROWS)
                near = self._near[last[rows]]
                squared = squared_distances(block[rows], self._centres, near)
                best = squared.argmin(axis=1)[:, None]
                near, squared = np.take_along_axis(near, best, 1)[:, 0], np.take_along_axis(squared, best, 1)[:, 0]
                nearer = squared < distances[rows]
                words[rows][nearer], distances[rows][nearer] = near[nearer], squared[nearer]
        return words, distances


class _Reserve:
    """The points of largest error in a pass, and their numbers."""

    def __init__(self, size: int, dim: int) -> None:
        self._size = size
        self._distances = np.empty(0, np.float32)
        self.points = np.empty((0, dim), np.float32)
        self.numbers = np.empty(0, np.int64)

    def add(self, points: NDArray[np.float32], distances: NDArray[np.float32], start: int) -> None:
        """Look at a block, whose first point has the number `start`; ties go to the point that came first."""
        least = self._distances[-1] if len(self._distances) == self._size else np.float32(0)
        largest = np.flatnonzero(distances > least)
        largest = largest[np.argsort(-distances[largest], kind="stable")[: self._size]]
        all_distances = np.concatenate([self._distances, distances[largest]])
        keep = np.argsort(-all_distances, kind="stable")[: self._size]
        self._distances = all_distances[keep]
        self.points = np.concatenate([self.points, points[largest]])[keep]
        self.numbers = np.concatenate([self.numbers, start + largest])[keep]


def _accumulate(
    sums: NDArray[np.float64],
    counts: NDArray[np.int64],
    points: NDArray[np.float32],
    words: NDArray[np.int32],
    sign: int,
) -> None:
    """Add points to the sums (K, D) float64 and counts (K,) of their words, or take them away, in place."""
    if len(points) == 0:
        return
    order = np.argsort(words, kind="stable")
    present, starts = np.unique(words[order], return_index=True)
    # Sums over groups of rows are the product with a sparse matrix of ones, a row for each word that is present.
    shape = (len(present), len(points))
    indptr = np.append(starts, len(points))
    groups = scipy.sparse.csr_matrix((np.full(len(points), float(sign)), order, indptr), shape=shape)
    sums[present] += groups @ points
    counts[present] += sign * np.diff(groups.indptr)


def _reseed(
    sums: NDArray[np.float64], counts: NDArray[np.int64], assigned: NDArray[np.int32], reserve: _Reserve
) -> int:
    """Move points of largest error from their clusters to the empty ones, in place; how many were filled."""
    empty = np.flatnonzero(counts == 0)
    if len(empty) == 0:
        return 0
    # Equal points would make equal centres, one of which is then empty again.
    firsts = np.sort(np.unique(_row_hashes(reserve.points), return_index=True)[1])
    filled = 0
    for point, number in zip(reserve.points[firsts], reserve.numbers[firsts], strict=True):
        if filled == len(empty):
            break
        donor, word = assigned[number], empty[filled]
        # A point that is its cluster's mean would leave its like behind: two equal centres again.
        if counts[donor] > 1 and not np.array_equal((sums[donor] / counts[donor]).astype(np.float32), point):
            sums[donor] -= point
            counts[donor] -= 1
            sums[word], counts[word], assigned[number] = point, 1, word
            filled += 1
    return filled


def _sample(count: int, cap: int, rng: np.random.Generator) -> NDArray[np.int64] | None:
    """Sorted numbers of the descriptors to use; None for all."""
    if cap == 0 or count <= cap:
        return None
    return np.sort(rng.choice(count, cap, replace=False, shuffle=False))


def _select(blocks: Iterator[NDArray[np.float32]], rows: NDArray[np.int64]) -> Iterator[NDArray[np.float32]]:
    """From blocks, the rows of the given sorted numbers."""
    start = 0
    for block in blocks:
        first, last = np.searchsorted(rows, (start, start + len(block)))
        if last > first:
            yield block[rows[first:last] - start]
        start += len(block)


def _selected(source: DescriptorSource, rows: NDArray[np.int64] | None) -> Iterator[NDArray[np.float32]]:
    return source.blocks() if rows is None else _select(source.blocks(), rows)


def _first_of_each(
    source: DescriptorSource, rows: NDArray[np.int64] | None, points: int, plan: _Plan
) -> NDArray[np.int64]:
    """Numbers of the descriptors that equal none before them."""
    hashes = np.empty(points, np.uint64)
    start = 0
    for block in _selected(source, rows):
        if not np.isfinite(block).all():
            raise ValueError("descriptors must be finite")
        hashes[start : start + len(block)] = _row_hashes(block)
        start += len(block)
        plan.read(start)
    return np.unique(hashes, return_index=True)[1]


def _row_hashes(rows: NDArray[np.float32]) -> NDArray[np.uint64]:
    """A 64-bit number for each row of float32, equal for equal rows and, in practice, for no others."""
    # Adding 0 turns -0.0, which equals 0.0 and has other bits, into 0.0.
    bits = np.ascontiguousarray(rows + np.float32(0)).view(np.uint32).astype(np.uint64)
    factors = np.random.default_rng(0).integers(1 << 63, size=rows.shape[1], dtype=np.uint64) * np.uint64(
        2
    ) + np.uint64(1)
    return bits @ factors
