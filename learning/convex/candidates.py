"""The candidate pool of pooling regions, grouped into symmetric rings (Simonyan14 section 4)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint


@dataclass(frozen=True)
class PoolOptions:
    """Options of the candidate regions."""

    patch_size: int = 31  # samples along a side; its radius, ρ₀, is half the distance between the outermost samples
    step: float = 0.5  # of ρ, from 0 to ρ₀, and of σ, from this step to ρ₀, in samples
    angles: int = 32  # angles α, in steps of 2π / 32; a multiple of 8
    symmetric: bool = True  # group regions into rings that are invariant to flips; False: each region is its own ring


@dataclass(frozen=True)
class CandidatePool:
    """Rings of regions: the same groups of positions at every σ.

    Ring ``k * len(columns) + i`` has the standard deviation ``sigmas[k]`` and the positions whose ``groups`` entry is
    ``columns[i]``. At ρ = 0 all rings of a set coincide in the one region there: they are counted (as in the paper,
    with N = 4,650 for 31 radii x 30 σ x 5 rings), computed once, and become one region when a descriptor is made.
    """

    options: PoolOptions
    positions: NDArray[np.float64]  # (P, 2) float64: x, y from the patch's centre, in samples
    groups: NDArray[np.int64]  # (P,) int64: the group of positions each belongs to
    columns: NDArray[np.int64]  # (rings at one σ,) int64: the group of each ring
    sigmas: NDArray[np.floating]  # (K,) float64, in samples

    def __len__(self) -> int:
        return len(self.columns) * len(self.sigmas)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Regions in each ring (N,) int64."""
        return np.tile(np.bincount(self.groups)[self.columns], len(self.sigmas))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the options."""
        return fingerprint({}, {"pool": self.options})

    def regions(self, ring: int) -> NDArray[np.float64]:
        """Return the regions x, y, σ of a ring (R, 3) float64."""
        scale, column = divmod(ring, len(self.columns))
        members = self.positions[self.groups == self.columns[column]]
        return np.column_stack([members, np.full(len(members), self.sigmas[scale])])

    def select(
        self, weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
        """Regions x, y, σ (R, 3), samples from the patch's centre, selected by non-negative weights of rings (N,).

        Also returns the weight (R,) of each, summed over coinciding rings, and its ring (R,), numbered in their order.
        """
        grid = np.asarray(weights, np.float64).reshape(len(self.sigmas), len(self.columns))
        merged = np.zeros((len(self.sigmas), self.groups.max() + 1))
        for column, group in enumerate(self.columns):
            merged[:, group] += grid[:, column]
        rings = np.argwhere(merged > 0)
        positions = [self.positions[self.groups == group] for _, group in rings]
        counts = np.array([len(members) for members in positions], np.int64)
        sigma = np.repeat(self.sigmas[rings[:, 0]], counts)
        places = np.concatenate(positions) if positions else np.zeros((0, 2))
        weight = np.repeat(merged[merged > 0], counts)
        numbers = np.repeat(np.arange(len(rings)), counts)
        return (
            np.column_stack([places, sigma]).astype(np.float32),
            weight.astype(np.float32),
            numbers.astype(np.int32),
        )


def candidate_pool(options: PoolOptions | None = None) -> CandidatePool:
    """Build the pool: ρ, α and σ sampled uniformly, regions of equal ρ and σ grouped by symmetry.

    Of the 32 of equal ρ and σ, the flips about the vertical, the horizontal and the diagonals make five rings: those at
    multiples of π/2, at odd multiples of π/4, and three groups of eight. Raises ValueError unless the number of angles
    is a multiple of 8.
    """
    options = options or PoolOptions()
    if options.angles % 8:
        raise ValueError(f"the number of angles must be a multiple of 8, not {options.angles}")
    radius = (options.patch_size - 1) / 2
    steps = np.arange(1, int(radius / options.step + 1e-9) + 1) * options.step
    angle = 2 * np.pi * np.arange(options.angles) / options.angles
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    positions = np.concatenate([np.zeros((1, 2)), (steps[:, None, None] * circle).reshape(-1, 2)])
    if options.symmetric:
        eighth = options.angles // 8
        # Fold the circle onto its first eighth: an angle and its images under the flips coincide.
        folded = np.arange(options.angles) % (2 * eighth)
        orbit = np.minimum(folded, 2 * eighth - folded)
        rings = eighth + 1
    else:
        orbit, rings = np.arange(options.angles), options.angles
    groups = np.concatenate([[0], 1 + (rings * np.arange(len(steps))[:, None] + orbit).reshape(-1)])
    # At ρ = 0 the rings of a set coincide.
    columns = np.concatenate([np.zeros(rings if options.symmetric else 1, np.int64), np.arange(1, groups.max() + 1)])
    return CandidatePool(options, positions, groups, columns, steps)
