"""Locate printed text in a photo, by a sidecar file or by its appearance."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval.metadata.text_regions import TextRegions, find_text_regions
from retrieval.photos.decoding import Photo, read_photo
from retrieval.regions.detection import in_mask


def find_text(path: Path, photo: Photo) -> NDArray[np.bool_]:
    """Mask the printed text of a photo: (H, W) bool of the working image."""
    from retrieval.regions.text_lines import text_mask

    regions = find_text_regions(path)
    return text_mask(photo.grey) if regions is None else mask_of(regions, photo.grey.shape)


class PrintedText:
    """The printed text of a photo, whose file is read at first use."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _found(self) -> tuple[Photo, NDArray[np.bool_]]:
        photo = read_photo(self._path)
        return photo, find_text(self._path, photo)

    def holds(self, points: NDArray[np.floating], part: float = 0.9) -> bool:
        """Whether at least `part` of the points (N, 2), pixels of the upright original, lie in the text."""
        photo, text = self._found
        inside = in_mask(photo.to_working(points), text)
        return bool(len(inside) and inside.mean() >= part)


def mask_of(regions: TextRegions, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Mask regions of text and gaps between lines, but not pictures, in an image (H, W)."""
    import cv2

    mask: NDArray[Any] = np.zeros(shape, np.uint8)
    size = np.array([shape[1], shape[0]])
    heights = []
    for polygon in regions.text:
        corners = np.rint(np.array(polygon) * size).astype(np.int32)
        cv2.fillPoly(mask, [corners], 1)
        heights.append(int(np.ptp(corners[:, 1])))
    if heights:
        side = max(3, min(int(np.median(heights)), max(shape) // 20))
        border = cv2.copyMakeBorder(mask, side, side, side, side, cv2.BORDER_CONSTANT)
        mask = cv2.morphologyEx(border, cv2.MORPH_CLOSE, np.ones((side, side), np.uint8))[side:-side, side:-side].copy()
    for polygon in regions.pictures:
        cv2.fillPoly(mask, [np.rint(np.array(polygon) * size).astype(np.int32)], 0)
    return np.asarray(mask > 0)
