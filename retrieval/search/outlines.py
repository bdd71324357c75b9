"""Outline of a query in a photo that was found; None if it would mislead."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval.search.query import Query

# A map is taken for a chance match if the nearest corner of an object would be this many times nearer to the camera
# than the farthest, or the object seen this many times narrower one way than the other.
DEEPEST = 10.0
NARROWEST = 10.0
LARGEST = 1000.0
"""Area of an outline before it is clipped, in areas of the photo: about thirty times as wide and as high."""
THINNEST = 0.01
"""Width of an outline at its narrowest, as a part of the photo's longer side."""

_EQUAL = 1e-3  # pixels: corners nearer than this are one


def found_region(
    query: Query, matrix: NDArray[np.float64] | None, width: int | None, height: int | None
) -> list[list[float]] | None:
    """Map the outline of a query's box, or of its whole photo, into a photo by a homography. Returns the corners of a
    convex polygon in pixels, clockwise as in the query and clipped to the photo. If all of it lies inside, these are
    the four corners of the box, the top left one first.

    None if there is no homography, or if it is no view of the box: a corner behind the camera or far beyond all others,
    a mirrored, needle-like or immense outline, or one almost entirely outside the photo.
    """
    if matrix is None or not width or not height:
        return None
    x0, y0, x1, y1 = query.view_box
    outline = project_outline(np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], np.float64), matrix @ query.mirroring)
    if outline is None or area(outline) > LARGEST * width * height:
        return None
    clipped = clip_polygon(outline, width, height)
    if narrowest_width(clipped) < THINNEST * max(width, height):
        return None
    return [[round(x, 3), round(y, 3)] for x, y in clipped.tolist()]


def project_outline(corners: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Map the corners (4, 2) of a box to a photo, clockwise on the screen, where y points down; None if the homography
    is no view of the box (see `found_region`).
    """
    # In plain numbers, here and below: NumPy takes ten times as long for so few corners.
    rows, points = matrix.tolist(), corners.tolist()
    mapped = [[a * x + b * y + c for a, b, c in rows] for x, y in points]
    if not all(math.isfinite(value) for corner in mapped for value in corner):
        return None
    depths = [depth * math.copysign(1, mapped[0][2]) for _, _, depth in mapped]
    # A corner behind the camera has a depth of the other sign.
    if min(depths) * DEEPEST <= max(depths):
        return None
    # In front of the camera a convex outline stays convex: it can only be mirrored, or flattened.
    outline = np.array([[u / depth, v / depth] for u, v, depth in mapped])
    middle = [sum(values) / len(points) for values in zip(*points, strict=True)]
    if area(outline) <= 0 or _flattening(rows, middle) > NARROWEST:
        return None
    return outline


def clip_polygon(corners: NDArray[np.float64], width: int, height: int) -> NDArray[np.float64]:
    """Clip a convex polygon (n, 2) to a photo (Sutherland & Hodgman, *Reentrant Polygon Clipping*, CACM 1974): (m, 2)
    in the same order; m is 0 or from 3 to n + 4. `width`, `height`: pixels of the photo, which reaches from -0.5 to
    width - 0.5 and height - 0.5.
    """
    points = corners.tolist()
    for axis, sign, bound in ((0, 1, -0.5), (1, 1, -0.5), (0, -1, 0.5 - width), (1, -1, 0.5 - height)):
        inside = [point[axis] * sign - bound for point in points]  # how far on the right side of this edge of the photo
        if all(distance >= 0 for distance in inside):
            continue
        clipped = []
        for place, point in enumerate(points):
            before, here, there = points[place - 1], inside[place - 1], inside[place]
            if (here < 0) != (there < 0):
                part = here / (here - there)
                crossing = [start + (end - start) * part for start, end in zip(before, point, strict=True)]
                crossing[axis] = sign * bound
                clipped.append(crossing)
            if there >= 0:
                clipped.append(point)
        points = clipped
    apart = [
        point
        for place, point in enumerate(points)
        if max(abs(one - other) for one, other in zip(point, points[place + 1 - len(points)], strict=True)) > _EQUAL
    ]
    return np.array(apart) if len(apart) >= 3 else np.empty((0, 2))


def area(corners: NDArray[np.float64]) -> float:
    """Area of a polygon (n, 2), above 0 if its corners are clockwise on the screen."""
    points = corners.tolist()
    return float(sum(points[place - 1][0] * y - x * points[place - 1][1] for place, (x, y) in enumerate(points))) / 2


def narrowest_width(corners: NDArray[np.float64]) -> float:
    """Width of a convex polygon (n, 2) at its narrowest: between parallel lines, one along a side."""
    if len(corners) < 3:
        return 0.0
    points = corners.tolist()
    widths = []
    for place, (x1, y1) in enumerate(points):
        x0, y0 = points[place - 1]
        across, down = x1 - x0, y1 - y0
        # Twice the area of the triangle over this side to each corner.
        reach = [across * (y - y0) - down * (x - x0) for x, y in points]
        widths.append((max(reach) - min(reach)) / math.hypot(across, down))
    return float(min(widths))


def _flattening(matrix: Sequence[Sequence[float]], point: Sequence[float]) -> float:
    """Ratio of length to width of a small circle around a point, mapped by a homography of three rows of numbers."""
    u, v, w = (row[0] * point[0] + row[1] * point[1] + row[2] for row in matrix)
    (a, b, _), (c, d, _), (e, f, _) = matrix
    a, b, c, d = a * w - u * e, b * w - u * f, c * w - v * e, d * w - v * f  # the Jacobian, but for 1 / w²
    # Its singular values are half the sum and half the difference of these (Blinn, *Consider the Lowly 2x2 Matrix*).
    more, less = math.hypot(a + d, c - b), math.hypot(a - d, b + c)
    least = abs(more - less)
    return (more + less) / least if least > 0 else math.inf
