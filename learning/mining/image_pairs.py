"""Mining of an image pair: a map between two photos, and the sets P(x) and N(x) by it (Simonyan14, section 9)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from learning.mining.homographies import MapOptions, PhotoMap, PhotoPoints, find_map
from retrieval.features.staging import Staged
from retrieval.regions.overlap import overlap_sets


@dataclass(frozen=True)
class MinedPhoto:
    """A photo whose features have been extracted."""

    path: Path
    key: str  # SHA-256 of its content, which identifies its stored features
    staged: Staged


@dataclass(frozen=True)
class MinedPair:
    """Result of one image pair. Features are numbered as in the photos."""

    number: int  # of the pair, among all proposed ones
    homography: NDArray[np.float64]  # (3, 3) float64: pixels of the first upright original to those of the second
    inliers: int  # inliers of an affine map; 0 if the map was known
    positives: NDArray[np.int32]  # (N, 2) int32, sorted: x, and a member of P(x)
    ambiguous: NDArray[np.int32]  # (M, 2) int32, sorted: x with a positive, and a feature in neither P(x) nor N(x)

    @property
    def references(self) -> NDArray[np.int32]:
        """The features x of the first photo with a positive (R,), ascending."""
        return np.unique(self.positives[:, 0])


@dataclass(frozen=True)
class Overlaps:
    """Thresholds on the overlap of measurement regions."""

    high: float = 0.6  # above: positive
    low: float = 0.3  # below: negative

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high < 1:
            raise CairnError(
                f"The overlaps {self.low} and {self.high} must lie between 0 and 1, the smaller one first."
            )


def mine_pair(
    first: PhotoPoints,
    second: PhotoPoints,
    scale: float,
    options: MapOptions,
    overlaps: Overlaps,
    number: int = 0,
    known: NDArray[np.float64] | None = None,
) -> MinedPair | None:
    """Mine one image pair, by its map (3, 3) if `known`; None if photos do not match, or no feature has a positive."""
    photo_map = PhotoMap(known, 0) if known is not None else find_map(first, second, options)
    if photo_map is None:
        return None
    regions1, regions2 = (measurement_regions(photo.features.ellipses, scale) for photo in (first, second))
    # Descriptors are not used from here on: positives must not depend on what SIFT can match.
    sets = overlap_sets(
        regions1, regions2, photo_map.homography, (second.height, second.width), overlaps.high, overlaps.low
    )
    if not len(sets.positives):
        return None
    used = np.isin(sets.ambiguous[:, 0], sets.positives[:, 0])
    positives, ambiguous = sets.positives.astype(np.int32), sets.ambiguous[used].astype(np.int32)
    return MinedPair(number, photo_map.homography, photo_map.inliers, positives, ambiguous)


def measurement_regions(ellipses: NDArray[np.float32], scale: float) -> NDArray[np.float64]:
    """Measurement regions (N, 5) float64: detected regions enlarged by a factor."""
    regions = np.asarray(ellipses, np.float64).copy()
    regions[:, 2:] /= scale * scale
    return regions
