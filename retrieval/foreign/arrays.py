"""Arrays of keypoints and descriptors, of any layout that other programs write, as an `Entry`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from retrieval.foreign.contract import AFFINE, ELLIPSES, ORIENTED, POINTS, SCALES, Entry
from retrieval.regions.geometry import rotations, upright_frames

MOST = 200_000
"""Features of a photo."""

_LARGEST_ANGLE = 4 * np.pi  # radians; more is degrees
_LENGTHS = 1e-3, 1e5  # pixels: of the axes of a region
_THINNEST = 100.0  # largest ratio of axes: thinner ones exceed single precision


def entry_of(
    arrays: dict[str, NDArray[Any]],
    *,
    origin: float = 0.0,
    columns_first: bool = False,
    is_binary: bool = False,
) -> Entry:
    """Make sense of the arrays of one photo: one of ``keypoints`` (N, 2 to 4: x, y, scale, angle in radians),
    ``frames`` (N, 5: x, y, a, b, c of an ellipse; N, 6: x, y, a11, a12, a21, a22) and ``lafs`` (N, 2, 3 or 1, N, 2, 3:
    kornia's); ``descriptors`` (N, D) or (D, N); maybe ``scores`` (N,) and ``image_size`` (width, height). `origin`:
    coordinate of the centre of the top-left pixel.
    """
    with np.errstate(all="ignore"):  # overflowing values are refused
        geometry, centres, linear = _geometry(arrays)
        _check_axes(linear)
    rows = _rows(arrays, len(centres), columns_first)
    scores = None
    if "scores" in arrays:
        scores = _numbers(arrays["scores"], "scores").reshape(-1)
        if len(scores) != len(centres):
            raise CairnError(f"it has {len(scores)} scores for {len(centres)} keypoints")
    return Entry(geometry, centres - origin, linear, rows, scores, _size(arrays), is_binary)


def _geometry(arrays: dict[str, NDArray[Any]]) -> tuple[str, NDArray[np.float64], NDArray[np.float64] | None]:
    """The kind of geometry of keypoints, their centres, and their frames if they have any."""
    present = [name for name in ("lafs", "frames", "keypoints") if name in arrays]
    if not present:
        raise CairnError("it has neither keypoints nor frames nor lafs")
    values = _numbers(arrays[present[0]], present[0])
    if not values.size:
        return POINTS, np.zeros((0, 2)), None
    if present[0] == "lafs":
        values = values[0] if values.ndim == 4 and len(values) == 1 else values
        if values.ndim != 3 or values.shape[1:] != (2, 3):
            raise CairnError(f"its lafs have the shape {values.shape}, and not (N, 2, 3)")
        return AFFINE, values[:, :, 2], _checked(values[:, :, :2])
    widths = (5, 6) if present[0] == "frames" else (2, 3, 4)
    if values.ndim != 2 or values.shape[1] not in widths:
        raise CairnError(
            f"its {present[0]} have the shape {values.shape}, and not (N, {widths[0]}) to (N, {widths[-1]})"
        )
    if len(values) > MOST:
        raise CairnError(f"it has {len(values)} keypoints, which is more than {MOST}")
    centres, rest = values[:, :2], values[:, 2:]
    if present[0] == "frames":
        return (AFFINE, centres, _checked(rest.reshape(-1, 2, 2))) if values.shape[1] == 6 else _ellipses(values)
    if values.shape[1] == 2:
        return POINTS, centres, None
    if not (rest[:, 0] > 0).all():
        raise CairnError("a keypoint has a scale that is not more than 0")
    if values.shape[1] == 3:
        return SCALES, centres, rest[:, :1, None] * np.eye(2)
    if np.abs(rest[:, 1]).max() > _LARGEST_ANGLE:
        raise CairnError("its angles go beyond 4π: give them in radians")
    return ORIENTED, centres, rest[:, :1, None] * rotations(rest[:, 1]).astype(np.float64)


def _ellipses(values: NDArray[np.float64]) -> tuple[str, NDArray[np.float64], NDArray[np.float64]]:
    a, b, c = values[:, 2:].T
    if not ((a > 0) & (a * c - b * b > 0)).all():
        raise CairnError("a frame x, y, a, b, c is no ellipse")
    return ELLIPSES, values[:, :2], upright_frames(values)


def _checked(linear: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return frames (N, 2, 2); raises if one of them is flat or mirrored."""
    if not (np.linalg.det(linear) > 0).all():
        raise CairnError("a frame is flat or mirrored: its determinant is not more than 0")
    return linear


def _check_axes(linear: NDArray[np.float64] | None) -> None:
    if linear is None:
        return
    axes = np.linalg.svd(linear, compute_uv=False) if np.isfinite(linear).all() else np.full((1, 2), np.inf)
    if not ((axes >= _LENGTHS[0]) & (axes <= _LENGTHS[1])).all():
        raise CairnError("the region of a keypoint is far too small or too large: give scales in pixels")
    if (axes[:, 0] > _THINNEST * axes[:, 1]).any():
        raise CairnError(f"the region of a keypoint is more than {_THINNEST:g} times as long as it is wide")


def _rows(arrays: dict[str, NDArray[Any]], count: int, columns_first: bool) -> NDArray[Any]:
    """Descriptors (N, D), checked to be as many as keypoints."""
    if "descriptors" not in arrays:
        raise CairnError("it has no descriptors")
    rows = np.asarray(arrays["descriptors"])
    if rows.ndim == 3 and len(rows) == 1:  # a batch of one picture, as from networks
        rows = rows[0]
    if rows.dtype != np.bool_:
        rows = _checked_numbers(rows, "descriptors")
    if not count and not rows.size:
        return np.zeros((0, 0), rows.dtype)
    if rows.ndim != 2 or count not in rows.shape:
        raise CairnError(f"its descriptors have the shape {rows.shape} where it has {count} keypoints")
    if rows.size and not rows.any():
        raise CairnError("all its descriptors are zeros, which tell no place from another")
    if columns_first if rows.shape == (count, count) else rows.shape[0] != count:
        rows = rows.T
    return rows


def _size(arrays: dict[str, NDArray[Any]]) -> tuple[int, int] | None:
    if "image_size" not in arrays:
        return None
    size = _numbers(arrays["image_size"], "image_size").reshape(-1)
    if len(size) != 2 or not (size >= 1).all() or size.max() > 1 << 30:
        raise CairnError("its image_size is not a width and a height")
    return int(size[0]), int(size[1])


def _numbers(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    return _checked_numbers(values, name).astype(np.float64)


def _checked_numbers(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return values; raises if one of them is not finite."""
    if values.dtype.kind not in "iuf":
        raise CairnError(f"its {name} are no numbers")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise CairnError(f"its {name} have values that are not finite")
    return values
