"""Labelled patches for learning a descriptor: pairs for training, and pairs held out for validation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.parallel import one_thread
from index.progress import Step, silent
from learning.patches.phototour import PatchPairs, PatchSet
from retrieval.regions.patches import resample_patches

_BATCH = 2_048  # patches described at a time


class Patches(Protocol):
    """Patches read by number: a `PatchSet`, or one with distorted copies."""

    folder: Path

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the patches."""

    def __len__(self) -> int: ...

    def read(self, numbers: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Read patches (K,) as (K, S, S) uint8."""


@dataclass(frozen=True)
class PatchFolder:
    """One folder of patches, and the pairs in use."""

    patches: Patches
    train: PatchPairs
    validation: PatchPairs
    pair_file: str | None = None  # the file named for training

    def describe(self) -> dict[str, Any]:
        """Describe it for the provenance of models: JSON types only."""
        return {
            "name": self.patches.folder.resolve().name,
            "fingerprint": self.patches.fingerprint,
            "train": len(self.train),
            "validation": len(self.validation),
            **({"pair_file": self.pair_file} if self.pair_file is not None else {}),
        }


def open_sources(
    folders: Sequence[Path], *, pairs: int = 0, held_out: float = 0.2, seed: int = 0, pair_file: str | None = None
) -> list[PatchFolder]:
    """Open folders in the PhotoTour layout. A set made by `cairn patches build` has pairs for validation; for a
    published one a share of its largest file is held out (Simonyan14 10.1.2: 100,000 of 500,000). `pairs`: largest
    number of training pairs of each set, and half of that for validation, drawn at random; 0: all.
    """
    sources = []
    for folder in folders:
        rng = np.random.default_rng(seed)
        patches = PatchSet.open(folder)
        if not any(file.endswith("_0.txt") for file in patches.pair_files):
            raise CairnError(f"{folder} has no training pairs (m50_…_0.txt): it was built for testing alone.")
        train = patches.pairs(pair_file or "train")
        others = None if pair_file is None else _others(patches, train, held_out, rng)
        if any(file.endswith("_1.txt") for file in patches.pair_files):
            validation = patches.pairs("validation")
        elif others is not None:
            validation = others
        else:
            order = rng.permutation(len(train))
            cut = round(held_out * len(train))
            train, validation = take_pairs(train, np.sort(order[cut:])), take_pairs(train, np.sort(order[:cut]))
        if pairs:
            train, validation = draw_pairs(train, pairs, rng), draw_pairs(validation, max(pairs // 2, 2), rng)
        if not train.match.any() or train.match.all():
            raise CairnError(f"{folder} needs both matches and non-matches among its training pairs.")
        sources.append(PatchFolder(patches, train, validation, pair_file))
    if not sources:
        raise CairnError("There is nothing to learn from: name a folder of labelled patches.")
    labels = np.concatenate([source.validation.match for source in sources])
    if not labels.any() or labels.all():
        raise CairnError(
            "The sources hold out no matches or no non-matches for validation: build them with more pairs."
        )
    return sources


def _others(patches: PatchSet, train: PatchPairs, held_out: float, rng: np.random.Generator) -> PatchPairs | None:
    """Draw validation pairs from the rest of a set's largest training file; None if they are not of both kinds."""

    def keys(pairs: PatchPairs) -> NDArray[np.int64]:
        low, high = np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second)
        return np.asarray(low * len(patches) + high)

    largest = patches.pairs("train")
    rest = take_pairs(largest, np.flatnonzero(~np.isin(keys(largest), keys(train))))
    if rest.match.all() or not rest.match.any():
        return None
    return draw_pairs(rest, max(2, round(len(train) * held_out / (1 - held_out))), rng)


def patches_used(
    splits: Sequence[PatchPairs],
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """The patches in pairs of several sources, ascending in each; and all pairs as indices into all of these."""
    used = [np.unique(np.concatenate([pairs.first, pairs.second])) for pairs in splits]
    of_each = list(zip(np.cumsum([0, *map(len, used)]), used, splits, strict=False))
    first, second = (
        np.concatenate([start + np.searchsorted(known, getattr(pairs, name)) for start, known, pairs in of_each])
        for name in ("first", "second")
    )
    return used, first, second, np.concatenate([pairs.match for pairs in splits])


def describe_patches(
    patches: Patches,
    numbers: NDArray[np.int64],
    describe: Callable[[NDArray[np.float32]], NDArray[np.floating]],
    size: int,
    progress: Step = silent,
    footprint: float = 1.0,
) -> NDArray[np.float32]:
    """Describe patches (K,) of a set in batches, by `describe` from (N, size, size) to rows (N, D) float32.

    `footprint` is the described share of a patch's side, about its middle.
    """
    rows = np.empty((0, 0), np.float32)
    with one_thread():
        for start in range(0, len(numbers), _BATCH):
            part = describe(resample_patches(patches.read(numbers[start : start + _BATCH]), size, footprint))
            if not start:
                rows = np.empty((len(numbers), part.shape[1]), np.float32)
            rows[start : start + len(part)] = part
            progress(start + len(part), len(numbers))
    return rows


def take_pairs(pairs: PatchPairs, rows: NDArray[np.int64]) -> PatchPairs:
    """Select pairs by indices (K,)."""
    return PatchPairs(pairs.first[rows], pairs.second[rows], pairs.match[rows])


def draw_pairs(pairs: PatchPairs, number: int, rng: np.random.Generator) -> PatchPairs:
    """Draw at most `number` pairs, half of them matches if there are enough."""
    matches, others = np.flatnonzero(pairs.match), np.flatnonzero(~pairs.match)
    wanted = min(number // 2, len(matches))
    rows = [rng.permutation(matches)[:wanted], rng.permutation(others)[: number - wanted]]
    return take_pairs(pairs, np.sort(np.concatenate(rows)))
