"""The stored features of a photo of a collection, in the order in which callers get them."""

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

    # (N, 2) float32: pixels of the upright original, the centre of the top-left pixel at (0, 0): exact if from another
    # program, or else to half of 1/2047 of the longer side
    centres: NDArray[np.float32]
    # (N, 2, 2) float32: maps from the unit circle to the regions, pixels; None if another program gave only places
    linear: NDArray[np.float32] | None
    words: NDArray[np.int32]  # (N,) int32: visual words
    descriptors: NDArray[np.float16] | None  # (N, D) float16: None if the collection does not store them
    # (N,) int64: rows of the features in the file of the other program; None if Cairn made them, or an earlier version
    # added the photo
    rows: NDArray[np.int64] | None
    order: NDArray[np.int64]  # (N,) int64: number of each feature in the segment

    def ellipses(self, side: float) -> NDArray[np.float32]:
        """Regions (N, 5); if only places are known, circles with a radius of 1/64 of the longer side."""
        linear = (
            np.broadcast_to(np.eye(2) * side / 64, (len(self.centres), 2, 2)) if self.linear is None else self.linear
        )
        return ellipses_of_shapes(self.centres.astype(np.float64), linear.astype(np.float64))


def kept_features(image: ImageFeatures, side: float) -> KeptFeatures:
    """Return the features of a photo: those of another program in the order of its file, others ordered by word.
    `side`: longer side of the upright original, pixels. Raises Damaged if a keypoint is not finite.
    """
    words, keypoints = np.asarray(image.words).astype(np.int32), image.columns.get(KEYPOINT)
    descriptors = image.columns.get("descriptor")
    order = _order(image)
    if keypoints is None:
        frames: Frames = decode_geometry(image.columns, order)
        centres = (frames.centres.astype(np.float64) * side - 0.5).astype(np.float32)
        linear: NDArray[np.float32] | None = frames.linear * np.float32(side)
        rows = None
    else:
        keypoints = np.asarray(keypoints)
        if not np.isfinite(keypoints).all():
            raise Damaged("A segment has keypoints that are no numbers: run {cairn check}, then {cairn repair}.")
        keypoints = keypoints[order]
        centres = np.ascontiguousarray(keypoints[:, 1:3])
        linear = keypoints[:, 3:].reshape(-1, 2, 2) if keypoints.shape[1] > 3 else None
        rows = keypoints[:, 0].astype(np.int64)
    return KeptFeatures(
        centres, linear, words[order], np.asarray(descriptors)[order] if descriptors is not None else None, rows, order
    )


def places_of(image: ImageFeatures) -> NDArray[np.int64]:
    """Place of each feature of a segment's photo in the order of `kept_features`, (N,)."""
    return np.argsort(_order(image))


def _order(image: ImageFeatures) -> NDArray[np.int64]:
    """Order of the features of a segment's photo: by the rows of another program's file, or as stored."""
    keypoints = image.columns.get(KEYPOINT)
    if keypoints is None:
        return np.arange(len(image.words))
    return np.argsort(np.asarray(keypoints)[:, 0], kind="stable")


def nearest_frames(frames: Frames, among: Frames, tolerance: float) -> NDArray[np.int64]:
    """Match regions read again to the stored ones (N,): the nearest centre, most similar shape; -1 if none is near."""
    from scipy.spatial import KDTree

    if not len(among.centres) or not len(frames.centres):
        return np.full(len(frames.centres), -1)
    most = min(_CANDIDATES, len(among.centres))
    distances, rows = KDTree(among.centres).query(frames.centres, most, distance_upper_bound=tolerance)
    distances, rows = distances.reshape(-1, most), rows.reshape(-1, most)
    there = np.isfinite(distances)
    rows = np.where(there, rows, 0)
    own, others = frames.linear[:, None].astype(np.float64), among.linear[rows].astype(np.float64)
    size = np.abs(own).max(axis=(2, 3))
    # Compare regions first, as they do not depend on the turn; frames if several features have one region.
    shapes = own @ own.swapaxes(2, 3), others @ others.swapaxes(2, 3)
    cost = distances / tolerance + np.abs(shapes[0] - shapes[1]).max(axis=(2, 3)) / size**2
    cost += 1e-3 * np.abs(own - others).max(axis=(2, 3)) / size
    best = np.where(there, cost, np.inf).argmin(axis=1)
    nearest = np.take_along_axis(rows, best[:, None], axis=1)[:, 0]
    return np.where(there.any(axis=1), nearest, -1)
