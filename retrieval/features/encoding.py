"""Geometry of features as a segment keeps it: 10 bytes a feature, in units of the photo's longer side."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval.features.extraction import Features
from retrieval.regions.geometry import Frames, rotations, upright_frames

_STEPS = 65_535


def frames_of(features: Features, side: float, turn: float = 0.0) -> Frames:
    """Give the frames of a photo's features.

    Parameters
    ----------
    features : Features
        In pixels of the upright original.
    side : float
        Longer side of the original, pixels.
    turn : float
        Angle by which the photo's content is taken to be turned clockwise, radians.
    """
    linear = upright_frames(features.ellipses, turn)
    if features.angles.any():
        linear = linear @ rotations(features.angles)
    centres = (features.ellipses[:, :2] + 0.5) / side
    return Frames(centres.astype(np.float32), (linear / side).astype(np.float32))


def encode_geometry(features: Features, side: float, *, upright: bool) -> dict[str, NDArray[Any]]:
    """Encode positions and shapes as the columns of a segment.

    Returns
    -------
    dict of str to ndarray
        position : (N, 2) uint16, in steps of side / 65535; shape : (N, 3) float16, logarithms of the upright frame's
        diagonal and its shear; angle : (N,) float16, radians, where patches are not upright.
    """
    centres = (features.ellipses[:, :2].astype(np.float64) + 0.5) / side
    linear = upright_frames(features.ellipses) / side
    first, shear, second = linear[:, 0, 0], linear[:, 1, 0], linear[:, 1, 1]
    columns = {
        "position": np.rint(np.clip(centres, 0, 1) * _STEPS).astype(np.uint16),
        "shape": np.stack([np.log2(first), shear / second, np.log2(second)], axis=1).astype(np.float16),
    }
    if not upright:
        columns["angle"] = features.angles.astype(np.float16)
    return columns


def decode_geometry(columns: dict[str, NDArray[Any]], rows: NDArray[np.integer]) -> Frames:
    """Decode some rows of a segment's columns (see `encode_geometry`) to frames."""
    centres = columns["position"][rows].astype(np.float32) / _STEPS
    shape = columns["shape"][rows].astype(np.float32)
    linear = np.zeros((len(rows), 2, 2), np.float32)
    linear[:, 0, 0] = np.exp2(shape[:, 0])
    linear[:, 1, 1] = np.exp2(shape[:, 2])
    linear[:, 1, 0] = shape[:, 1] * linear[:, 1, 1]
    if "angle" in columns:
        linear = linear @ rotations(columns["angle"][rows].astype(np.float32))
    return Frames(centres, linear)
