"""Synthetic interest point noise: what detections would be if they missed only by chance (Brown11, section VI.D)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from learning.building.correspondence import Detections, MatchRule
from retrieval.regions.geometry import rotations


@dataclass(frozen=True)
class JitterOptions:
    """How far detections miss: normally distributed, cut off at what a match allows.

    The paper names no amounts; these are ours.
    """

    spread: float = 0.4  # standard deviation of place, scale and orientation, as a part of what a match allows
    slant: float = 1.6  # largest ratio of a transferred patch's axes: what is seen at more of a slant is left out
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.spread <= 10 or not self.slant >= 1:
            raise CairnError("The spread of synthetic jitter lies between 0 and 10, and the slant is 1 or more.")


def jitter(exact: Detections, rule: MatchRule, options: JitterOptions, number: int) -> Detections:
    """Detections that miss by chance, and never by more than a match allows, in the same order; NaN where the exact
    ones are, or are slanted too much.

    `exact`: N, where they should be: those of another image, transferred. Of a slanted frame its area and the turn of
    its x axis are taken, as a detector of points would find it. `number`: of the image, so that each has misses of its
    own.
    """
    rng = np.random.default_rng([options.seed, number])
    count = len(exact)

    def parts(columns: int) -> NDArray[np.float64]:
        drawn = rng.normal(scale=options.spread, size=(count, columns))
        # Well inside of what is allowed: for scale and orientation are measured again after a transfer.
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
