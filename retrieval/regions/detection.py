"""Affine-covariant regions: scale-space extrema, adapted to the shape of the image around them."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrieval.regions.affine import adapt_shapes
from retrieval.regions.detectors.registry import find_detector
from retrieval.regions.geometry import ellipses_of_shapes
from retrieval.regions.options import RegionOptions
from retrieval.regions.scalespace import ScaleSpace, build_scale_space, find_extrema

_IN_A_CELL = 8  # points wanted in a cell of `spread_choice`, in the mean


@dataclass(frozen=True)
class Regions:
    """Detected regions of one image, the strongest first."""

    # (N, 5) x, y, a, b, c of a(u-x)² + 2b(u-x)(v-y) + c(v-y)² = 1, pixels of the image.
    ellipses: NDArray[np.float32]
    responses: NDArray[np.float32]  # (N,) float32, absolute response of the detector
    space: ScaleSpace  # the scale space they were found in

    def __len__(self) -> int:
        return len(self.ellipses)

    def where(self, mask: NDArray[np.bool_]) -> "Regions":
        """Keep some of the regions."""
        return Regions(self.ellipses[mask], self.responses[mask], self.space)


def detect_regions(
    grey: NDArray[np.float32],
    options: RegionOptions | None = None,
    within: tuple[float, float, float, float] | None = None,
    outside: NDArray[np.bool_] | None = None,
) -> Regions:
    """Detect affine-covariant regions in a grey image (H, W), by decreasing response; empty if it is smaller than 16
    pixels. All detectors share the affine adaptation of Mikolajczyk & Schmid, IJCV 2004; their differences are in
    `detectors`. Regions with their centres in `outside` (H, W) are dropped, and not counted by a limit.

    `within`: x0, y0, x1, y1: only regions with their centre in this box, its border included, are taken. They are the
    same as without it, except that `RegionOptions.max_features` counts those in the box.
    """
    options = options or RegionOptions()
    detector = find_detector(options.detector)
    space = build_scale_space(np.ascontiguousarray(grey, np.float32), detector.space)
    threshold = detector.threshold if options.threshold is None else options.threshold
    edge_limit = (options.edge_ratio + 1) ** 2 / options.edge_ratio

    rows = []
    for octave in space.octaves:
        responses = octave.levels if detector.differences else detector.respond(octave)
        extrema = find_extrema(responses, threshold, differences=detector.differences)
        sigma = octave.sigmas[0] * 2.0 ** (extrema.level / detector.space.levels)
        row = np.stack(
            [
                extrema.x * octave.step + octave.offset,
                extrema.y * octave.step + octave.offset,
                sigma,
                np.abs(extrema.value),
            ]
        )
        rows.append(row[:, extrema.edge <= edge_limit])
    peaks = np.concatenate(rows, axis=1) if rows else np.zeros((4, 0))
    if outside is not None:
        peaks = peaks[:, ~in_mask(peaks[:2].T, outside)]
    peaks = peaks[:, np.lexsort((peaks[0], peaks[1], -peaks[3]))]
    if options.max_regions:
        peaks = peaks[:, : options.max_regions]
    if within is not None:
        x0, y0, x1, y1 = within
        peaks = peaks[:, (peaks[0] >= x0) & (peaks[0] <= x1) & (peaks[1] >= y0) & (peaks[1] <= y1)]
    if options.max_features:
        peaks = peaks[:, spread_choice(peaks[:2].T, options.max_features)]

    centres, sigma, response = peaks[:2].T, peaks[2], peaks[3]
    shapes, kept = adapt_shapes(space, centres, sigma, options.adaptation)
    ellipses = ellipses_of_shapes(centres[kept], shapes[kept] * detector.radius)
    return Regions(ellipses, response[kept].astype(np.float32), space)


def mostly_in(
    ellipses: NDArray[np.float32], mask: NDArray[np.bool_], scale: float, part: float = 0.5
) -> NDArray[np.bool_]:
    """Return which regions (N, 5) lie in a mask (H, W) by more than a part, by the enlarged box around each."""
    import cv2

    a, b, c = ellipses[:, 2:].T.astype(np.float64)
    half = scale * np.sqrt(np.stack([c, a]) / np.maximum(a * c - b * b, 1e-12))
    limits = np.array(mask.shape[::-1], np.float64)[:, None]
    low = np.clip(np.rint(ellipses[:, :2].T - half), 0, limits - 1).astype(np.int64)
    high = np.clip(np.rint(ellipses[:, :2].T + half) + 1, low + 1, limits).astype(np.int64)
    sums = cv2.integral(mask.astype(np.uint8))
    inside = sums[high[1], high[0]] - sums[low[1], high[0]] - sums[high[1], low[0]] + sums[low[1], low[0]]
    return np.asarray(inside > part * (high - low).prod(axis=0))


def in_mask(points: NDArray[np.floating], mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for which points (N, 2) the nearest pixel lies in a mask (H, W)."""
    x, y = np.rint(points).astype(np.int64).T
    return np.asarray(mask[np.clip(y, 0, mask.shape[0] - 1), np.clip(x, 0, mask.shape[1] - 1)])


def known_regions(
    grey: NDArray[np.float32],
    ellipses: NDArray[np.float32],
    options: RegionOptions | None = None,
    *,
    quick: bool = False,
) -> Regions:
    """Return regions (N, 5) of an image that are known, with the scale space that they are described from.

    The other arguments are those of `detect_regions`; the unknown responses are 0. With `quick`, the
    image is not enlarged for the smallest regions: that takes a third of the time, and their patches differ a little.
    """
    detector = find_detector((options or RegionOptions()).detector)
    sampling = replace(detector.space, double=False) if quick else detector.space
    space = build_scale_space(np.ascontiguousarray(grey, np.float32), sampling, sampled=True)
    return Regions(ellipses, np.zeros(len(ellipses), np.float32), space)


def spread_choice(points: NDArray[np.float64], number: int) -> NDArray[np.int64]:
    """Choose strong points, ascending, that are spread over the image: the box around all is divided into cells, which
    offer their points in turn, the strongest first. `points` (N, 2): the strongest first.
    """
    if len(points) <= number:
        return np.arange(len(points))
    low, high = points.min(axis=0), points.max(axis=0)
    extent = np.maximum(high - low, 1e-6)
    side = max(np.sqrt(extent.prod() * _IN_A_CELL / number), extent.max() / number)
    across, down = ((points - low) / side).astype(np.int64).T
    cells = down * (across.max() + 1) + across
    order = np.argsort(cells, kind="stable")
    begins = np.flatnonzero(np.diff(cells[order], prepend=-1))
    rank = np.empty(len(points), np.int64)
    rank[order] = np.arange(len(points)) - np.repeat(begins, np.diff([*begins, len(points)]))
    return np.sort(np.argsort(rank, kind="stable")[:number])
