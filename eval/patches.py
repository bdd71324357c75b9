"""Separation of matching patches from others by a descriptor: FPR95 on labelled pairs (Brown11, section 2)."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.descriptions import Descriptions, room_for
from index.attributes import some_of
from index.errors import CairnError
from index.parallel import one_thread
from index.progress import Progress, silent
from learning.measures.roc import auc, fpr95
from learning.patches.phototour import PatchPairs, PatchSet, default_pair_file
from learning.patches.rows import signed_products
from learning.patches.sources import Patches
from retrieval.descriptors.contract import Descriptor, signs_of
from retrieval.regions.patches import resample_patches

COMPARISONS = ("distance", "inner")
"""Comparisons of descriptors: by Euclidean distance, or by an inner product, signed if they have signs."""

_PATCHES = 1024  # described at a time
_PAIRS = 16_384  # measured at a time


@dataclass(frozen=True)
class PatchReport:
    """Figures of one descriptor on one list of pairs."""

    folder: str
    pair_file: str  # its name; empty for pairs in arrays
    descriptor: str
    dim: int
    bytes: int  # bytes of one stored descriptor
    pairs: int
    patches: int  # number of distinct patches in the pairs
    fpr95: float  # 0 to 1; see learning.measures.roc
    auc: float
    ms_per_patch: float | None  # in `describe`, one thread, without reading and resampling; None: made elsewhere
    distances: NDArray[np.float32]  # (pairs,) float32: squared Euclidean, or Hamming, of the pairs in their order
    match: NDArray[np.bool_]  # (pairs,) bool
    comparison: str = "distance"  # one of COMPARISONS; distances by inner products are negated products
    footprint: float = 1.0  # described share of a patch's side

    def as_json(self) -> dict[str, Any]:
        """Return all but the arrays, as `cairn evaluate patches --json` prints it."""
        return {
            **some_of(self, "folder", "pair_file", "descriptor", "comparison", "footprint", "fpr95", "auc"),
            **some_of(self, "dim", "bytes", "pairs"),
            "matching": int(self.match.sum()),
            "patches": self.patches,
            "ms_per_patch": None if self.ms_per_patch is None else round(self.ms_per_patch, 5),
        }


def evaluate_patches(
    folder: Path | Patches,
    descriptor: Descriptor | Descriptions,
    pairs: str | PatchPairs | None = None,
    progress: Progress = silent,
    *,
    comparison: str | None = None,
    footprint: float = 1.0,
    max_pairs: int = 0,
    seed: int = 0,
) -> PatchReport:
    """Measure a descriptor, or rows of all patches of the set, on labelled pairs. `pairs`: a pair file of the folder by
    its name, or the pairs themselves; by default `default_pair_file`. `comparison`: one of `COMPARISONS`, by default
    the descriptor's. `max_pairs`: see `share_of`; 0: all.

    `descriptor`: receives the patches resampled to its own size. Or rows of all patches of the set. `footprint`:
    described share of a patch's side, about its middle (Brown11 figure 6 (a)).
    """
    signs = None if isinstance(descriptor, Descriptions) else signs_of(descriptor)
    comparison = comparison or ("inner" if signs is not None else "distance")
    if comparison not in COMPARISONS:
        raise CairnError(f"There is no comparison {comparison!r}; choose one of {', '.join(COMPARISONS)}.")
    if not 0.1 <= footprint <= 1:
        raise CairnError(f"The footprint is a share of the patch's side from 0.1 to 1, and cannot be {footprint}.")
    patches = PatchSet.open(Path(folder)) if isinstance(folder, str | Path) else folder
    name = ""
    if not isinstance(pairs, PatchPairs):
        assert isinstance(patches, PatchSet)  # other sets have no pair files
        name = pairs if pairs is not None else default_pair_file(patches)
        pairs = patches.pairs(name)
    if pairs.match.all() or not pairs.match.any():
        raise CairnError(
            f"{name or 'The list'} has {np.count_nonzero(pairs.match)} matching pairs among {len(pairs)}: "
            "an error rate needs matching and other ones."
        )
    if 0 < max_pairs < len(pairs):
        pairs = share_of(pairs, max_pairs, seed)
    used, places = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
    seconds = None
    if isinstance(descriptor, Descriptions):
        descriptor.check_number(len(patches), patches.folder)
        distances = descriptor.distances(pairs.first, pairs.second)
    else:
        rows, seconds = _describe(patches, used, descriptor, footprint, progress)
        distances = _compare(rows, places, comparison, signs)
    return PatchReport(
        folder=str(patches.folder),
        pair_file=name,
        descriptor=descriptor.name,
        dim=descriptor.dim,
        bytes=descriptor.bytes,
        pairs=len(distances),
        patches=len(used),
        fpr95=fpr95(distances, pairs.match),
        auc=auc(distances, pairs.match),
        ms_per_patch=None if seconds is None else 1000 * seconds / len(used),
        distances=distances,
        match=np.asarray(pairs.match),
        comparison=comparison,
        footprint=footprint,
    )


def share_of(pairs: PatchPairs, most: int, seed: int) -> PatchPairs:
    """Draw a sample of pairs in order, with matching and other ones in proportion, at least one of each."""
    rng = np.random.default_rng(seed)
    kinds = np.flatnonzero(pairs.match), np.flatnonzero(~pairs.match)
    matching = min(max(round(most * len(kinds[0]) / len(pairs)), 1), max(most - 1, 1))
    numbers = (matching, max(most - matching, 1))
    draws = [rng.choice(of, min(number, len(of)), replace=False) for of, number in zip(kinds, numbers, strict=True)]
    drawn = np.sort(np.concatenate(draws))
    return PatchPairs(pairs.first[drawn], pairs.second[drawn], pairs.match[drawn])


def squared_distances(
    rows: NDArray[np.float32], first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the squared Euclidean distances of rows (N, D), pair by pair: first, second (M,) int to (M,) float32."""
    distances = np.empty(len(first), np.float32)
    for start in range(0, len(first), _PAIRS):
        part = slice(start, start + _PAIRS)
        difference = rows[first[part]] - rows[second[part]]
        distances[part] = np.einsum("md,md->m", difference, difference)
    return distances


def _compare(
    rows: NDArray[np.float32], places: NDArray[np.int64], comparison: str, signs: NDArray[np.float32] | None
) -> NDArray[np.float32]:
    """Distances (M,) float32 of the rows at `places` (2 M,), first all first patches, then all second ones."""
    first, second = np.split(places, 2)
    if comparison != "inner":
        return squared_distances(rows, first, second)
    signs = np.ones(rows.shape[1], np.float32) if signs is None else signs
    return -signed_products(rows.__getitem__, first, second, signs)


def _describe(
    patches: Patches, numbers: NDArray[np.int64], descriptor: Descriptor, footprint: float, progress: Progress
) -> tuple[NDArray[np.float32], float]:
    """Rows (N, D) float32 of the patches of these numbers, and the seconds spent in `describe`."""
    rows = room_for(len(numbers), descriptor.dim, np.dtype(np.float32))
    seconds = 0.0
    for start in range(0, len(numbers), _PATCHES):
        part = slice(start, start + _PATCHES)
        batch = resample_patches(patches.read(numbers[part]), descriptor.patch_size, footprint)
        with one_thread():
            begun = time.perf_counter()
            rows[part] = descriptor.describe(batch)
            seconds += time.perf_counter() - begun
        if not np.isfinite(rows[part]).all():
            raise CairnError(f"{descriptor.name} gives rows that are not finite: mend it first.")
        progress("describe", min(part.stop, len(numbers)), len(numbers))
    return rows, seconds
