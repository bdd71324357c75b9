"""Approximate k-means (Philbin 2007) over streamed descriptors, never all in memory."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from index.clustering.blocks import RESERVE, Assignment, DescriptorBlocks, LocalBlocks, Reserve, row_hashes
from index.clustering.sources import DescriptorSource
from index.errors import CairnError
from index.progress import Step, silent
from index.search_backends import search_backend

# Costs of the steps in processor time (microseconds of one core, 128 dimensions, 500,000 words), which are
# the unit of progress, so that the remaining time can be estimated.
COST_READ = 2  # of a descriptor: read, and compared with those before it
COST_SEARCH = 21  # of a descriptor that is searched among all centres
COST_COMPARE = 6  # of a descriptor that is compared with the centres near its last one
COST_BUILD = 12  # of a centre, where the search is built
COST_NEAR = 37  # of a centre, whose neighbours are searched
Reader = Callable[[NDArray[np.int64] | None], DescriptorBlocks]
"""Returns the descriptors of a sample, by ascending numbers, in blocks; all of them for None."""


@dataclass(frozen=True)
class KMeansOptions:
    """Settings of approximate k-means."""

    words: int = 20_000  # clusters wanted; never more than there are distinct descriptors
    iterations: int = 10  # passes over the descriptors
    seed: int = 0  # of the first centres, the training sample and the search
    backend: str = "ivf"  # search back-end, by its registered name
    sample_per_word: int = 50  # descriptors used at most for each word, a random sample; 0 uses all
    neighbours: int = 48  # centres near a descriptor's last one that a pass compares it with
    refresh: int = 5  # every `refresh` passes, the first included, each descriptor is searched among all centres too

    def __post_init__(self) -> None:
        for name, least in (("words", 1), ("iterations", 1), ("sample_per_word", 0), ("neighbours", 1), ("refresh", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")


@dataclass(frozen=True)
class KMeansResult:
    """Centres, and statistics of the clustering."""

    centres: NDArray[np.float32]  # K is the number of words wanted or, if that is less, of distinct descriptors
    counts: NDArray[np.int64]  # descriptors assigned to each centre in the last pass; none is 0
    # mean squared distance of a descriptor to its centre, in each pass, before the centres moved
    errors: tuple[float, ...]
    wanted: int  # number of words requested
    distinct: int  # distinct descriptors among those used
    points: int  # descriptors used
    reseeded: int  # empty clusters re-seeded, over all passes


def approximate_kmeans(
    source: DescriptorSource, options: KMeansOptions, *, reader: Reader | None = None, progress: Step = silent
) -> KMeansResult:
    """Cluster descriptors with an approximate nearest centre in place of the exact one (Philbin et al., CVPR 2007).

    The search is rebuilt over the centres in each pass. In most passes it finds the neighbours of the centres, and a
    descriptor is compared with those of its last centre (cluster closures: Wang et al., CVPR 2012). In every
    `refresh`-th pass it is also searched for each descriptor, and the nearer centre is taken. A cluster left empty
    takes over a descriptor of largest error. Sums are float64. Raises ValueError if a descriptor is not finite.
    """
    if len(source) == 0 or source.dim == 0:
        raise CairnError("There are no descriptors to compute a vocabulary from: add photos with some texture in them.")
    rng = np.random.default_rng(options.seed)
    blocks = (reader or partial(LocalBlocks, source))(
        _sample(len(source), options.sample_per_word * options.words, rng)
    )
    points = len(blocks)
    plan = _Plan(points, min(options.words, points), options, progress)
    firsts = _first_of_each(blocks, plan)
    words = min(options.words, len(firsts))
    centres = blocks.rows(np.sort(rng.choice(firsts, words, replace=False)))

    assigned = np.full(points, -1, np.int32)
    sums, counts = np.zeros((words, source.dim)), np.zeros(words, np.int64)
    errors, reseeded = [], 0
    for number in range(options.iterations):
        assign = _assignment(centres, options, first=number == 0, everywhere=number % options.refresh == 0)
        plan.looked(number, 0)
        reserve = Reserve(RESERVE, source.dim)
        start, total = 0, 0.0
        for result in blocks.look(assign, assigned):
            for moved in result.moved:
                moved.add_to(sums, counts)
            reserve.add(result.points, result.distances, result.numbers)
            assigned[start : start + len(result.found)] = result.found
            for error in result.errors:
                total += error
            start += len(result.found)
            plan.looked(number, start)
        errors.append(total / points)
        reseeded += _reseed(sums, counts, assigned, reserve)
        # With no points left to re-seed from, the old centre stays, and may win descriptors in a later pass.
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


def sample_descriptors(
    source: DescriptorSource, count: int, seed: int, reader: Reader | None = None
) -> NDArray[np.float32]:
    """A random sample of `count` descriptors, in their order; all of them if there are no more."""
    rows = _sample(len(source), count, np.random.default_rng(seed))
    blocks = (reader or partial(LocalBlocks, source))(rows)
    return blocks.rows(np.arange(len(blocks)))


class _Plan:
    """The work of all passes, and how much of it is done."""

    def __init__(self, points: int, words: int, options: KMeansOptions, progress: Step) -> None:
        self._progress = progress
        self._points = points
        self._first = COST_READ * points
        self._passes = []  # of each pass: cost before its descriptors, and cost of each descriptor
        for number in range(options.iterations):
            searched = COST_SEARCH if number % options.refresh == 0 else 0
            near = COST_NEAR if number else 0
            self._passes.append(((COST_BUILD + near) * words, searched + (COST_COMPARE if number else 0)))
        self._all = self._first + sum(before + each * points for before, each in self._passes)
        self._tell(0)

    def read(self, descriptors: int) -> None:
        """Report that descriptors were read for the first time."""
        self._tell(COST_READ * descriptors)

    def looked(self, number: int, descriptors: int) -> None:
        """Report that descriptors were assigned in a pass."""
        done = sum(before + each * self._points for before, each in self._passes[:number])
        before, each = self._passes[number]
        self._tell(self._first + done + before + each * descriptors)

    def _tell(self, done: int) -> None:
        self._progress(done, self._all)


def _assignment(centres: NDArray[np.float32], options: KMeansOptions, *, first: bool, everywhere: bool) -> Assignment:
    backend = search_backend(options.backend)
    search = backend.build(centres, backend.draft, options.seed)
    near = None if first else search.search(centres, options.neighbours)[0]
    # Lists that hold all centres make the comparison exact, and a further search pointless.
    complete = options.neighbours >= len(centres)
    return Assignment(centres, search if first or (everywhere and not complete) else None, near)


def _reseed(sums: NDArray[np.float64], counts: NDArray[np.int64], assigned: NDArray[np.int32], reserve: Reserve) -> int:
    """Move points of largest error from their clusters to the empty ones, in place; return the number filled."""
    empty = np.flatnonzero(counts == 0)
    if len(empty) == 0:
        return 0
    # Equal points would make equal centres, and one would be empty again.
    firsts = np.sort(np.unique(row_hashes(reserve.points), return_index=True)[1])
    filled = 0
    for point, number in zip(reserve.points[firsts], reserve.numbers[firsts], strict=True):
        if filled == len(empty):
            break
        donor, word = assigned[number], empty[filled]
        # A point that is its cluster's mean would leave an equal centre behind.
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


def _first_of_each(blocks: DescriptorBlocks, plan: _Plan) -> NDArray[np.int64]:
    """Numbers of the descriptors that equal no earlier one."""
    hashes = np.empty(len(blocks), np.uint64)
    start = 0
    for some in blocks.hashes():
        hashes[start : start + len(some)] = some
        start += len(some)
        plan.read(start)
    return np.unique(hashes, return_index=True)[1]
