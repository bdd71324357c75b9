"""Layout of drawings: two photos side by side, ellipses by their axes, distinct colours."""

import colorsys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.library.display.pictures import Box, Picture

OUTLINE = "#e03131"
"""Colour of boxes and regions: it stands out from most photos, on light and on dark pages."""

_SMALLEST = 2.5  # smallest half axis of a drawn ellipse, in units of the drawing


@dataclass(frozen=True)
class DrawnPhoto:
    """A photo in a drawing."""

    x: float  # its top left corner, in units of the drawing
    y: float
    width: float  # how large it is drawn
    height: float
    scale: tuple[float, float]  # units of the drawing to one pixel of the original, along x and y

    def place(self, points: NDArray[np.floating]) -> NDArray[np.float64]:
        """Map points (N, 2) of the original, whose first pixel's centre is (0, 0), to the drawing."""
        return np.asarray((np.asarray(points, np.float64) + 0.5) * self.scale + (self.x, self.y))


def fitted(picture: Picture, across: float, down: float) -> tuple[float, float]:
    """Width and height of a photo that fills a space of this width and height; at least one unit each."""
    width, height = picture.size
    factor = min(across / width, down / height)
    return max(1.0, width * factor), max(1.0, height * factor)


def side_by_side(
    query: Picture, photo: Picture, side: float, gap: float
) -> tuple[DrawnPhoto, DrawnPhoto, float, float]:
    """Place two photos side by side, each scaled to the same longer side, and return the drawing's size."""
    sizes = fitted(query, side, side), fitted(photo, side, side)
    height = max(size[1] for size in sizes)
    placed, x = [], 0.0
    for picture, (wide, high) in zip((query, photo), sizes, strict=True):
        scale = wide / picture.size[0], high / picture.size[1]
        placed.append(DrawnPhoto(x, (height - high) / 2, wide, high, scale))
        x += wide + gap
    return placed[0], placed[1], x - gap, height


def box_corners(box: Box) -> NDArray[np.float64]:
    """Corners (4, 2) of a box, clockwise from the top left one."""
    x0, y0, x1, y1 = box
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], np.float64)


def ellipse_axes(
    ellipses: NDArray[np.floating], placed: DrawnPhoto
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Map regions (N, 5) of a photo, pixels of the original, to ellipses in a drawing.

    Returns centres (N, 2), half axes (N, 2), the longer first and both large enough to be visible, and angles (N,) of
    the longer axes, degrees from x towards y.
    """
    rows = np.asarray(ellipses, np.float64).reshape(-1, 5)
    across, down = placed.scale
    forms = np.empty((len(rows), 2, 2))
    forms[:, 0, 0], forms[:, 1, 1] = rows[:, 2] / across**2, rows[:, 4] / down**2
    forms[:, 0, 1] = forms[:, 1, 0] = rows[:, 3] / (across * down)
    values, axes = np.linalg.eigh(forms)  # ascending: the first is the longer axis
    halves = np.maximum(1 / np.sqrt(np.maximum(values, 1e-12)), _SMALLEST)
    return placed.place(rows[:, :2]), halves, np.degrees(np.arctan2(axes[:, 1, 0], axes[:, 0, 0]))


def some_rows(number: int, most: int) -> NDArray[np.int64]:
    """A sample of rows, evenly spread."""
    return np.linspace(0, max(number - 1, 0), min(number, most)).astype(np.int64)


def hues(number: int) -> list[str]:
    """Distinct colours, as #rrggbb."""
    colours = [colorsys.hsv_to_rgb(0.83 * place / max(number - 1, 1), 0.75, 0.92) for place in range(number)]
    return ["#" + "".join(f"{round(255 * part):02x}" for part in colour) for colour in colours]
