"""Synthetic interest point noise: detections with random errors only (Brown11, section VI.D)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from learning.building.correspondence import Detections
from learning.building.options import MatchRule
from retrieval.regions.geometry import rotations


@dataclass(frozen=True)
class JitterOptions:
    """Sizes of the errors (ours): normally distributed, truncated at the tolerances of a match."""

    spread: float = 0.4  # standard deviation of position, scale and orientation, relative to the tolerances of a match
    slant: float = 1.6  # largest ratio of a transferred patch's axes: more slanted ones are left out
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.spread <= 10 or not self.slant >= 1:
            raise CairnError("The spread of synthetic jitter lies between 0 and 10, and the slant is 1 or more.")


def jitter(exact: Detections, rule: MatchRule, options: JitterOptions, number: int) -> Detections:
    """Add random errors within the tolerances of a match to transferred detections (N); NaN if too slanted.

    Only the area and the rotation of the x axis of a slanted frame are used, as a detector of points would find it.
    Images have different errors, by their numbers.
    """
    rng = np.random.default_rng([options.seed, number])
    count = len(exact)

    def parts(columns: int) -> NDArray[np.float64]:
        drawn = rng.normal(scale=options.spread, size=(count, columns))
        # Well within the tolerances: scale and orientation are measured again after a transfer.
        return np.clip(drawn, -0.9, 0.9)

    limit = np.full(count, rule.pixels)
    if rule.max_shift:
        limit = np.minimum(limit, rule.max_shift * 2 ** (exact.octaves + 1))
    offset = parts(2) * limit[:, None] / np.sqrt(2)
    octaves = exact.octaves + parts(1)[:, 0] * rule.octaves
    angles = exact.angles + parts(1)[:, 0] * rule.radians
    frames = rotations(angles) * (2**octaves)[:, None, None]
    centres = exact.centres + offset
    there = np.asarray(np.isfinite(exact.centres).all(axis=1))
    there[there] = np.linalg.cond(exact.frames[there]) <= options.slant
    centres[~there], frames[~there] = np.nan, np.nan
    return Detections(centres, frames, exact.oriented)
