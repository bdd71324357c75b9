"""Labelled patches in arrays, with the interface of folders of patches."""

from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint
from index.errors import CairnError
from learning.patches.phototour import PatchPairs
from learning.patches.sources import PatchFolder, draw_pairs, take_pairs
from retrieval.library.parts.arguments import as_array

HELD_OUT = 0.2
"""Share of the points, or of the pairs, for validation."""


class ArrayPatches:
    """Patches (N, S, S) uint8 in memory, with the interface of `learning.patches.sources.Patches`."""

    def __init__(self, patches: NDArray[np.uint8]) -> None:
        self.folder = Path("arrays")  # name in place of a folder's
        self._patches = patches

    def __len__(self) -> int:
        return len(self._patches)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the patches."""
        return fingerprint({"patches": self._patches}, {})

    def read(self, numbers: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Read patches (K,) as (K, S, S) uint8."""
        return np.asarray(self._patches[numbers])


def are_arrays(source: object) -> bool:
    """Return whether a source is labelled patches in arrays, not a path or list of paths."""
    return isinstance(source, tuple | list) and len(source) in (2, 3) and all(_is_array(part) for part in source)


def source_of_arrays(source: Sequence[Any], *, pairs: int = 0, seed: int = 0) -> PatchFolder:
    """Divide ``(patches, point_ids)`` or ``(first, second, same)`` into training pairs, at most `pairs` (0: all), and
    others.

    `HELD_OUT` of the points, or of the pairs, is for validation. All pairs of one point match, and as many of different
    points are drawn.
    """
    rng = np.random.default_rng(seed)
    if len(source) == 2:
        patches, points = labelled_points(source)
        several = rng.permutation(np.flatnonzero(np.bincount(points) > 1))
        # At least two: non-matches need two points.
        validated = np.isin(points, several[: max(2, round(HELD_OUT * len(several)))])
        train, validation = (pairs_of_points(points, np.flatnonzero(chosen), rng) for chosen in (~validated, validated))
    else:
        patches, labelled = labelled_pairs(source)
        held = np.zeros(len(labelled), bool)
        for kind in (labelled.match, ~labelled.match):  # of both kinds, even of few pairs
            places = rng.permutation(np.flatnonzero(kind))
            held[places[: max(1, round(HELD_OUT * len(places)))]] = True
        train, validation = (take_pairs(labelled, np.flatnonzero(chosen)) for chosen in (~held, held))
    if pairs:
        train, validation = draw_pairs(train, pairs, rng), draw_pairs(validation, max(pairs // 2, 2), rng)
    for part, what in ((train, "to learn from"), (validation, "for validation")):
        if not part.match.any() or part.match.all():
            raise CairnError(
                f"There are {np.count_nonzero(part.match)} matches among {len(part)} pairs {what}: give more points "
                "that have two patches, or more pairs of both kinds."
            )
    return PatchFolder(ArrayPatches(patches), train, validation)


def pairs_of_arrays(source: Sequence[Any], seed: int = 0) -> tuple[ArrayPatches, PatchPairs]:
    """Return labelled patches and all their pairs, for measuring; parameters and errors as of `source_of_arrays`."""
    if len(source) == 3:
        patches, labelled = labelled_pairs(source)
        return ArrayPatches(patches), labelled
    patches, points = labelled_points(source)
    return ArrayPatches(patches), pairs_of_points(points, np.arange(len(points)), np.random.default_rng(seed))


def labelled_points(source: Sequence[Any]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Check ``(patches, point_ids)``: patches (N, S, S) uint8 and points (N,) int64, numbered from 0."""
    patches, ids = as_patches(source[0], "patches"), as_array(source[1], "point_ids")
    if ids.shape != (len(patches),):
        raise CairnError(f"point_ids must have the shape ({len(patches)},), one for each patch, not {ids.shape}.")
    _, points = np.unique(ids, return_inverse=True)
    return patches, points.astype(np.int64)


def labelled_pairs(source: Sequence[Any]) -> tuple[NDArray[np.uint8], PatchPairs]:
    """Check ``(first, second, same)``: patches (2 M, S, S) uint8, first the first ones of all pairs; and pairs."""
    first, second = as_patches(source[0], "first"), as_patches(source[1], "second")
    if first.shape != second.shape:
        raise CairnError(f"first and second must have one shape, and have {first.shape} and {second.shape}.")
    match = as_labels(source[2], len(first))
    number = len(first)
    return np.concatenate([first, second]), PatchPairs(np.arange(number), np.arange(number, 2 * number), match)


def as_patches(value: Any, name: str) -> NDArray[np.uint8]:
    """Return patches (N, S, S) uint8; raises CairnError for another shape or type."""
    patches = as_array(value, name)
    if patches.ndim != 3 or patches.shape[1] != patches.shape[2] or not len(patches) or patches.shape[1] < 2:
        raise CairnError(f"{name} must be patches of the shape (N, S, S), not {patches.shape}.")
    if patches.dtype != np.uint8:
        raise CairnError(f"{name} must be grey values of the type uint8, 0 to 255, not {patches.dtype}.")
    return patches


def as_labels(value: Any, number: int) -> NDArray[np.bool_]:
    """Return the labels (M,) bool of the pairs; raises CairnError if they are malformed."""
    labels = as_array(value, "same")
    if labels.shape != (number,):
        raise CairnError(f"same must have the shape ({number},), one label for each pair, not {labels.shape}.")
    if labels.dtype.kind not in "biu" or not np.isin(labels, (0, 1)).all():
        raise CairnError("same must be True or False for each pair.")
    return labels.astype(bool)


def pairs_of_points(points: NDArray[np.int64], chosen: NDArray[np.int64], rng: np.random.Generator) -> PatchPairs:
    """Pair the patches `chosen` (K,), ascending, of one of the points (N,); draw as many pairs of different points."""
    order = chosen[np.argsort(points[chosen], kind="stable")]
    starts = np.flatnonzero(np.diff(points[order], prepend=-1))
    groups = np.split(order, starts[1:])  # of one point each
    matches = np.concatenate([group[np.column_stack(np.triu_indices(len(group), 1))] for group in groups])
    if len(starts) < 2:  # fewer than two points
        others = np.zeros((0, 2), np.int64)
    else:
        others = rng.choice(chosen, (len(matches), 2))
        while (alike := points[others[:, 0]] == points[others[:, 1]]).any():
            others[alike, 1] = rng.choice(chosen, np.count_nonzero(alike))
    both = np.concatenate([matches, others])
    return PatchPairs(both[:, 0], both[:, 1], np.arange(len(both)) < len(matches))


def _is_array(part: object) -> bool:
    if isinstance(part, str | PathLike):
        return False
    try:
        return np.ndim(part) > 0  # type: ignore[arg-type]
    except ValueError:  # rows of different lengths, refused later
        return True
