"""Geometry of features as segments store it: 5 bytes a feature, in units of the photo's longer side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from index.errors import Damaged
from retrieval.regions.geometry import Frames, rotations, upright_frames

if TYPE_CHECKING:
    from retrieval.features.extraction import Features

# Bits of x, y, log2 of the scale, stretch and shear, the lowest first, and the values of the first and the last step.
# The scale is the square root of the determinant of the upright frame; stretch is log2 of the ratio of its first
# diagonal entry to the scale; shear is its entry below the diagonal, in units of the scale. Detection keeps ellipses
# with an axis ratio of 5 at most, so that a stretch is within ±1.17 and a shear within ±1.79.
_BITS = (11, 11, 7, 5, 6)
_FIRST = (0.0, 0.0, -15.0, -1.25, -2.0)
_LAST = (1.0, 1.0, 0.0, 1.25, 2.0)
_BYTES = sum(_BITS) // 8
KEYPOINT = "keypoint"
"""Column of keypoints as another program gave them, (N, 3 or 7) float32: the row in its file, x and y in pixels of the
upright original, and where more than places is known, a11, a12, a21, a22 of the map from the unit circle to the region.
"""
_KEYPOINT_WIDTHS = (3, 7)
_STEPS = 2 ** np.array(_BITS) - 1
_WIDTHS = np.array(_BITS, np.int64)
_SHIFTS = np.cumsum((0, *_BITS[:-1])).astype(np.uint64)
_VALUES = [np.linspace(first, last, 2**bits) for first, last, bits in zip(_FIRST, _LAST, _BITS, strict=True)]
# Values of each number of steps: x, y, the scale, and the diagonal entries and the one below in units of the scale.
_X, _Y, _SCALES, _FIRSTS, _SECONDS, _BELOW = (
    values.astype(np.float32)
    for values in (*_VALUES[:2], np.exp2(_VALUES[2]), np.exp2(_VALUES[3]), np.exp2(-_VALUES[3]), _VALUES[4])
)
_TABLES = _X, _Y, _SCALES, _FIRSTS, _SECONDS, _BELOW
# Largest error of encoding: of centres in units of the longer side, and of the entries of an upright frame in units of
# the largest of them, for ellipses that detection keeps.
CENTRE_ERROR = 0.52 / 2047
FRAME_ERROR = 0.08
# Of the columns `position` and `shape` of earlier segments.
_POSITION_STEPS = 65_535


# The columns of geometry, and type and shape of a row of each.
_FORMS: dict[str, tuple[type[np.generic], tuple[int, ...]]] = {
    "geometry": (np.uint8, (_BYTES,)),
    "angle": (np.float16, ()),
    "position": (np.uint16, (2,)),
    "shape": (np.float16, (3,)),
}


def misshapen_columns(columns: Mapping[str, NDArray[Any]]) -> Iterator[str]:
    """Return the names of columns of a segment that are malformed or missing."""
    for name, (dtype, shape) in _FORMS.items():
        if name in columns and (columns[name].dtype != dtype or columns[name].shape[1:] != shape):
            yield name
    keypoint = columns.get(KEYPOINT)
    if keypoint is not None and (
        keypoint.dtype != np.float32 or keypoint.ndim != 2 or keypoint.shape[1] not in _KEYPOINT_WIDTHS
    ):
        yield KEYPOINT
    if "geometry" not in columns:
        yield from (name for name in ("position", "shape") if name not in columns)
    descriptor = columns.get("descriptor")
    if descriptor is not None and (descriptor.ndim != 2 or descriptor.dtype.kind not in "fu"):
        yield "descriptor"


def frames_of(features: "Features", side: float, turn: float = 0.0) -> Frames:
    """Return the frames of a photo's features. `features`: in pixels of the upright original. `side`: longer side of
    the original, pixels. `turn`: angle by which the photo's content is assumed to be turned clockwise, radians.
    """
    linear = upright_frames(features.ellipses, turn)
    if features.angles.any():
        linear = linear @ rotations(features.angles)
    centres = (features.ellipses[:, :2] + 0.5) / side
    return Frames(centres.astype(np.float32), (linear / side).astype(np.float32))


def encode_geometry(features: "Features", side: float, *, upright: bool) -> dict[str, NDArray[Any]]:
    """Encode positions and shapes as the columns of a segment.

    `geometry` (N, 5) uint8: a number of 40 bits, lowest byte first: the centre's x and y, each in 11 bits, and the
    upright frame: scale (7 bits), stretch (5) and shear (6). `angle` (N,) float16: radians, if patches are not upright.
    `keypoint`: see `KEYPOINT`, if another program detected them.
    """
    columns: dict[str, NDArray[Any]] = {
        "geometry": encode_frames(frames_of(replace(features, angles=np.zeros_like(features.angles)), side))
    }
    if not upright:
        columns["angle"] = features.angles.astype(np.float16)
    if features.keypoints is not None:
        columns[KEYPOINT] = features.keypoints
    return columns


def decode_geometry(columns: dict[str, NDArray[Any]], rows: NDArray[np.integer]) -> Frames:
    """Decode some rows of a segment's columns (see `encode_geometry`) to frames."""
    if "geometry" in columns:
        frames = decode_frames(columns["geometry"], rows)
    else:
        frames = _decode_position_and_shape(columns["position"][rows], columns["shape"][rows])
    if "angle" in columns:
        angles = columns["angle"][rows].astype(np.float32)
        _refuse_no_numbers(angles)
        frames = Frames(frames.centres, frames.linear @ rotations(angles))
    return frames


