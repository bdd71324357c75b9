"""What one impression has and another lacks once both are in one frame, and whether one block has printed both.

Wear takes ink away and leaves all other lines at their places, to a fraction of their width. Who cuts a block after
another one sets each line a little off, however careful the copy. So missing parts show wear, and how far lines
are displaced, once the paper's stretch is taken out, distinguishes blocks.
"""

from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

INKED, BARE = 0.5, 0.25
"""Ink from which a pixel is surely inked, and up to which it is surely bare."""
ONE_BLOCK, CUT_ALIKE = 0.16, 0.185
"""Widths of a line that a quarter of the lines is displaced by at least: up to the first, one block has printed both;
from the second, two that are cut alike; between them it is unsure."""
VERDICTS = ("one block", "cut alike", "unsure")

LEAST_WIDTH = 2.0
"""Pixels: lines that are thinner in either photo leave it unsure."""

_LEAST_CORRELATION = 0.3  # of the ink of both: what agrees less is not registered
_FEWEST = 24  # places at which a displacement is measured
_WINDOW = 2.0  # widths of a line: standard deviation of the windows in which a displacement is measured
_BLUR = 0.25  # widths of a line
_STEEP = 0.1  # of the steepest windows: those with less show next to no line
_QUARTER = 0.75
_BREAK = 1.0  # squared widths of a line: smallest place that counts as a break
_MOST_BREAKS = 1000
_TILE = 0.05  # of the longer side of a frame: side of what is looked at whether it agrees
_AGREES = 0.6  # of the correlation that the best quarter of the tiles has
_FINE = 1.5  # widths of a line
_SHOWS = 0.02  # least part of a tile that is inked


class Break(NamedTuple):
    """A place where one impression has ink that the other lacks: its box and its area, pixels of the frame."""

    x: int
    y: int
    width: int
    height: int
    area: int


@dataclass(frozen=True, eq=False)
class ImpressionResidual:
    """What differs between two impressions in one frame."""

    # (H, W): ink that the first has and the second lacks, and the other way round
    only: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    missing: tuple[float, float]  # the same as shares of the ink of the first, and of the second
    line_widths: tuple[float, float]  # mean width of the lines of each, pixels of the frame
    tolerance: float  # pixels within which ink counts as there
    # pixels that a quarter of the lines is displaced by at least; None where too few lines are there to tell
    displacement: float | None
    correlation: float  # of the ink of both, -1 to 1

    @property
    def displacement_widths(self) -> float | None:
        """`displacement` in mean widths of a line."""
        widths = sum(self.line_widths)
        return 2 * self.displacement / widths if self.displacement is not None and widths else None

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        share = self.displacement_widths
        if share is None or self.correlation < _LEAST_CORRELATION or min(self.line_widths) < LEAST_WIDTH:
            return "unsure"
        return "one block" if share <= ONE_BLOCK else "cut alike" if share >= CUT_ALIKE else "unsure"

    def breaks(self, which: int = 0) -> list[Break]:
        """List the places, largest first, at which the one (0: the first) has ink that the other lacks."""
        least = _BREAK * max(self.line_widths) ** 2
        _, _, found, _ = cv2.connectedComponentsWithStats(self.only[which].astype(np.uint8), connectivity=8)
        large = found[1:][found[1:, cv2.CC_STAT_AREA] >= least]
        ordered = large[np.argsort(-large[:, cv2.CC_STAT_AREA], kind="stable")][:_MOST_BREAKS]
        return [Break(*row) for row in ordered.tolist()]


def compare_impressions(
    first: NDArray[np.float32],
    second: NDArray[np.float32],
    region: NDArray[np.bool_] | None = None,
    tolerance: float | None = None,
) -> ImpressionResidual:
    """Compare the ink (H, W) float32 of two impressions that are in one frame, see `ink_of`.

    `region` (H, W): pixels that are compared; by default all. `tolerance`: pixels within which ink counts as there:
    what paper may stretch, and ink spread; by default half the width of a line, at least one.
    """
    inside = np.ones(first.shape, bool) if region is None else region
    if not inside.any():
        return ImpressionResidual((inside, inside), (0.0, 0.0), (0.0, 0.0), tolerance or 1.0, None, 0.0)
    widths = line_width(first, inside), line_width(second, inside)
    mean = max(sum(widths) / 2, 1.0)
    within = max(1.0, mean / 2) if tolerance is None else tolerance
    only = _lacking(first, second, inside, within), _lacking(second, first, inside, within)
    inks = [max(1, int(np.count_nonzero((one >= INKED) & inside))) for one in (first, second)]
    shares = [float(np.count_nonzero(lost) / ink) for lost, ink in zip(only, inks, strict=True)]
    moved = np.abs(displacements(first, second, inside, mean))
    one, other = (np.where(inside, picture - picture.mean(where=inside), 0) for picture in (first, second))
    spread = float(np.sqrt((one * one).sum() * (other * other).sum()))
    return ImpressionResidual(
        only,
        (shares[0], shares[1]),
        widths,
        within,
        float(np.quantile(moved, _QUARTER)) if len(moved) >= _FEWEST else None,
        float((one * other).sum()) / spread if spread > 0 else 0.0,
    )


