"""Candidate weak learners: random boxes and orientations, and their responses on pairs of patches."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.parallel import one_thread, run
from index.progress import Step, silent
from learning.patches.sources import Patches
from retrieval.descriptors.boxes import ResponseOptions, integral_images, responses
from retrieval.regions.patches import resample_patches

LEVELS = 256
"""Number of levels of a rounded response; thresholds lie between levels."""

MOST_BYTES = 6 << 30
"""Most memory for the responses of all candidates on all pairs, on a machine with twice as much."""

USUAL_CANDIDATES = 8_192
"""Candidates drawn at a time, if memory allows."""

_PAIRS = 512  # whose patches are read at a time
_PATCHES = 32  # whose integral images are made at a time
_SAMPLE = 2_048  # patches for measuring the range of responses
_CGROUP_LIMITS = (  # files of a container's memory limit: cgroup version 2, and version 1
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_TAILS = 0.005  # share of responses at either end without their own levels


@dataclass(frozen=True)
class CandidateOptions:
    """Options of drawing candidates."""

    number: int = USUAL_CANDIDATES  # at a time; memory is twice this times the pairs, in bytes
    smallest: int = 3  # shortest side of a box, samples
    largest: int = 0  # longest side of a box, samples; 0: the patch's


@dataclass(frozen=True)
class PairList:
    """Pairs of patches of several sets."""

    sets: Sequence[Patches]
    owner: NDArray[np.int32]  # (N,) int32: number of the set
    first: NDArray[np.int64]  # (N,) int64: number of a patch in it
    second: NDArray[np.int64]  # (N,) int64: of the other
    match: NDArray[np.bool_]  # (N,) bool

    def __len__(self) -> int:
        return len(self.match)

    def patches(self, rows: NDArray[np.int64], size: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Read the patches of pairs (K,), in ascending order, as twice (K, size, size) float32."""
        pair = np.empty((2, len(rows), size, size), np.float32)
        for number in np.unique(self.owner[rows]):
            members = np.flatnonzero(self.owner[rows] == number)
            for side, numbers in enumerate((self.first, self.second)):
                pair[side, members] = resample_patches(self.sets[number].read(numbers[rows[members]]), size)
        return pair[0], pair[1]


