"""Pictures of impressions in one frame: an overlay in two colours, what only one has, and broken lines."""

import cv2
import numpy as np
from numpy.typing import NDArray

from retrieval.impressions.frames import AlignedImpression
from retrieval.impressions.residual import ImpressionResidual

FIRST, SECOND = (213, 94, 0), (0, 114, 178)
"""Colours (RGB) of ink that only the first has, and only the second: vermilion and blue, which all eyes tell apart."""
_PALE = 0.25  # of the ink that both have, where what differs is shown


def overlay(first: AlignedImpression, second: AlignedImpression) -> NDArray[np.uint8]:
    """Lay two impressions over each other, RGB: vermilion is ink of the first alone, blue of the second, dark both."""
    seen = np.ones((*first.ink.shape, 3), np.float32)
    for ink, colour in ((first.ink, FIRST), (second.ink, SECOND)):
        seen *= 1 - ink[..., None] * (1 - np.array(colour, np.float32) / 255)
    return np.asarray(np.rint(255 * seen), np.uint8)


def residual_map(
    first: AlignedImpression, second: AlignedImpression, residual: ImpressionResidual
) -> NDArray[np.uint8]:
    """Draw what only one of two impressions has in its colour, common parts in pale grey, others in grey."""
    both = 1 - _PALE * np.maximum(first.ink, second.ink)
    drawn = np.repeat(np.rint(255 * both)[..., None], 3, 2).astype(np.uint8)
    drawn[~(first.region & second.region)] = 225
    for lost, colour in zip(residual.only, (FIRST, SECOND), strict=True):
        drawn[cv2.dilate(lost.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0] = colour
    return drawn


def draw_lines(
    one: AlignedImpression,
    region: NDArray[np.bool_],
    lines: NDArray[np.bool_],
    broken: NDArray[np.floating],
    width: float,
) -> NDArray[np.uint8]:
    """Draw an impression in grey, with the lines (H, W) that are read in blue, and rings of vermilion around places
    (K, 2) where they are broken; what is outside the region (H, W) is darker.
    """
    drawn = np.repeat(np.rint(255 * (1 - 0.5 * one.ink))[..., None], 3, 2).astype(np.uint8)
    drawn[~region] = drawn[~region] // 4 * 3
    drawn[lines] = SECOND
    for x, y in np.rint(broken * 16).astype(int).tolist():
        cv2.circle(drawn, (x, y), round(16 * max(6.0, 3 * width)), FIRST, max(2, round(width / 2)), cv2.LINE_AA, 4)
    return drawn