def agreeing_region(
    first: NDArray[np.float32], second: NDArray[np.float32], region: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Narrow a region to what both impressions have in common, without the type around it, which differs: the convex
    hull of the largest piece in which the ink (H, W) float32 of both agrees all over.
    """
    width = max(1.0, line_width(first, region))
    side = max(9, round(_TILE * max(first.shape))) | 1
    one, other, weight = (
        cv2.resize(picture, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
        for picture in (first, second, region.astype(np.float32))
    )
    half = (side // 2 | 1, side // 2 | 1)
    shown = (cv2.blur(np.maximum(one, other), half) > _SHOWS) & (weight > 0.5)
    if not shown.any():
        return region
    # Lines of type lie at one height by chance: what is coarser than a few lines of a block is left out.
    one, other = (picture - cv2.GaussianBlur(picture, (0, 0), _FINE * width / 2) for picture in (one, other))
    shared, *own = (cv2.blur(product * weight, half) for product in (one * other, one * one, other * other))
    correlation = shared / np.sqrt(np.maximum(own[0] * own[1], 1e-8))
    agrees = shown & (correlation > _AGREES * np.quantile(correlation[shown], _QUARTER))
    agrees = cv2.morphologyEx(agrees.astype(np.uint8), cv2.MORPH_OPEN, np.ones((side // 4 | 1,) * 2, np.uint8))
    _, labels, found, _ = cv2.connectedComponentsWithStats(agrees)
    if len(found) < 2:
        return region
    largest = (labels == 1 + int(found[1:, cv2.CC_STAT_AREA].argmax())).astype(np.uint8)
    beyond = max(1, half[0] - round(2 * width)) | 1  # a window agrees that has an edge of the block in it
    inner = cv2.erode(largest, np.ones((beyond, beyond), np.uint8), borderType=cv2.BORDER_CONSTANT, borderValue=1)
    if not inner.any():
        return region
    hull = cv2.convexHull(cv2.findNonZero(inner))
    narrow = np.zeros_like(largest)
    cv2.fillConvexPoly(narrow, hull, 1)
    return np.asarray((cv2.resize(narrow, region.shape[::-1], interpolation=cv2.INTER_NEAREST) > 0) & region)


def line_width(ink: NDArray[np.float32], region: NDArray[np.bool_]) -> float:
    """Measure the mean width of the lines, pixels: their area over half their outlines; 0 where there is no ink."""
    inked = ((ink >= INKED) & region).astype(np.uint8)
    outlines = cv2.findContours(inked, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)[0]
    length = sum(cv2.arcLength(one, True) for one in outlines) / 2
    return float(np.count_nonzero(inked) / length) if length else 0.0


def displacements(
    first: NDArray[np.float32], second: NDArray[np.float32], region: NDArray[np.bool_], width: float
) -> NDArray[np.float64]:
    """Measure how far lines are displaced across themselves, pixels (N,), in windows all over the region that show a
    line.

    The shift of a window is that of least squares along its steepest direction (Lucas and Kanade, 1981). A line that is
    thinner on both sides, or has a break, is not displaced by it. `first`, `second` (H, W) float32: ink. `width`: width
    of a line, pixels, by which windows are measured.
    """
    one, other = (cv2.GaussianBlur(picture, (0, 0), max(0.8, _BLUR * width)) for picture in (first, second))
    inside, difference = region.astype(np.float32), one - other
    x, y = (cv2.Sobel((one + other) / 2, cv2.CV_32F, *way, ksize=3, scale=1 / 8) for way in ((1, 0), (0, 1)))
    reach = max(2.5, _WINDOW * width)
    step = round(1.75 * reach)
    xx, xy, yy, xd, yd = (
        cv2.GaussianBlur(product * inside, (0, 0), reach)[step::step, step::step].ravel().astype(np.float64)
        for product in (x * x, x * y, y * y, x * difference, y * difference)
    )
    sizes, axes = np.linalg.eigh(np.stack([xx, xy, xy, yy], -1).reshape(-1, 2, 2))
    steepness = sizes[:, 1]
    if not steepness.size or steepness.max() <= 0:
        return np.zeros(0)
    along = axes[:, 0, 1] * xd + axes[:, 1, 1] * yd
    shown = steepness > _STEEP * np.percentile(steepness, 95)
    return np.asarray(along[shown] / steepness[shown])


def _lacking(
    one: NDArray[np.float32], other: NDArray[np.float32], region: NDArray[np.bool_], tolerance: float
) -> NDArray[np.bool_]:
    """Pixels that are surely inked in one impression while all around them is surely bare in the other."""
    return np.asarray((one >= INKED) & bare_around(other, tolerance) & region)


def bare_around(ink: NDArray[np.float32], tolerance: float) -> NDArray[np.bool_]:
    """Pixels (H, W) around which, within some pixels, all is surely bare."""
    reach = int(tolerance)
    down, across = np.ogrid[-reach : reach + 1, -reach : reach + 1]
    return np.asarray(cv2.dilate(ink, (down**2 + across**2 <= tolerance**2 + 1e-6).astype(np.uint8)) <= BARE)
