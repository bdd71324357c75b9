"""The frame that impressions are compared in: a part of the reference photo, and other photos taken into it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from retrieval.impressions.registration import ImpressionMap, bend_impression, ink_of, register_impression, start_map
from retrieval.impressions.residual import agreeing_region

MOST_SIDE = 1600
"""Pixels of the longer side of a frame, at most."""
_MARGIN = 0.03  # of the longer side of a region, that a frame shows around it
_GROWN = 0.01  # of the longer side of a region: lines end a little beyond the features that match
_AROUND = 24  # pixels of a photo around what is taken into the frame
_LEAST_SIDE = 64
_ALIKE = 0.1  # least correlation of ink that is registered


class NotComparable(CairnError):
    """Photos that cannot be brought into one frame."""


@dataclass(frozen=True)
class ReadPhoto:
    """A photo as it was read, and the size of its upright original."""

    pixels: NDArray[np.uint8]  # (H, W, 3) uint8: RGB
    # pixels of the upright original
    width: int
    height: int

    @property
    def reading(self) -> NDArray[np.float64]:
        """Takes pixels (3, 3) of the original to those that were read."""
        across, down = self.pixels.shape[1] / self.width, self.pixels.shape[0] / self.height
        return np.array([[across, 0, (across - 1) / 2], [0, down, (down - 1) / 2], [0, 0, 1]])


@dataclass(frozen=True, eq=False)
class Frame:
    """A part of the reference photo in which impressions are compared."""

    box: tuple[float, float, float, float]  # x0, y0, x1, y1 in pixels of the reference's upright original
    size: tuple[int, int]  # width and height, pixels

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """Takes pixels of the frame to pixels of the reference's upright original."""
        x0, y0, x1, y1 = self.box
        across, down = (x1 - x0) / self.size[0], (y1 - y0) / self.size[1]
        return np.array([[across, 0, x0 + across / 2 - 0.5], [0, down, y0 + down / 2 - 0.5], [0, 0, 1]])

    def mask(self, outline: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Pixels (H, W) of the frame within a convex outline (K, 2) in pixels of the original, grown a little."""
        corners = cv2.perspectiveTransform(np.asarray(outline, np.float64)[None], np.linalg.inv(self.matrix))[0]
        found = np.zeros(self.size[::-1], np.uint8)
        cv2.fillConvexPoly(found, np.rint(corners * 16).astype(np.int32), 1, shift=4)
        grown = 2 * round(_GROWN * max(self.size)) + 1
        return np.asarray(cv2.dilate(found, np.ones((grown, grown), np.uint8)) > 0)


@dataclass(frozen=True, eq=False)
class AlignedImpression:
    """A photo in the frame."""

    pixels: NDArray[np.uint8]  # (H, W, 3) uint8: RGB; white outside of the photo
    ink: NDArray[np.float32]  # (H, W) float32: see `ink_of`
    region: NDArray[np.bool_]  # (H, W): what is compared: what both it and the reference show of the block
    homography: NDArray[np.float64]  # (3, 3) float64: from pixels of the frame to pixels of its upright original
    bend: float  # pixels of the frame by which paper that stretched or curved is shifted beyond that, at most


def outline_of(ellipses: NDArray[np.floating]) -> NDArray[np.float64]:
    """Convex hull (K, 2) of regions (N, 5), each twice as large: x, y, a, b, c as in `Match`."""
    places, (a, b, c) = ellipses[:, :2].astype(np.float64), ellipses[:, 2:].T.astype(np.float64)
    halves = 2 * np.sqrt(np.abs(np.stack([c, a], 1) / (a * c - b * b)[:, None]))
    corners = [places + halves * sign for sign in ([-1, -1], [1, -1], [1, 1], [-1, 1])]
    return np.asarray(cv2.convexHull(np.concatenate(corners).astype(np.float32))[:, 0], np.float64)


def frame_around(
    outlines: list[NDArray[np.float64]], reference: ReadPhoto, box: tuple[float, float, float, float] | None = None
) -> Frame:
    """Choose the frame around all that is compared in the reference, with a margin, or take a box (x0, y0, x1, y1) as
    it is.

    `outlines` (K, 2): in pixels of the reference's original. `reference`: it bounds the frame, and has as many pixels
    at least. Raises NotComparable where the frame would be next to nothing.
    """
    points = np.concatenate(outlines) if box is None else np.reshape(box, (2, 2))
    low, high = points.min(axis=0), points.max(axis=0)
    margin = _MARGIN * float((high - low).max()) if box is None else 0.0
    low = np.maximum(np.floor(low - margin), 0)
    high = np.minimum(np.ceil(high + margin), [reference.width, reference.height])
    scale = np.diag(reference.reading)[:2]
    sides = (high - low) * scale
    if min(sides) < _LEAST_SIDE:
        raise NotComparable("What is to be compared is too small: give a larger box, or a larger photo.")
    width, height = (max(1, round(float(side))) for side in sides * min(1.0, MOST_SIDE / float(sides.max())))
    x0, y0, x1, y1 = (float(value) for value in (*low, *high))
    return Frame((x0, y0, x1, y1), (width, height))


def align_reference(frame: Frame, reference: ReadPhoto) -> AlignedImpression:
    """Take the reference itself into the frame."""
    pixels, ink, _ = _taken(reference, start_map(reference.reading @ frame.matrix, frame.size))
    everywhere = np.ones(ink.shape, bool)
    return AlignedImpression(pixels, ink, everywhere, frame.matrix, 0.0)


def align_impression(
    frame: Frame,
    reference: AlignedImpression,
    photo: ReadPhoto,
    homography: NDArray[np.floating],
    region: NDArray[np.bool_],
    *,
    narrow: bool = True,
) -> AlignedImpression | None:
    """Take a photo into the frame, by its match with the reference and then by its pixels; None where its ink is not
    that of the reference.

    `homography` (3, 3): from pixels of the reference's original to those of the photo's. `region` (H, W): what both
    have in common, in the frame. `narrow`: narrow that to where their ink agrees, see `agreeing_region`.
    """
    start = start_map(photo.reading @ homography @ frame.matrix, frame.size)
    places = start.places[region]
    if not np.isfinite(places).all():  # a part would lie behind the camera
        return None
    low = np.clip(np.floor(places.min(axis=0)) - _AROUND, 0, None).astype(int) if len(places) else np.zeros(2, int)
    high = np.ceil(places.max(axis=0)).astype(int) + _AROUND if len(places) else low
    part = photo.pixels[low[1] : max(high[1], 0), low[0] : max(high[0], 0)]
    if min(part.shape[:2]) < _LEAST_SIDE:
        return None
    shift = np.array([[1, 0, -low[0]], [0, 1, -low[1]], [0, 0, 1]], np.float64)
    ink = ink_of(np.asarray(cv2.cvtColor(part, cv2.COLOR_RGB2GRAY), np.float32))
    found = register_impression(reference.ink, ink, start_map(shift @ start.homography, frame.size), region)
    if narrow:
        region = agreeing_region(reference.ink, found.apply(ink), region)
        found = bend_impression(reference.ink, ink, found, region)
    if found.correlation < _ALIKE:
        return None
    whole = ImpressionMap(np.linalg.inv(shift) @ found.homography, found.bend, found.size, found.correlation)
    pixels, own, seen = _taken(photo, whole)
    original = np.linalg.inv(photo.reading) @ whole.homography
    return AlignedImpression(pixels, own, region & seen, original / original[2, 2], found.shift)


def trim_frame(frame: Frame, aligned: list[AlignedImpression]) -> tuple[Frame, list[AlignedImpression]]:
    """Trim a frame to what is compared of the photos after the first, which is the reference, with a margin."""
    rows, columns = np.nonzero(np.logical_or.reduce([one.region for one in aligned[1:]]))
    if not len(rows):
        return frame, aligned
    margin = round(_MARGIN * max(np.ptp(rows), np.ptp(columns)))
    top, left = max(0, int(rows.min()) - margin), max(0, int(columns.min()) - margin)
    bottom, right = (
        min(int(some.max()) + 1 + margin, side) for some, side in ((rows, frame.size[1]), (columns, frame.size[0]))
    )
    part = slice(top, bottom), slice(left, right)
    corners = cv2.perspectiveTransform(np.array([[[left - 0.5, top - 0.5], [right - 0.5, bottom - 0.5]]]), frame.matrix)
    x0, y0, x1, y1 = (float(value) + 0.5 for value in corners.ravel())
    shift = np.array([[1, 0, left], [0, 1, top], [0, 0, 1]], np.float64)
    trimmed = [
        AlignedImpression(one.pixels[part], one.ink[part], one.region[part], one.homography @ shift, one.bend)
        for one in aligned
    ]
    return Frame((x0, y0, x1, y1), (right - left, bottom - top)), trimmed


def _taken(photo: ReadPhoto, way: ImpressionMap) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_]]:
    """A photo in the frame: its pixels, its ink, and where it is seen."""
    pixels: NDArray[Any] = way.apply(photo.pixels, 255)
    seen = way.apply(np.full(photo.pixels.shape[:2], 255, np.uint8)) > 250
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    return pixels, ink_of(np.where(seen, grey, np.median(grey[seen]) if seen.any() else 255)), seen
