"""The features of a photo as a collection keeps them, in the order in which they are told."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.errors import Damaged
from index.segments.segment import ImageFeatures
from retrieval.features.encoding import KEYPOINT, decode_geometry
from retrieval.regions.geometry import Frames, ellipses_of_shapes

_CANDIDATES = 8  # features at nearly one place that are compared


@dataclass(frozen=True)
class KeptFeatures:
    """Features of one photo."""

    # (N, 2) float32: pixels of the upright original, the centre of the top-left pixel at (0, 0): exactly as another
    # program gave them, or else to half of 1/2047 of the longer side
    centres: NDArray[np.float32]
    # (N, 2, 2) float32: maps from the unit circle to the regions, pixels; None where another program gave places alone
    linear: NDArray[np.float32] | None
    words: NDArray[np.int32]  # (N,) int32: visual words
    descriptors: NDArray[np.float16] | None  # (N, D) float16: None where the collection does not keep them
    # (N,) int64: rows of the features in the file of the other program; None if Cairn made them, or an earlier version
    # added the photo
    rows: NDArray[np.int64] | None
    order: NDArray[np.int64]  # (N,) int64: which feature of the segment each is

    def ellipses(self, side: float) -> NDArray[np.float32]:
        """Regions (N, 5); where places alone are known, circles of a radius of 1/64 of the longer side."""
        linear = (
            np.broadcast_to(np.eye(2) * side / 64, (len(self.centres), 2, 2)) if self.linear is None else self.linear
        )
        return ellipses_of_shapes(self.centres.astype(np.float64), linear.astype(np.float64))


def kept_features(image: ImageFeatures, side: float) -> KeptFeatures:
    """Tell the features of a photo: those of another program in the order of its file, others ordered by word. `side`:
    longer side of the upright original, pixels. Raises Damaged where a keypoint is no number.
    """
    words, given = np.asarray(image.words).astype(np.int32), image.columns.get(KEYPOINT)
    descriptors = image.columns.get("descriptor")
    order = _order(image)
    if given is None:
        frames: Frames = decode_geometry(image.columns, order)
        centres = (frames.centres.astype(np.float64) * side - 0.5).astype(np.float32)
        linear: NDArray[np.float32] | None = frames.linear * np.float32(side)
        rows = None
    else:
        given = np.asarray(given)
        if not np.isfinite(given).all():
            raise Damaged("A segment has keypoints that are no numbers: run {cairn check}, then {cairn repair}.")
        given = given[order]
        centres = np.ascontiguousarray(given[:, 1:3])
        linear = given[:, 3:].reshape(-1, 2, 2) if given.shape[1] > 3 else None
        rows = given[:, 0].astype(np.int64)
    return KeptFeatures(
        centres, linear, words[order], np.asarray(descriptors)[order] if descriptors is not None else None, rows, order
    )


def places_of(image: ImageFeatures) -> NDArray[np.int64]:
    """Where each feature of a segment's photo comes in the order of `kept_features`, (N,)."""
    return np.argsort(_order(image))


def _order(image: ImageFeatures) -> NDArray[np.int64]:
    """Which feature of a segment's photo comes where: by the rows of another program's file, or as they are."""
    given = image.columns.get(KEYPOINT)
    if given is None:
        return np.arange(len(image.words))
    return np.argsort(np.asarray(given)[:, 0], kind="stable")


def nearest_frames(asked: Frames, among: Frames, tolerance: float) -> NDArray[np.int64]:
    """Recognise regions of a photo that were described or read again among those that are kept.

    (N,) int64: for each the one of the nearest centre and the most alike shape; -1 where no centre is near.
    """
    from scipy.spatial import KDTree

    if not len(among.centres) or not len(asked.centres):
        return np.full(len(asked.centres), -1)
    most = min(_CANDIDATES, len(among.centres))
    distances, rows = KDTree(among.centres).query(asked.centres, most, distance_upper_bound=tolerance)
    distances, rows = distances.reshape(-1, most), rows.reshape(-1, most)
    there = np.isfinite(distances)
    rows = np.where(there, rows, 0)
    own, others = asked.linear[:, None].astype(np.float64), among.linear[rows].astype(np.float64)
    size = np.abs(own).max(axis=(2, 3))
    # Regions first, which no turn changes; frames where several features have one region.
    shapes = own @ own.swapaxes(2, 3), others @ others.swapaxes(2, 3)
    cost = distances / tolerance + np.abs(shapes[0] - shapes[1]).max(axis=(2, 3)) / size**2
    cost += 1e-3 * np.abs(own - others).max(axis=(2, 3)) / size
    best = np.where(there, cost, np.inf).argmin(axis=1)
    found = np.take_along_axis(rows, best[:, None], axis=1)[:, 0]
    return np.where(there.any(axis=1), found, -1)