def decode_geometries(
    columns: Sequence[dict[str, NDArray[Any]]], rows: NDArray[np.integer], starts: NDArray[np.integer]
) -> Frames:
    """Decode rows (n,) of the columns of several photos, beginning at `starts` (B + 1,), to frames."""
    from retrieval.features.geometry_kernels import decode_rows

    centres, linear = np.empty((len(rows), 2), np.float32), np.empty((len(rows), 2, 2), np.float32)
    wanted, bounds = rows.astype(np.int64), starts.tolist()
    for one, start, stop in zip(columns, bounds, bounds[1:], strict=False):
        some = slice(start, stop)
        if "geometry" in one and "angle" not in one:
            decode_rows(_checked(one["geometry"]), wanted[some], _WIDTHS, *_TABLES, centres[some], linear[some])
        else:
            frames = decode_geometry(one, wanted[some])
            centres[some], linear[some] = frames.centres, frames.linear
    return Frames(centres, linear)


def decode_centres(columns: dict[str, NDArray[Any]], rows: NDArray[np.integer]) -> NDArray[np.float32]:
    """Decode only the centres (n, 2) of some rows of a segment's columns: see `decode_geometry`."""
    if "geometry" not in columns:
        return np.asarray(columns["position"][rows].astype(np.float32) / np.float32(_POSITION_STEPS))
    numbers = _numbers(columns["geometry"][rows])
    return np.stack([table[_part(numbers, place)] for place, table in enumerate((_X, _Y))], axis=1)


def as_encoded_now(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The columns of a photo, converted to the form of `encode_geometry` if an earlier version wrote them."""
    if "position" not in columns:
        return columns
    others = {name: column for name, column in columns.items() if name not in ("position", "shape")}
    return {"geometry": encode_frames(_decode_position_and_shape(columns["position"], columns["shape"])), **others}


def encode_frames(upright: Frames) -> NDArray[np.uint8]:
    """Encode upright frames: the column geometry (N, 5) uint8 of `encode_geometry`."""
    first, second = upright.linear[:, 0, 0].astype(np.float64), upright.linear[:, 1, 1].astype(np.float64)
    scale = np.sqrt(first * second)
    values = [*upright.centres.T, np.log2(scale), np.log2(first / scale), upright.linear[:, 1, 0] / scale]
    parts = (np.stack(values, axis=1) - _FIRST) / np.subtract(_LAST, _FIRST)
    steps = np.rint(np.clip(parts, 0, 1) * _STEPS).astype(np.uint64)
    numbers = np.bitwise_or.reduce(steps << _SHIFTS, axis=1)
    return np.ascontiguousarray(numbers.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :_BYTES])


def decode_frames(geometry: NDArray[np.uint8], rows: NDArray[np.integer] | None = None) -> Frames:
    """Decode rows (N, 5) uint8 of the column geometry, all or some, to upright frames."""
    from retrieval.features.geometry_kernels import decode_rows

    checked = _checked(geometry)
    which = np.arange(len(geometry)) if rows is None else np.ascontiguousarray(rows, np.int64)
    centres, linear = np.empty((len(which), 2), np.float32), np.empty((len(which), 2, 2), np.float32)
    decode_rows(checked, which, _WIDTHS, *_TABLES, centres, linear)
    return Frames(centres, linear)


def _checked(geometry: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The column geometry in C order; raises ValueError if it has another type or shape."""
    if geometry.ndim != 2 or geometry.shape[1] != _BYTES or geometry.dtype != np.uint8:
        raise ValueError(f"geometry must be (N, {_BYTES}) uint8, not {geometry.dtype} of shape {geometry.shape}")
    return np.ascontiguousarray(geometry)


def _numbers(geometry: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The rows of the column geometry as numbers (N,) of 40 bits."""
    padded = np.zeros((len(geometry), 8), np.uint8)
    padded[:, :_BYTES] = geometry
    return padded.view("<i8")[:, 0]


def _part(numbers: NDArray[np.int64], place: int) -> NDArray[np.int64]:
    """One of the five values in each number, in steps."""
    return (numbers >> int(_SHIFTS[place])) & int(_STEPS[place])


def _decode_position_and_shape(position: NDArray[np.uint16], shape: NDArray[np.float16]) -> Frames:
    """Decode frames of earlier versions: places in 16 bits, and logarithms of the diagonal and the shear."""
    centres = position.astype(np.float32) / np.float32(_POSITION_STEPS)
    rows = shape.astype(np.float32)
    linear = np.zeros((len(rows), 2, 2), np.float32)
    with np.errstate(all="ignore"):
        linear[:, 0, 0] = np.exp2(rows[:, 0])
        linear[:, 1, 1] = np.exp2(rows[:, 2])
        linear[:, 1, 0] = rows[:, 1] * linear[:, 1, 1]
    _refuse_no_numbers(linear)
    return Frames(centres, linear)


def _refuse_no_numbers(values: NDArray[np.floating]) -> None:
    if not np.isfinite(values).all():
        raise Damaged("A segment has shapes of features that are no numbers: run {cairn check}, then {cairn repair}.")
