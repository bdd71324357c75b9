"""Pictures of two impressions in one frame: one over the other in two colours, and what only one of them has."""

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
    """Draw what only one of two impressions has in its colour, what both have in pale grey; what is not compared is
    grey.
    """
    both = 1 - _PALE * np.maximum(first.ink, second.ink)
    drawn = np.repeat(np.rint(255 * both)[..., None], 3, 2).astype(np.uint8)
    drawn[~(first.region & second.region)] = 225
    for lost, colour in zip(residual.only, (FIRST, SECOND), strict=True):
        drawn[cv2.dilate(lost.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0] = colour
    return drawn
