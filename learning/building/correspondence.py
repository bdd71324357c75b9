"""Whether two detections in two views of a plane correspond: the rule of Brown11, section II."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from learning.building.options import MatchRule
from learning.patches.phototour import PATCH

ALONE, AMBIGUOUS = -1, -2
"""Codes in place of a reference detection's number: non-match with all; ambiguous."""


@dataclass(frozen=True)
class Detections:
    """Interest points or regions of an image, each with the frame of its patch."""

    centres: NDArray[np.float64]  # (N, 2) float64, points (x, y), pixels
    frames: NDArray[np.float64]  # (N, 2, 2), maps the square [-1, 1]² to the patch's area around the centre
    oriented: bool = True  # whether the frame's rotation comes from the image, so that orientations can be compared

    def __len__(self) -> int:
        return len(self.centres)

    @property
    def octaves(self) -> NDArray[np.float64]:
        """Scale (N,): log2 of half the patch's side, pixels."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(0.5 * np.log2(np.linalg.det(self.frames)))

    @property
    def sides(self) -> NDArray[np.float64]:
        """Side (N,) of the patch, pixels; of a slanted one, that of a square of its area."""
        # The frame spans from the centre of the first pixel to that of the last.
        return 2 * PATCH / (PATCH - 1) * 2**self.octaves

    @property
    def angles(self) -> NDArray[np.float64]:
        """Orientation (N,) of the patch's x axis, radians, from x towards y."""
        return np.arctan2(self.frames[:, 1, 0], self.frames[:, 0, 0])

    def take(self, rows: NDArray[np.bool_ | np.int64]) -> "Detections":
        """Some of the detections, by number or mask."""
        return Detections(self.centres[rows], self.frames[rows], self.oriented)

    @classmethod
    def concatenate(cls, parts: "Sequence[Detections]") -> "Detections":
        """Concatenate lists of detections."""
        return cls(
            np.concatenate([one.centres for one in parts]),
            np.concatenate([one.frames for one in parts]),
            all(one.oriented for one in parts),
        )

    def transfer(self, homography: NDArray[np.floating]) -> "Detections":
        """Project into another image by a homography (3, 3): centres by it, frames by its Jacobian there.

        NaN where a point is seen from behind, or at infinity.
        """
        h = np.asarray(homography, np.float64)
        projected = self.centres @ h[:, :2].T + h[:, 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            w = projected[:, 2:]
            centres = projected[:, :2] / w
            # d(u, v)/d(x, y) = (H[:2, :2] - (u, v)ᵀ H[2, :2]) / w
            jacobians = (h[:2, :2] - centres[:, :, None] * h[2, :2]) / w[:, :, None]
            behind = ~(np.linalg.det(jacobians) > 0)
            frames = jacobians @ self.frames
        centres[behind], frames[behind] = np.nan, np.nan
        return Detections(centres, frames, self.oriented)


def disagreement(first: Detections, second: Detections, rule: MatchRule) -> NDArray[np.float64]:
    """Disagreement (N,) of pairs of detections in the same image: the largest difference, divided by the rule's
    tolerance.

    More than 2 is a non-match, at most 1 a match if `is_match` allows it; NaN if either is NaN. Orientations count if
    both sides have them.
    """
    worst = np.maximum(_distance(first, second) / rule.pixels, np.abs(first.octaves - second.octaves) / rule.octaves)
    if first.oriented and second.oriented:
        turn = np.abs((first.angles - second.angles + np.pi) % (2 * np.pi) - np.pi)
        worst = np.maximum(worst, turn / rule.radians)
    return worst


def is_match(first: Detections, second: Detections, rule: MatchRule) -> NDArray[np.bool_]:
    """Mask (N,) of matching pairs of detections in the same image: their `disagreement` is at most 1, their centres are
    near relative to their patches, and upright patches differ in rotation by at most the tolerance of orientations.
    """
    match = disagreement(first, second, rule) <= 1
    if not (first.oriented and second.oriented):
        # Rotation between the contents of two patches: the one nearest to the map between their frames.
        between = np.linalg.solve(second.frames, first.frames)
        turn = np.arctan2(between[:, 1, 0] - between[:, 0, 1], between[:, 0, 0] + between[:, 1, 1])
        match &= np.abs(turn) <= rule.radians
    if rule.max_shift:
        match &= _distance(first, second) <= rule.max_shift * np.minimum(first.sides, second.sides)
    return match


def _distance(first: Detections, second: Detections) -> NDArray[np.float64]:
    offset = first.centres - second.centres
    return np.hypot(offset[:, 0], offset[:, 1])


def near_pairs(first: Detections, second: Detections, rule: MatchRule) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of all pairs within twice the rule's tolerances, that is except non-matches, by `disagreement`."""
    there, here = (np.flatnonzero(np.isfinite(one.centres).all(axis=1)) for one in (first, second))
    if not len(there) or not len(here):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # A little wider, so that rounding does not matter here.
    distances = cKDTree(first.centres[there]).sparse_distance_matrix(
        cKDTree(second.centres[here]), 2 * rule.pixels * (1 + 1e-9), output_type="ndarray"
    )
    a, b = there[distances["i"]], here[distances["j"]]
    apart = disagreement(first.take(a), second.take(b), rule)
    near = apart <= 2
    a, b, apart = a[near], b[near], apart[near]
    order = np.lexsort((b, a, apart))
    return a[order], b[order]


def assign_points(reference: Detections, detections: Detections, rule: MatchRule) -> NDArray[np.int64]:
    """The row of `reference` that each detection matches best; `ALONE` if it is a non-match with all, else `AMBIGUOUS`.

    It is ambiguous, too, if another detection matches the same row better.
    """
    a, b = near_pairs(reference, detections, rule)
    assigned = np.full(len(detections), ALONE, np.int64)
    assigned[b] = AMBIGUOUS
    match = is_match(reference.take(a), detections.take(b), rule)
    a, b = a[match], b[match]
    # Pairs are sorted by disagreement, so that the first of each is its best.
    _, best = np.unique(b, return_index=True)
    best.sort()
    a, b = a[best], b[best]
    _, best = np.unique(a, return_index=True)
    assigned[b[best]] = a[best]
    return assigned
