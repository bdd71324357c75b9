"""ψ(x, y): squared differences of the full descriptor, summed over each candidate ring (Simonyan14 equation 5).

The full descriptor of a 31x31 patch has 230,000 entries and is never held: it is made one standard deviation at a time
and for a few pairs at a time. A Gaussian over the plane is the product of two over its axes, and those of one standard
deviation, wherever their centres lie, are combinations of a few basis functions; so a patch is first brought to that
basis, and pooled from there.
"""

from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint, load_array, save_array
from index.parallel import one_thread, run
from index.progress import Step, silent
from learning.convex.candidates import CandidatePool, PoolOptions
from learning.patches.rows import in_bytes
from learning.patches.sources import Patches
from retrieval.descriptors.pooling import VERSION as channels_version
from retrieval.descriptors.pooling import ChannelOptions, axis_kernels, normalised_channels, respond
from retrieval.regions.patches import resample_patches

BLOCK = 4_096  # pairs per file: the most that a stopped run loses
_MOST_HALVES = 8_000_000_000  # bytes of ψ in half precision; beyond, ψ is stored in bytes: 20 GB for 500,000 pairs
_CHUNK = 32  # pairs at a time: their data fits the second-level cache
_TOLERANCE = 1e-6  # of the basis, relative to its largest singular value


class RingDistances:
    """Computes ψ for pairs of patches. Entries are bytes, to within 3% (`rows.in_bytes`), if half precision takes over
    8 GB.

    Those of the usual pool never are.
    """

    def __init__(self, pool: CandidatePool, options: ChannelOptions, pairs: int = 0) -> None:
        if pool.options.patch_size != options.patch_size:
            raise ValueError("the pool and the channels must be of patches of one size")
        self.pool = pool
        self.options = options
        large = 2 * pairs * len(pool) > _MOST_HALVES and pool.options != PoolOptions()
        self.dtype = np.dtype(np.uint8 if large else np.float16)
        size = options.patch_size
        self._groups = np.zeros((len(pool.positions), pool.groups.max() + 1), np.float32)
        self._groups[np.arange(len(pool.positions)), pool.groups] = 1
        self._bases: list[NDArray[np.float32]] = []
        self._combinations: list[NDArray[np.float32]] = []
        for sigma in pool.sigmas:
            across = axis_kernels(pool.positions[:, 0], sigma, size)
            down = axis_kernels(pool.positions[:, 1], sigma, size)
            _, strengths, basis = np.linalg.svd(np.concatenate([across, down]), full_matrices=False)
            basis = basis[strengths > _TOLERANCE * strengths[0]]
            self._bases.append(np.ascontiguousarray(basis.T, np.float32))
            combined = np.einsum("pj,pi->jip", down @ basis.T, across @ basis.T)
            self._combinations.append(combined.reshape(-1, len(pool.positions)).astype(np.float32))

    def __call__(
        self, first: NDArray[np.uint8 | np.float32], second: NDArray[np.uint8 | np.float32]
    ) -> NDArray[np.float32]:
        """Compute ψ (M, N) float32 of pairs of patches, each (M, S, S)."""
        result = np.empty((len(first), len(self.pool)), np.float32)
        for start in range(0, len(first), _CHUNK):
            part = slice(start, start + _CHUNK)
            result[part] = self._chunk(first[part], second[part])
        return result

    def fingerprint_of(self, source: Patches, first: NDArray[np.integer], second: NDArray[np.integer]) -> str:
        """SHA-256 of everything that ψ of pairs of a patch set depends on."""
        return fingerprint(
            {"first": first, "second": second},
            {
                "patches": source.fingerprint,
                "pool": self.pool.fingerprint,
                "channels": asdict(self.options),
                "version": [channels_version, BLOCK],
                **({"kept": "bytes"} if self.dtype == np.uint8 else {}),
            },
        )

    def _chunk(
        self, first: NDArray[np.uint8 | np.float32], second: NDArray[np.uint8 | np.float32]
    ) -> NDArray[np.float32]:
        size, number = self.options.patch_size, len(first)
        channels = normalised_channels(np.concatenate([first, second]).astype(np.float32), self.options)
        orientations = len(channels)
        images = np.ascontiguousarray(channels).reshape(-1, size, size)
        rings = []
        for basis, combination in zip(self._bases, self._combinations, strict=True):
            rank = basis.shape[1]
            across = (images.reshape(-1, size) @ basis).reshape(-1, size, rank)
            coefficients = np.matmul(basis.T, across).reshape(len(images), rank * rank)
            pooled = respond(coefficients @ combination, self.options.power)
            pooled = pooled.reshape(orientations, 2, number, -1)
            difference = pooled[:, 0] - pooled[:, 1]
            np.square(difference, out=difference)
            rings.append((difference.sum(axis=0) @ self._groups)[:, self.pool.columns])
        return np.concatenate(rings, axis=1)


def write_ring_distances(
    source: Patches,
    first: NDArray[np.integer],
    second: NDArray[np.integer],
    folder: Path,
    distances: RingDistances,
    *,
    workers: int = 1,
    progress: Step = silent,
) -> list[NDArray[np.float16 | np.uint8]]:
    """Compute ψ for the pairs of a patch set, in blocks (at most 4,096, N) on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    starts = range(0, len(first), BLOCK)
    paths = [folder / f"{start // BLOCK:06d}.npy" for start in starts]
    missing = [(start, path) for start, path in zip(starts, paths, strict=True) if not path.is_file()]
    done = len(first) - sum(min(BLOCK, len(first) - start) for start, _ in missing)
    jobs = (
        partial(_write_block, source, first[start : start + BLOCK], second[start : start + BLOCK], path, distances)
        for start, path in missing
    )
    for count in run(jobs, workers, ordered=False):
        done += count
        progress(done, len(first))
    return [load_array(path, mmap=True) for path in paths]


def _write_block(
    source: Patches, first: NDArray[np.integer], second: NDArray[np.integer], path: Path, distances: RingDistances
) -> int:
    size = distances.options.patch_size
    rows = np.empty((len(first), len(distances.pool)), distances.dtype)
    with one_thread():
        for start in range(0, len(first), 512):
            part = slice(start, start + 512)
            pair = [resample_patches(source.read(numbers[part]), size) for numbers in (first, second)]
            block = distances(*pair)
            rows[part] = in_bytes(block) if distances.dtype == np.uint8 else block
    save_array(path, rows)
    return len(first)
