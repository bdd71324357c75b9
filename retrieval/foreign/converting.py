"""Convert arrays of another program to features of Cairn."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from retrieval.descriptors.foreign import AS_THEY_ARE, BITS, BYTES, MOST_DIMENSIONS, UNIT, ForeignDescriptor
from retrieval.features.extraction import Features
from retrieval.foreign.contract import GEOMETRIES, POINTS, TURNED, Entry, Unfit
from retrieval.regions.detection import spread_choice
from retrieval.regions.geometry import ellipses_of_shapes, upright_frames

_RADIUS = 1 / 64  # of a keypoint with only a place, as a part of the photo's longer side
_BEYOND = 1.0, 1e-3  # pixels, and parts of the longer side, that a keypoint may lie outside by rounding
_LARGEST = 65_504.0  # of float16


def placed(entry: Entry, width: int, height: int, orientation: int = 1) -> Entry:
    """Convert features to pixels of an upright photo, whose size is a multiple of that of the file's picture.
    `orientation`: EXIF orientation of the stored photo, 1 to 8.
    """
    stored = (width, height) if orientation < 5 else (height, width)
    # Versions of programs differ: a size that only the upright photo has shows that it was rotated.
    was_turned = entry.size and _is_of(entry.size, (width, height)) and not _is_of(entry.size, stored)
    if entry.is_as_stored and orientation > 1 and not was_turned:
        entry = _upright(entry, stored, orientation)
    if entry.size is not None and entry.size != (width, height):
        entry = _scaled(entry, width, height)
    if not len(entry):
        return entry
    size = np.array([width, height], np.float64)
    beyond = _BEYOND[0] + _BEYOND[1] * size.max()
    outside = ((entry.centres < -beyond) | (entry.centres > size - 1 + beyond)).any(axis=1)
    if outside.any():
        x, y = entry.centres[outside.argmax()]
        raise CairnError(
            f"its features cannot be used: a keypoint lies at {x:.1f}, {y:.1f}, outside the photo, which is {width} by "
            f"{height} pixels"
        )
    return replace(entry, centres=np.clip(entry.centres, -0.5, size - 0.5))


def as_stored(entry: Entry, width: int, height: int, orientation: int) -> Entry:
    """Convert features of an upright photo to pixels of the stored photo: the inverse of `placed`."""
    back = {6: 8, 8: 6}.get(orientation, orientation)  # the other turns and mirrors undo themselves
    entry = replace(entry, size=(width, height))
    return _upright(entry, (width, height), back) if orientation > 1 else entry


def _scaled(entry: Entry, width: int, height: int) -> Entry:
    assert entry.size is not None
    if not _is_of(entry.size, (width, height)):
        turned = entry.size == (height, width)
        raise CairnError(
            f"its features are of a picture of {entry.size[0]} by {entry.size[1]} pixels, and the photo has {width} by "
            f"{height}" + (" when it is upright: describe it turned as its EXIF says" if turned else "")
        )
    scale = np.array([width, height]) / entry.size
    linear = entry.linear * scale[:, None] if entry.linear is not None else None
    return replace(entry, centres=(entry.centres + 0.5) * scale - 0.5, linear=linear, size=(width, height))


def _is_of(size: tuple[int, int], photo: tuple[int, int]) -> bool:
    """Whether a picture of a size may be a photo, enlarged or reduced."""
    return abs(photo[0] * size[1] / (size[0] * photo[1]) - 1) <= 1 / min(*size, *photo)


def _upright(entry: Entry, stored: tuple[int, int], orientation: int) -> Entry:
    """Turn features of a stored photo of some size as the photo is turned (EXIF 2.3, tag 0x0112)."""
    size = np.array(entry.size or stored, np.float64)
    centres, linear = entry.centres, entry.linear
    if orientation >= 5:
        size, centres = size[::-1], centres[:, ::-1]
        linear = linear[:, ::-1] if linear is not None else None
    flip = np.array([orientation in (2, 3, 6, 7), orientation in (3, 4, 7, 8)])
    centres = np.where(flip, size - 1 - centres, centres)
    if linear is not None:
        linear = linear * np.where(flip, -1.0, 1.0)[:, None]
        if orientation in (2, 4, 5, 7):  # mirrored photos: undo only the reflection of their frames
            linear = linear * np.array([1.0, -1.0])
    return replace(entry, centres=centres, linear=linear, size=(int(size[0]), int(size[1])))


def features_of(
    entry: Entry, descriptor: ForeignDescriptor, geometry: str, width: int, height: int, most: int = 0
) -> Features:
    """Features of a photo of some size in pixels; the `most` best by their scores, spread over the photo, or the first
    (0: all). Raises Unfit if they are of another kind or dimension than the collection's.
    """
    if not len(entry):
        return Features(
            np.zeros((0, 5), np.float32),
            np.zeros(0, np.float32),
            np.zeros((0, descriptor.dim), np.float16),
            np.zeros((0, 3 if geometry == POINTS else 7), np.float32),
        )
    if entry.geometry != geometry:
        raise Unfit(
            f"they have {GEOMETRIES[entry.geometry]}, and those of the collection {GEOMETRIES[geometry]}: describe all "
            "photos in the same way"
        )
    chosen = np.arange(len(entry))
    if most and len(entry) > most:
        chosen = _best(entry, most)
        entry = _some(entry, chosen)
    rows = rows_of(entry.descriptors, descriptor)
    linear = entry.linear
    keypoints = np.column_stack([chosen, entry.centres, *([] if linear is None else [linear.reshape(-1, 4)])])
    if geometry == POINTS or linear is None:
        linear = np.broadcast_to(np.eye(2) * _RADIUS * max(width, height), (len(entry), 2, 2))
    ellipses = ellipses_of_shapes(entry.centres, linear)
    angles = np.zeros(len(entry), np.float32)
    if geometry in TURNED:
        turn = np.linalg.inv(upright_frames(ellipses)) @ linear
        angles = np.arctan2(turn[:, 1, 0] - turn[:, 0, 1], turn[:, 0, 0] + turn[:, 1, 1]).astype(np.float32)
    return Features(ellipses, angles, rows, keypoints.astype(np.float32))


def rows_of(rows: NDArray[Any], descriptor: ForeignDescriptor) -> NDArray[np.float16]:
    """Descriptors (N, D) in stored form: at unit length, as bits of -1 and 1, or unchanged. Raises Unfit."""
    if descriptor.values == BITS:
        rows = unpacked(rows)
    if rows.shape[1] != descriptor.dim:
        raise Unfit(
            f"its descriptors have {rows.shape[1]} dimensions, and those of the collection {descriptor.dim}: describe "
            "all photos in the same way"
        )
    if descriptor.values == BITS:
        return rows.astype(np.float16) * np.float16(2) - np.float16(1)
    values = rows.astype(np.float32)
    if descriptor.values == BYTES and not are_bytes(rows):
        raise Unfit("its descriptors are not whole numbers from 0 to 255, as those of the collection are")
    if descriptor.values == UNIT:
        if rows.dtype.kind != "f":
            raise Unfit("its descriptors are whole numbers, and those of the collection are not")
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
        values = (rows / np.maximum(lengths, 1e-300)).astype(np.float32)
    if descriptor.values == AS_THEY_ARE and np.abs(values).max(initial=0) > _LARGEST:
        raise Unfit("its descriptors have values beyond 65,504, which do not fit: leave out {--as-they-are}")
    return values.astype(np.float16)


def described_as(entry: Entry, label: str, values: str | None) -> ForeignDescriptor | None:
    """Identify the descriptor of features; None if unknown. `values`: one of `VALUES`, how entries are compared; by
    default bits if declared in the file, whole numbers from 0 to 255 unchanged, and all others at unit length.
    """
    rows = entry.descriptors
    if not len(entry) or (rows.dtype != np.bool_ and not rows.any()):
        return None
    if values is None:
        bits = entry.is_binary or rows.dtype == np.bool_
        values = BITS if bits else BYTES if are_bytes(rows) and rows.max() > 1 else UNIT
        if rows.dtype == np.uint8 and not bits and rows.shape[1] != 128:
            raise CairnError(
                "Descriptors of {shape} whole numbers may be bits or numbers: say {--binary} or {--as-they-are}.",
                shape=rows.shape[1],
            )
    if values == UNIT and rows.dtype.kind != "f":
        raise CairnError("Descriptors are whole numbers, which are not brought to unit length: say {--as-they-are}.")
    if values == AS_THEY_ARE and are_bytes(rows) and rows.max() > 1:
        values = BYTES
    try:
        dim = unpacked(rows).shape[1] if values == BITS else rows.shape[1]
    except Unfit as error:
        raise CairnError(f"The features cannot be used: {error}.") from error
    if not 1 <= dim <= MOST_DIMENSIONS:
        raise CairnError(f"Descriptors have 1 to {MOST_DIMENSIONS} dimensions, and these have {dim}.")
    return ForeignDescriptor(label, dim, values)


def unpacked(rows: NDArray[Any]) -> NDArray[Any]:
    """Bits (N, D) of rows that are packed, eight in a byte, or are bits; raises `Unfit` otherwise."""
    if rows.dtype == np.bool_:
        return rows
    if rows.dtype != np.uint8:
        raise Unfit("binary descriptors are bytes (uint8) of packed bits, and these are not")
    return np.unpackbits(np.ascontiguousarray(rows), axis=1)


def are_bytes(rows: NDArray[Any]) -> bool:
    """Whether all values are whole numbers from 0 to 255."""
    if rows.dtype == np.uint8 or not rows.size:
        return True
    return bool(rows.min() >= 0 and rows.max() <= 255 and (rows == np.rint(rows)).all())


def _best(entry: Entry, most: int) -> NDArray[np.int64]:
    """Rows (most,) of the best features, ascending."""
    order = np.argsort(-entry.scores, kind="stable") if entry.scores is not None else np.arange(len(entry))
    return np.sort(order[spread_choice(entry.centres[order], most)])


def _some(entry: Entry, rows: NDArray[np.int64]) -> Entry:
    return replace(
        entry,
        centres=entry.centres[rows],
        linear=entry.linear[rows] if entry.linear is not None else None,
        descriptors=entry.descriptors[rows],
        scores=None,
    )
