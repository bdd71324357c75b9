"""Test errors of all models tried, on patches not used for the choice (Simonyan14 figure 3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint, load_json, save_json
from index.errors import CairnError
from index.parallel import one_thread, run
from index.progress import Progress
from learning.convex.records import Record
from learning.measures.roc import fpr95
from learning.patches.phototour import PatchPairs, PatchSet, default_pair_file
from learning.patches.rows import squared_distances
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel
from retrieval.regions.patches import resample_patches

TESTED = "tested.json"
"""File in the folder of a run: the measured errors, for resuming."""

_READ = 2_048  # patches at a time
_SPACE = 1 << 30  # bytes of descriptors in memory


@dataclass(frozen=True)
class TestPairs:
    """Labelled pairs to test on, their patches in memory: 0.7 GB for 100,000 pairs of a published set."""

    __test__ = False  # no class of tests

    folder: str  # its name
    pair_file: str
    patches: NDArray[np.uint8]  # (U, S, S) uint8, each in a pair
    first: NDArray[np.int64]  # (M,) int64, rows of patches
    second: NDArray[np.int64]  # (M,) int64
    match: NDArray[np.bool_]  # (M,) bool
    fingerprint: str

    @classmethod
    def open(cls, folder: Path) -> "TestPairs":
        """Read those of a folder: its test pairs, or the pair file of the published results."""
        patches, name, pairs = _pairs_of(folder)
        used, places = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
        read = [patches.read(used[start : start + _READ]) for start in range(0, len(used), _READ)]
        first, second = np.split(places.astype(np.int64), 2)
        key = fingerprint(
            {"first": pairs.first, "second": pairs.second, "match": pairs.match}, {"of": patches.fingerprint}
        )
        return cls(folder.resolve().name, name, np.concatenate(read), first, second, pairs.match, key)

    def errors(self, models: Sequence[LearntModel]) -> list[float]:
        """False positives at 95% recall of models that project the same base's rows, or do not project."""
        base = LearntDescriptor(models[0])
        most = max(1, _SPACE // (8 * base.model.base_dim))
        distances = np.empty((len(models), len(self.match)), np.float32)
        with one_thread():
            for start in range(0, len(self.match), most):
                part = slice(start, start + most)
                used, places = np.unique(np.concatenate([self.first[part], self.second[part]]), return_inverse=True)
                rows = np.empty((len(used), base.model.base_dim), np.float32)
                for begin in range(0, len(used), _READ):
                    patches = resample_patches(self.patches[used[begin : begin + _READ]], base.patch_size)
                    rows[begin : begin + _READ] = base.base_rows(patches)
                for model, values in zip(models, distances, strict=True):
                    described = LearntDescriptor(model).projected(rows)
                    values[part] = squared_distances(described.__getitem__, *np.split(places, 2))
        return [fpr95(values, self.match) for values in distances]


@dataclass(frozen=True)
class Tested:
    """One model, and its errors on the test pairs."""

    record: Record
    errors: dict[str, float]  # by the name of the folder


def check_tests(folders: Sequence[Path]) -> None:
    """Raise CairnError if models cannot be tested on folders; called before any are learnt."""
    names = [folder.resolve().name for folder in folders]
    if len(set(names)) < len(names):
        raise CairnError("Two folders to test on have the same name, by which errors are listed: rename one.")
    for folder in folders:
        _pairs_of(folder)


def measure_tried(
    tried: Sequence[Record],
    model_of: Callable[[Record], LearntModel | None],
    folders: Sequence[Path],
    work: Path,
    *,
    workers: int = 1,
    progress: Progress,
) -> list[Tested]:
    """Measure models on test pairs, folder by folder, reusing the results of a stopped run.

    `model_of` returns None for a model that describes nothing.
    """
    check_tests(folders)
    measured = _read(work / TESTED)
    of = {record: f"{record.key}-{record.refits}" for record in tried}
    errors: dict[Record, dict[str, float]] = {record: {} for record in tried}
    for number, folder in enumerate(folders):
        pairs = TestPairs.open(folder)
        known = measured.setdefault(pairs.fingerprint, {})
        groups: dict[str, list[tuple[Record, LearntModel]]] = {}
        for record in tried:
            if of[record] in known:
                continue
            model = model_of(record)
            if model is None:
                known[of[record]] = 1.0
            else:
                groups.setdefault(LearntModel(model.base, model.pooling).fingerprint, []).append((record, model))
        done = number * len(tried) + len(tried) - sum(map(len, groups.values()))
        progress("test", done, len(folders) * len(tried))
        waiting = list(groups.values())
        results = run([partial(pairs.errors, [model for _, model in group]) for group in waiting], workers)
        for group, values in zip(waiting, results, strict=True):
            known |= {of[record]: value for (record, _), value in zip(group, values, strict=True)}
            save_json(work / TESTED, measured)
            done += len(group)
            progress("test", done, len(folders) * len(tried))
        for record in tried:
            errors[record][pairs.folder] = known[of[record]]
    return [Tested(record, errors[record]) for record in tried]


def _pairs_of(folder: Path) -> tuple[PatchSet, str, PatchPairs]:
    """Labelled patches of a folder, and the name and the pairs of the file to test on."""
    patches = PatchSet.open(folder)
    name = default_pair_file(patches)
    pairs = patches.pairs(name)
    if pairs.match.all() or not pairs.match.any():
        raise CairnError(f"{folder / name} needs matching and other pairs: build the patches with more.")
    return patches, name, pairs


def _read(path: Path) -> dict[str, dict[str, float]]:
    if not path.is_file():
        return {}
    contents: Any = load_json(path)
    errors = [one for entry in contents.values() for one in entry.values()] if isinstance(contents, dict) else [None]
    if not all(isinstance(one, int | float) and 0 <= one <= 1 for one in errors):
        raise CairnError(f"{path} is damaged: delete it to measure again.")
    return contents  # type: ignore[no-any-return]
