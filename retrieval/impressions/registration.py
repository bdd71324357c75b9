"""Two impressions in one frame: the homography of a match, refined on the pixels, and what bent the paper.

A homography holds for flat paper. Paper stretches as it dries, and pages curve: what is left by the homography is taken
up by polynomials of the third degree, which follow a page and no single line.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

_LEVELS = (180, 360, 720)  # longer sides in pixels at which the homography is refined, one after the other
_STEPS = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 40, 1e-5)
_BLUR = 5  # pixels, side of the filter while the homography is refined
_DEGREE = 3
_TERMS = [(down, across) for down in range(_DEGREE + 1) for across in range(_DEGREE + 1 - down)]
_BENDS = ((3.0, 6), (1.2, 6))  # blur in pixels, and Gauss-Newton steps with it, while the polynomials are fitted
_MOST_SHIFT = 0.03  # of the frame's longer side: a polynomial that bends more has lost its way
_ROBUST = 0.25  # of ink: a pixel that differs by more counts less, as at a break
_FEWEST, _MOST = 500, 60_000  # pixels that polynomials are fitted to
_CLOSE = 0.06  # of the longer side: paper and ink are the lightest and darkest within so many pixels
_LEAST_CONTRAST = 0.5  # share of the contrast of inked parts: where there is no ink, the paper's grain has less


def ink_of(grey: NDArray[np.floating]) -> NDArray[np.float32]:
    """Take a photo's grey values (H, W), 0..255, to its ink whatever the light and the exposure: float32, 0 where the
    paper is as light as the paper around it, 1 where it is as dark as ink.
    """
    smooth = cv2.GaussianBlur(np.asarray(grey, np.float32), (0, 0), 0.7)
    height, width = smooth.shape
    coarse = max(1, -(-width // 4)), max(1, -(-height // 4))  # lightest and darkest of 4 by 4 pixels
    reach = max(3, round(_CLOSE * max(coarse))) | 1
    window = np.ones((reach, reach), np.uint8)
    paper, ink = (
        cv2.resize(
            cv2.GaussianBlur(
                near(cv2.resize(near(smooth, np.ones((4, 4))), coarse, interpolation=cv2.INTER_NEAREST), window),
                (0, 0),
                reach / 2,
            ),
            (width, height),
        )
        for near in (cv2.dilate, cv2.erode)
    )
    contrast = paper - ink
    least = _LEAST_CONTRAST * float(np.percentile(contrast, 90))
    return np.asarray(np.clip((paper - smooth) / np.maximum(contrast, max(least, 1.0)), 0, 1), np.float32)


@dataclass(frozen=True, eq=False)
class ImpressionMap:
    """Where each pixel of a frame lies in another photo."""

    homography: NDArray[np.float64]  # (3, 3) float64: from pixels of the frame to pixels of the photo
    # (2, 4, 4) float64: polynomials that shift the pixels of the frame first, along x and y, in pixels: coefficients of
    # the products of Legendre polynomials down and across the frame, where each goes from -1 to 1
    bend: NDArray[np.float64]
    size: tuple[int, int]  # width and height of the frame
    correlation: float = 0.0  # of the ink of both where they are compared, -1 to 1

    @cached_property
    def places(self) -> NDArray[np.float32]:
        """Pixels of the photo (H, W, 2) for each of the frame."""
        width, height = self.size
        shifted = _shifts(self.bend, self.size)
        shifted[..., 0] += np.arange(width, dtype=np.float32)
        shifted[..., 1] += np.arange(height, dtype=np.float32)[:, None]
        return np.asarray(cv2.perspectiveTransform(shifted, self.homography))

    @property
    def shift(self) -> float:
        """Largest shift by the polynomials, pixels of the frame."""
        return float(np.linalg.norm(_shifts(self.bend, (33, 33)), axis=2).max())

    def apply(self, photo: NDArray[Any], outside: float = 0) -> NDArray[Any]:
        """Take a photo (H, W) or (H, W, 3) into the frame; what lies outside of it has one value."""
        scale = np.sqrt(abs(np.linalg.det(self.homography[:2, :2] - np.outer(self._middle, self.homography[2, :2]))))
        if scale > 1.4:  # the photo is finer than the frame
            photo = cv2.GaussianBlur(photo, (0, 0), 0.4 * scale)
        # OpenCV takes None for the second map; its types do not say so.
        taken = cv2.remap(photo, self.places, None, cv2.INTER_CUBIC, borderValue=(outside,) * 3)  # type: ignore[call-overload]
        return np.asarray(taken, photo.dtype)

    @property
    def _middle(self) -> NDArray[np.float64]:
        centre = np.array([[self.size]], np.float64) / 2
        return np.asarray(cv2.perspectiveTransform(centre, self.homography)[0, 0])


def start_map(homography: NDArray[np.floating], size: tuple[int, int]) -> ImpressionMap:
    """Take a homography from a frame of some width and height to a photo as it is."""
    matrix = np.asarray(homography, np.float64)
    return ImpressionMap(matrix / matrix[2, 2], np.zeros((2, _DEGREE + 1, _DEGREE + 1)), size)


def register_impression(
    reference: NDArray[np.float32],
    other: NDArray[np.float32],
    start: ImpressionMap,
    region: NDArray[np.bool_] | None = None,
) -> ImpressionMap:
    """Refine a map between two impressions on their pixels: `reference` (H, W) and `other` (H', W') float32, ink, see
    `ink_of`.

    The homography is refined by the enhanced correlation coefficient at increasing resolution (Evangelidis and
    Psarakis, *Parametric image alignment using ECC maximization*, 2008), then polynomials are fitted by Gauss-Newton
    steps in which pixels that differ, as at breaks, count less. Each step is kept only where the two agree better.
    `region` (H, W): pixels of the frame that are compared; by default all. `start`: from the frame to the other photo,
    as the match has it.
    """
    inside = np.ones(reference.shape, bool) if region is None else region
    best = _scored(start, reference, other, inside)
    for side in _LEVELS:
        step = _ecc(reference, best.apply(other), inside, min(1.0, side / max(reference.shape)))
        if step is not None:
            moved = best.homography @ step
            candidate = ImpressionMap(moved / moved[2, 2], best.bend, best.size)
            best = _better(best, _scored(candidate, reference, other, inside))
    return bend_impression(reference, other, best, inside)


def bend_impression(
    reference: NDArray[np.float32], other: NDArray[np.float32], start: ImpressionMap, region: NDArray[np.bool_]
) -> ImpressionMap:
    """Refine the polynomials of a map alone; see `register_impression`. `start`: right to some pixels."""
    best = _scored(start, reference, other, region)
    for blur, steps in _BENDS:
        for _ in range(steps):
            bend = best.bend + _bend_step(reference, best.apply(other), region, blur)
            candidate = _scored(ImpressionMap(best.homography, bend, best.size), reference, other, region)
            if candidate.shift > _MOST_SHIFT * max(best.size) or candidate.correlation < best.correlation + 1e-5:
                break
            best = candidate
    return best


def _better(one: ImpressionMap, other: ImpressionMap) -> ImpressionMap:
    return other if other.correlation > one.correlation else one


def _scored(
    found: ImpressionMap, reference: NDArray[np.float32], other: NDArray[np.float32], inside: NDArray[np.bool_]
) -> ImpressionMap:
    """A map with the correlation of what it brings together, blurred by a pixel."""
    first, second = (cv2.GaussianBlur(one, (0, 0), 1.0)[inside] for one in (reference, found.apply(other)))
    spread = float(first.std() * second.std())
    correlation = float(((first - first.mean()) * (second - second.mean())).mean()) / spread if spread > 1e-6 else 0.0
    return ImpressionMap(found.homography, found.bend, found.size, correlation)


def _ecc(
    reference: NDArray[np.float32], warped: NDArray[np.float32], inside: NDArray[np.bool_], scale: float
) -> NDArray[np.float64] | None:
    """Homography (3, 3) from the frame to the warped photo that ECC finds at some scale; None where it finds none."""
    small = [cv2.resize(one, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA) for one in (reference, warped)]
    mask = cv2.resize(inside.astype(np.uint8), small[0].shape[::-1], interpolation=cv2.INTER_NEAREST)
    try:
        _, found = cv2.findTransformECC(
            small[0], small[1], np.eye(3, dtype=np.float32), cv2.MOTION_HOMOGRAPHY, _STEPS, mask, _BLUR
        )
    except cv2.error:  # it does not converge, as of pictures that have nothing in common
        return None
    across, down = np.divide(small[0].shape[::-1], reference.shape[::-1])
    into = np.array([[across, 0, (across - 1) / 2], [0, down, (down - 1) / 2], [0, 0, 1]])
    return np.asarray(np.linalg.inv(into) @ found.astype(np.float64) @ into)


def _bend_step(
    reference: NDArray[np.float32], warped: NDArray[np.float32], inside: NDArray[np.bool_], blur: float
) -> NDArray[np.float64]:
    """One Gauss-Newton step (2, 4, 4) of the polynomials, on what differs between the frame and the warped photo."""
    step = np.zeros((2, _DEGREE + 1, _DEGREE + 1))
    one, other = (cv2.GaussianBlur(picture, (0, 0), blur) for picture in (reference, warped))
    mean = (one + other) / 2  # whose slope is right for both
    across, down = (cv2.Sobel(mean, cv2.CV_32F, *way, ksize=3, scale=1 / 8) for way in ((1, 0), (0, 1)))
    slope = np.where(inside, np.hypot(across, down), 0)
    rows, columns = np.nonzero(slope > 0.2 * float(slope.max()))
    if len(rows) < _FEWEST:
        return step
    every = -(-len(rows) // _MOST)
    rows, columns = rows[::every], columns[::every]
    difference = (one - other)[rows, columns]
    weights = 1 / (1 + (difference / _ROBUST) ** 2)
    vertical, horizontal = (_legendre(side) for side in one.shape)
    terms = np.stack([vertical[rows, down] * horizontal[columns, along] for down, along in _TERMS], 1)
    slopes = np.hstack([terms * across[rows, columns][:, None], terms * down[rows, columns][:, None]])
    weighted = slopes * weights[:, None]
    normal = (weighted.T @ slopes).astype(np.float64)
    normal[np.diag_indices_from(normal)] += 1e-4 * np.trace(normal) / len(normal)
    found = np.linalg.solve(normal, (weighted.T @ difference).astype(np.float64)).reshape(2, -1)
    step[:, *np.transpose(_TERMS)] = found
    return step


def _shifts(bend: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.float32]:
    """Shifts (H, W, 2) of the pixels of a frame by the polynomials."""
    width, height = size
    return np.stack([_legendre(height) @ one.astype(np.float32) @ _legendre(width).T for one in bend], -1)


@lru_cache(maxsize=8)
def _legendre(side: int) -> NDArray[np.float32]:
    """Legendre polynomials (side, 4), from -1 to 1 over a side."""
    return np.polynomial.legendre.legvander(np.linspace(-1, 1, side), _DEGREE).astype(np.float32)
