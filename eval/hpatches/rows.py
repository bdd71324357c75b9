"""Descriptions of the patches of HPatches, by a descriptor or from files, and their distances."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from eval.descriptions import read_rows, room_for
from eval.hpatches.release import IMAGES, HPatchesSequence
from index.errors import CairnError
from index.parallel import one_thread
from index.progress import Progress, silent
from index.text import one_of
from retrieval.descriptors.contract import Descriptor
from retrieval.regions.patches import resample_patches

DISTANCES = ("l2", "l1", "hamming")
"""Distances of rows: Euclidean, sum of absolute differences, or Hamming distance of packed bits."""

_PAIRS = 16_384  # measured at a time
_FILES = (".csv", ".npy", ".txt")


class PatchRows:
    """A row for every patch of some sequences."""

    def __init__(self, name: str, distance: str, counts: Mapping[str, int], dim: int) -> None:
        self.name, self.distance, self.counts = name, distance, dict(counts)
        self._starts: dict[str, int] = {}
        total = 0
        for sequence, count in self.counts.items():
            self._starts[sequence] = total
            total += len(IMAGES) * count
        self._rows = room_for(total, dim, np.dtype(np.uint8 if distance == "hamming" else np.float32))

    @property
    def dim(self) -> int:
        """Numbers, or bits, of a row."""
        return int(self._rows.shape[1]) * (8 if self.distance == "hamming" else 1)

    @property
    def bytes(self) -> int:
        """Bytes of a row."""
        return int(self._rows.shape[1]) * self._rows.dtype.itemsize

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, sequence: str, image: str, rows: NDArray[np.number], source: object) -> None:
        """Store the rows of an image's patches; raises CairnError if they do not fit or are not finite."""
        wanted = (self.counts[sequence], self._rows.shape[1])
        if rows.shape != wanted:
            raise CairnError(
                f"{source} has {rows.shape[0]} rows of {rows.shape[1]} numbers; {sequence} has {wanted[0]} patches an "
                f"image, and the other rows have {wanted[1]} numbers."
            )
        if not np.isfinite(rows).all():
            raise CairnError(f"{source} has a row with a number that is not finite (NaN or infinite).")
        if self.distance == "hamming":
            packed = rows.astype(np.uint8)
            if not (packed == rows).all():
                raise CairnError(
                    "{source} must hold bytes of packed bits, 0 to 255: leave out {--binary} for numbers.",
                    source=source,
                )
            rows = packed
        self._rows[self._slice(sequence, image)] = rows

    def of(self, sequence: str, image: str) -> NDArray[np.generic]:
        """Return the rows (N, D) of an image."""
        rows: NDArray[np.generic] = self._rows[self._slice(sequence, image)]
        return rows

    def places(
        self, sequences: Iterable[str], of: NDArray[np.int64], images: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Indices (M,) of patches among all rows, by indices into `sequences` and `IMAGES`, and their numbers."""
        names = list(sequences)
        starts = np.array([self._starts[name] for name in names])[of]
        places: NDArray[np.int64] = starts + images * np.array([self.counts[name] for name in names])[of] + numbers
        return places

    def at(self, places: NDArray[np.int64]) -> NDArray[np.generic]:
        """Return rows (M, D) by index."""
        rows: NDArray[np.generic] = self._rows[places]
        return rows

    def pairwise(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the distances (M,) of rows by indices (M,), pair by pair."""
        distances = np.empty(len(first))
        for start in range(0, len(first), _PAIRS):
            part = slice(start, start + _PAIRS)
            one, other = self._rows[first[part]], self._rows[second[part]]
            if self.distance == "hamming":
                distances[part] = np.bitwise_count(np.bitwise_xor(one, other)).sum(axis=1)
                continue
            difference = one.astype(np.float64) - other.astype(np.float64)
            if self.distance == "l1":
                distances[part] = np.abs(difference).sum(axis=1)
            else:
                distances[part] = np.sqrt(np.einsum("md,md->m", difference, difference))
        return distances

    def matrix(self, one: NDArray[np.generic], other: NDArray[np.generic]) -> NDArray[np.float64]:
        """Return the distances (N, M) of all rows (N, D) and (M, D)."""
        if self.distance == "hamming":
            one, other = np.unpackbits(one, axis=1), np.unpackbits(other, axis=1)  # type: ignore[arg-type]
        metric = {"l2": "euclidean", "l1": "cityblock", "hamming": "sqeuclidean"}[self.distance]
        distances: NDArray[np.float64] = cdist(one, other, metric)
        return distances

    def _slice(self, sequence: str, image: str) -> slice:
        count = self.counts[sequence]
        start = self._starts[sequence] + IMAGES.index(image) * count
        return slice(start, start + count)


def describe_sequences(
    sequences: Mapping[str, HPatchesSequence], descriptor: Descriptor, progress: Progress = silent
) -> PatchRows:
    """Describe all patches of some sequences, resampled to the descriptor's own size; reports the step ``describe``."""
    rows = PatchRows(descriptor.name, "l2", {name: one.patches for name, one in sequences.items()}, descriptor.dim)
    for done, (name, sequence) in enumerate(sequences.items(), start=1):
        for image in IMAGES:
            batch = resample_patches(sequence.read(image), descriptor.patch_size)
            with one_thread():
                rows.put(name, image, descriptor.describe(batch), f"{descriptor.name} of {name}/{image}")
        progress("describe", done, len(sequences))
    return rows


def read_sequences(
    folder: Path,
    sequences: Mapping[str, HPatchesSequence],
    distance: str = "l2",
    progress: Progress = silent,
) -> PatchRows:
    """Read descriptions in the benchmark's layout, ``SEQUENCE/ref.csv``, ``SEQUENCE/e1.csv``, … (or .npy), by patch."""
    folder = Path(folder)
    rows = None
    for done, (name, sequence) in enumerate(sequences.items(), start=1):
        for image in IMAGES:
            places = (folder / name / f"{image}{suffix}" for suffix in _FILES)
            path = next((place for place in places if place.is_file()), None)
            if path is None:
                raise CairnError(
                    f"There is no file {folder / name / image}{one_of(_FILES[:2])} of descriptions: the folder needs "
                    f"one for each image of {sequence.name}."
                )
            read = read_rows(path)
            if rows is None:
                counts = {name: one.patches for name, one in sequences.items()}
                rows = PatchRows(folder.name, distance, counts, read.shape[1])
            rows.put(name, image, read, path)  # type: ignore[arg-type]
        progress("describe", done, len(sequences))
    if rows is None:
        raise CairnError("There are no sequences to read descriptions of.")
    return rows
