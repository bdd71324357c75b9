"""Ellipses, frames and maps of the plane: arrays in, arrays out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


def ellipses_of_shapes(centres: NDArray[np.float64], shapes: NDArray[np.float64]) -> NDArray[np.float32]:
    """Convert regions from centres (N, 2) and maps (N, 2, 2) of the unit circle to rows x, y, a, b, c of a(u-x)² +
    2b(u-x)(v-y) + c(v-y)² = 1, (N, 5) float32.
    """
    p, q = shapes[:, 0, 0], shapes[:, 0, 1]
    r, s = shapes[:, 1, 0], shapes[:, 1, 1]
    # Covariance of the region, then its inverse.
    xx, xy, yy = p * p + q * q, p * r + q * s, r * r + s * s
    determinant = xx * yy - xy * xy
    rows = np.stack([centres[:, 0], centres[:, 1], yy / determinant, -xy / determinant, xx / determinant], axis=1)
    return rows.astype(np.float32)


def upright_frames(ellipses: NDArray[np.floating], turn: float = 0.0) -> NDArray[np.float64]:
    """Frames (N, 2, 2) of ellipses (N, 5), maps from the unit circle, under the assumption that "down" is known: an
    ellipse fixes its frame up to a rotation; the lower-triangular one is the Cholesky factor of its covariance
    (Perdoch, Chum & Matas, CVPR 2009). `turn`: radians by which the image's content is turned clockwise; for 0 frames
    are lower triangular with a positive diagonal.
    """
    a, b, c = (ellipses[:, column].astype(np.float64) for column in (2, 3, 4))
    determinant = a * c - b * b
    xx, xy, yy = c / determinant, -b / determinant, a / determinant
    cosine, sine = np.cos(turn), np.sin(turn)
    if turn:
        # Covariance in axes that are turned back: Rᵀ Σ R.
        turned_xx = cosine * cosine * xx + 2 * cosine * sine * xy + sine * sine * yy
        turned_xy = cosine * sine * (yy - xx) + (cosine * cosine - sine * sine) * xy
        yy = sine * sine * xx - 2 * cosine * sine * xy + cosine * cosine * yy
        xx, xy = turned_xx, turned_xy
    first = np.sqrt(xx)
    frames = np.zeros((len(ellipses), 2, 2))
    frames[:, 0, 0] = first
    frames[:, 1, 0] = xy / first
    frames[:, 1, 1] = np.sqrt(np.maximum(yy - (xy / first) ** 2, 1e-12))
    if turn:
        frames = np.array([[cosine, -sine], [sine, cosine]]) @ frames
    return frames


@dataclass(frozen=True)
class Frames:
    """Features of one photo as verification sees them, in units of the photo's longer side."""

    centres: NDArray[np.float32]  # (N, 2) float32
    linear: NDArray[np.float32]  # (N, 2, 2) float32, maps from the unit circle to the region

    def at(self, rows: NDArray[np.integer]) -> "Frames":
        """Select rows, in the given order."""
        return Frames(self.centres.take(rows, axis=0), self.linear.take(rows, axis=0))

    def enlarged(self, factor: float) -> "Frames":
        """The same in shorter units, by a factor."""
        if factor == 1:
            return self
        return Frames(self.centres * np.float32(factor), self.linear * np.float32(factor))

    @property
    def plain(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Centres and frames for compiled functions: float32 in C order."""
        return np.ascontiguousarray(self.centres, np.float32), np.ascontiguousarray(self.linear, np.float32)

    def ellipses(self, side: float) -> NDArray[np.float32]:
        """The regions as ellipse rows (N, 5), pixels of the upright original with this longer side."""
        return ellipses_of_shapes(self.centres.astype(np.float64) * side - 0.5, self.linear.astype(np.float64) * side)


def fit_affine(source: NDArray[np.floating], target: NDArray[np.floating]) -> NDArray[np.float64] | None:
    """Least-squares affine map (2, 3) from points (N, 2) to points (N, 2).

    None if the points do not determine one: fewer than three, or all (nearly) on a line.
    """
    if len(source) < 3:
        return None
    middle = source.mean(axis=0, dtype=np.float64)
    centred = source - middle
    spread = centred.T @ centred
    if np.linalg.det(spread) < 1e-4 * max(np.trace(spread), 1e-12) ** 2:
        return None
    goal = target.mean(axis=0, dtype=np.float64)
    linear = np.linalg.solve(spread, centred.T @ (target - goal)).T
    return np.column_stack([linear, goal - linear @ middle])


def rotations(angles: NDArray[np.number]) -> NDArray[np.floating]:
    """Rotation matrices (N, 2, 2) that turn the x axis by angles towards y."""
    cosine, sine = np.cos(angles), np.sin(angles)
    return np.stack([np.stack([cosine, -sine], -1), np.stack([sine, cosine], -1)], -2)


def into_sides(side: float) -> NDArray[np.float64]:
    """Matrix (3, 3) from pixels, the centre of the top-left one at (0, 0), to units of the longer side from its corner.

    Verification works in these units; the other way is `out_of_sides`.
    """
    return np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, side]]) / side


def out_of_sides(side: float) -> NDArray[np.float64]:
    """Matrix (3, 3) from units of the longer side to pixels: see `into_sides`."""
    return np.array([[side, 0, -0.5], [0, side, -0.5], [0, 0, 1]])
