"""Labelled pairs for learning blocks: their patches in memory, and measures of their descriptors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint
from index.errors import CairnError
from index.parallel import one_thread, run
from index.progress import Step, silent
from learning.measures.roc import auc, fpr95
from learning.patches.phototour import PatchPairs
from learning.patches.rows import squared_distances
from learning.patches.sources import PatchFolder, patches_used
from retrieval.descriptors.blocks.descriptor import Blocks
from retrieval.regions.patches import resample_patches

_READ = 2_048  # patches read at a time
_TASK = 512  # patches described by one task


@dataclass(frozen=True)
class BlockPairs:
    """Pairs of patches of one size."""

    patches: NDArray[np.uint8 | np.float32]  # (U, S, S) uint8 or float32, each in a pair
    first: NDArray[np.int64]  # (M,) int64, rows of patches
    second: NDArray[np.int64]  # (M,) int64
    match: NDArray[np.bool_]  # (M,) bool
    fingerprint: str  # SHA-256 of the pairs and patches

    def __len__(self) -> int:
        return len(self.match)

    def pooled(self, blocks: Blocks, workers: int = 1) -> NDArray[np.float32]:
        """Return the pooled rows (U, D) float32 of all patches, by threads: the work is matrix products."""
        size = blocks.pooled_dim
        blocks.applied  # noqa: B018  made once, and not by each thread
        rows = np.empty((len(self.patches), size), np.float32)

        def describe(start: int) -> None:
            part = self.patches[start : start + _TASK].astype(np.float32)
            rows[start : start + _TASK] = blocks.pooled(part)

        with one_thread():
            for _ in run((partial(describe, start) for start in range(0, len(rows), _TASK)), workers, threads=True):
                pass
        return rows

    def distances(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Squared distances (M,) float32 of the pairs, by the descriptors (U, m) of the patches."""
        return squared_distances(rows.__getitem__, self.first, self.second)

    def area(self, rows: NDArray[np.float32]) -> float:
        """Area under the ROC curve of the distances of descriptors (U, m)."""
        return auc(self.distances(rows), self.match)

    def error(self, rows: NDArray[np.float32]) -> float:
        """False positives at 95% recall of descriptors (U, m), 0 to 1."""
        return fpr95(self.distances(rows), self.match)


def load_pairs(
    sources: Sequence[PatchFolder],
    split: str,
    size: int,
    *,
    limit: int = 0,
    seed: int = 0,
    progress: Step = silent,
) -> BlockPairs:
    """Read patches, resampled to `size`, of at most `limit` pairs (0: all), equally of each source, half matches."""
    most = pairs_of_each(limit, len(sources))
    chosen = [_draw(getattr(source, split), most, seed) for source in sources]
    used, first, second, match = patches_used(chosen)
    if not match.any() or match.all():
        raise CairnError("There must be both matches and non-matches among the pairs of the patches.")
    total = sum(len(numbers) for numbers in used)
    dtype = np.uint8 if size == 64 else np.float32
    patches = np.empty((total, size, size), dtype)
    done = 0
    for source, numbers in zip(sources, used, strict=True):
        for start in range(0, len(numbers), _READ):
            part = source.patches.read(numbers[start : start + _READ])
            patches[done : done + len(part)] = part if dtype == np.uint8 else resample_patches(part, size)
            done += len(part)
            progress(done, total)
    key = fingerprint(
        {"first": first, "second": second, "match": match, **{f"patches-{n}": one for n, one in enumerate(used)}},
        {"patches": [source.patches.fingerprint for source in sources], "size": size},
    )
    return BlockPairs(patches, first, second, match, key)


def pairs_of_each(limit: int, sources: int) -> int:
    """Pairs of each source for at most this many in all; 0: all of them."""
    if limit and limit < 2 * sources:
        of = f"{sources} sources" if sources > 1 else "a source"
        raise CairnError(
            f"Of {of} at least {2 * sources} pairs are taken, a match and a non-match of each, and not {limit}; "
            "0 stands for all."
        )
    return limit // sources


def _draw(pairs: PatchPairs, limit: int, seed: int) -> PatchPairs:
    """A sample of the pairs, at least one, half of them matches if there are enough of each kind."""
    if not limit or len(pairs) <= limit:
        return pairs
    rng = np.random.default_rng(seed)
    matches, others = np.flatnonzero(pairs.match), np.flatnonzero(~pairs.match)
    number = min(max(round(limit / 2), limit - len(others), 1), limit - 1, len(matches))
    rows = np.sort(np.concatenate([rng.permutation(matches)[:number], rng.permutation(others)[: limit - number]]))
    return PatchPairs(pairs.first[rows], pairs.second[rows], pairs.match[rows])
