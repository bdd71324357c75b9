"""Regions as shapes: sizes, outlines, and mapping by homographies."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from index.errors import CairnError
from retrieval.library.parts.arguments import as_array, checked_count, checked_regions
from retrieval.regions.overlap import mean_radii, transfer_ellipses


def radii(regions: ArrayLike) -> NDArray[np.float64]:
    """Return the sizes of regions: the geometric mean of the two semi-axes.

    Parameters
    ----------
    regions : array_like, shape (N, 5)
        Rows x, y, a, b, c, as `cairn.detect` gives them.

    Returns
    -------
    ndarray, shape (N,), float64
        Pixels.

    Raises
    ------
    CairnError
        A row is no ellipse.

    Examples
    --------
    >>> import cairn
    >>> cairn.radii([[10, 10, 1 / 16, 0, 1 / 4]]).round(3)
    array([2.828])
    """
    return mean_radii(checked_regions(regions).astype(np.float64))


def outlines(regions: ArrayLike, scale: float = 1.0, points: int = 41) -> NDArray[np.float64]:
    """Return the outlines of regions, for drawing.

    Parameters
    ----------
    regions : array_like, shape (N, 5)
        Rows x, y, a, b, c, as from `cairn.detect`.
    scale : float
        Factor of size: patches are larger than detected regions.
    points : int
        Points of an outline, at least 4.

    Returns
    -------
    ndarray, shape (N, points, 2), float64
        x and y in pixels; the last point of each is its first. Matplotlib's ``LineCollection`` draws them.

    Raises
    ------
    CairnError
        A row is no ellipse, or an outline has too few points.

    Examples
    --------
    >>> import cairn
    >>> cairn.outlines([[10, 10, 1 / 16, 0, 1 / 4]], points=5).round(3)[0].tolist()
    [[14.0, 10.0], [10.0, 12.0], [6.0, 10.0], [10.0, 8.0], [14.0, 10.0]]
    """
    x, y, a, b, c = checked_regions(regions).astype(np.float64).T
    angles = np.linspace(0, 2 * np.pi, checked_count(points, "points", 4))[:, None]
    # The ellipse is the unit circle, mapped by the inverse of the triangular root of its matrix.
    across = np.cos(angles) / np.sqrt(a - b * b / c)
    down = (np.sin(angles) - across * b / np.sqrt(c)) / np.sqrt(c)
    return np.stack([x + scale * across, y + scale * down], axis=-1).swapaxes(0, 1)


def map_regions(regions: ArrayLike, homography: ArrayLike) -> NDArray[np.float64]:
    """Map regions to another image: by the affine approximation of the homography at each centre.

    Parameters
    ----------
    regions : array_like, shape (N, 5)
        Rows x, y, a, b, c, as from `cairn.detect`.
    homography : array_like, shape (3, 3)
        Maps pixels of the regions' image to pixels of the other.

    Returns
    -------
    ndarray, shape (N, 5), float64
        Rows x, y, a, b, c; NaN if a centre is mapped to infinity.

    Raises
    ------
    CairnError
        A row is not an ellipse, or the homography is invalid.

    Examples
    --------
    >>> import cairn
    >>> cairn.map_regions([[10, 10, 1 / 16, 0, 1 / 4]], [[2, 0, 1], [0, 2, 0], [0, 0, 1]]).tolist()
    [[21.0, 20.0, 0.015625, 0.0, 0.0625]]
    """
    matrix = as_array(homography, "homography")
    if matrix.shape != (3, 3) or matrix.dtype.kind not in "fiu" or not np.isfinite(matrix).all():
        raise CairnError(f"A homography is a matrix (3, 3) of numbers, not {matrix.dtype} of shape {matrix.shape}.")
    return transfer_ellipses(checked_regions(regions), matrix)