@dataclass(frozen=True)
class WeakLearnerCandidates:
    """Boxes and orientations, and the levels of their responses."""

    boxes: NDArray[np.int32]  # (C, 4) int32, see `retrieval.descriptors.boxes`
    channels: NDArray[np.int32]  # (C,) int32
    start: NDArray[np.float32]  # (C,) float32: response at which level 1 begins
    step: NDArray[np.float32]  # (C,) float32: from one level to the next, positive

    def __len__(self) -> int:
        return len(self.boxes)

    def levels(self, values: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Round responses (N, C) float32 up to levels (N, C) uint8: level t or less is `threshold(t)` or less."""
        values = np.ceil((values - self.start) / self.step)
        return np.clip(values, 0, LEVELS - 1, out=values).astype(np.uint8)

    def threshold(self, candidate: int, level: int) -> np.float32:
        """Return the threshold T above a level that is 1 throughout, and below the next, which is -1 throughout."""
        return np.float32(self.start[candidate] + np.float32(level) * self.step[candidate])


@dataclass(frozen=True)
class PairLevels:
    """Levels of all candidates' responses on all pairs: h(x) h(y) is -1 where lower <= t < upper, and 1 elsewhere."""

    lower: NDArray[np.uint8]  # (C, N) uint8: the smaller of the two patches' levels
    upper: NDArray[np.uint8]  # (C, N) uint8: the larger


def draw_boxes(
    responses_of: ResponseOptions, options: CandidateOptions, rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Draw boxes (C, 4) int32, first sides, then positions; and channels (C,). Boxes of grey values have 1 sample."""
    size = responses_of.patch_size
    smallest, largest = options.smallest, options.largest or size
    if responses_of.family == "intensity":
        smallest = largest = 1
    if not 1 <= smallest <= largest <= size:
        raise CairnError(f"Boxes of {smallest} to {largest} samples along a side do not fit into patches of {size}.")
    sides = rng.integers(smallest, largest + 1, (options.number, 2))
    corner = rng.integers(0, size + 1 - sides)
    channels = rng.integers(0, responses_of.channels, options.number)
    return np.concatenate([corner, corner + sides], axis=1).astype(np.int32), channels.astype(np.int32)


def draw_candidates(
    pairs: PairList, responses_of: ResponseOptions, options: CandidateOptions, rng: np.random.Generator
) -> WeakLearnerCandidates:
    """Draw candidates, and spread their levels over the range of responses on some of the patches."""
    boxes, channels = draw_boxes(responses_of, options, rng)
    rows = np.sort(rng.permutation(len(pairs))[:_SAMPLE])
    patches = pairs.patches(rows, responses_of.patch_size)[0]
    values = np.concatenate([_responses(part, boxes, channels, responses_of) for part in _parts(patches)])
    low, high = np.quantile(values, [_TAILS, 1 - _TAILS], axis=0).astype(np.float32)
    # The width of levels does not matter for a constant response.
    step = np.where(high > low, (high - low) / np.float32(LEVELS - 2), np.float32(1))
    return WeakLearnerCandidates(boxes, channels, low, step.astype(np.float32))


def most_candidates(pairs: int) -> int:
    """Return the number of candidates whose responses fit into memory: two one-byte levels for each pair."""
    return min(MOST_BYTES, _memory() // 2) // (2 * max(1, pairs))


def _memory() -> int:
    """Return the memory limit of this process in bytes: that of the machine, or a lower limit."""
    limits = [_address_space(), *(_number_in(file) for file in _CGROUP_LIMITS)]
    try:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # a system that does not report it
        limits.append(2 * MOST_BYTES)
    return min(size for size in limits if size is not None)


def _number_in(file: Path) -> int | None:
    """Return the number in a file; None if there is no such file, or no number in it."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _address_space() -> int | None:
    """Return the limit of this process's address space in bytes; None if unlimited."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def pair_levels(
    pairs: PairList,
    candidates: WeakLearnerCandidates,
    responses_of: ResponseOptions,
    *,
    workers: int = 1,
    progress: Step = silent,
) -> PairLevels:
    """Evaluate candidates on pairs, some pairs at a time."""
    number = len(pairs)
    fewer = most_candidates(number)
    if len(candidates) > fewer:
        raise CairnError(
            "{candidates} candidates on {number} pairs take too much memory: draw {fewer} or fewer ({--candidates}), "
            "or take fewer pairs ({--pairs}).",
            candidates=len(candidates),
            number=number,
            fewer=fewer,
        )
    lower = np.empty((len(candidates), number), np.uint8)
    upper = np.empty_like(lower)

    def evaluate(rows: NDArray[np.int64], first: NDArray[np.float32], second: NDArray[np.float32]) -> None:
        for start in range(0, len(rows), _PATCHES):
            part = slice(start, start + _PATCHES)
            one, two = (
                candidates.levels(_responses(side[part], candidates.boxes, candidates.channels, responses_of))
                for side in (first, second)
            )
            columns = slice(int(rows[start]), int(rows[start]) + len(one))
            lower[:, columns] = np.minimum(one, two).T
            upper[:, columns] = np.maximum(one, two).T

    # Threads: NumPy releases the interpreter lock, and all write into the same arrays.
    with one_thread():
        for start in range(0, number, _PAIRS * workers):
            rows = np.arange(start, min(start + _PAIRS * workers, number))
            first, second = pairs.patches(rows, responses_of.patch_size)
            parts = [slice(at, at + _PAIRS) for at in range(0, len(rows), _PAIRS)]
            tasks = [partial(evaluate, rows[part], first[part], second[part]) for part in parts]
            list(run(tasks, workers, threads=True))
            progress(int(rows[-1]) + 1, number)
    return PairLevels(lower, upper)


def _responses(
    patches: NDArray[np.float32], boxes: NDArray[np.int32], channels: NDArray[np.int32], responses_of: ResponseOptions
) -> NDArray[np.float32]:
    return responses(integral_images(patches, responses_of), boxes, channels)


def _parts(patches: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    return [patches[start : start + _PATCHES] for start in range(0, len(patches), _PATCHES)]
