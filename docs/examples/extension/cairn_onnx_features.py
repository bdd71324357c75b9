"""Keypoints and descriptors of ONNX networks like SuperPoint, DISK, ALIKED or XFeat, whose file CAIRN_ONNX_MODEL names.

With CAIRN_ONNX_COLOUR=1 a network takes RGB; with CAIRN_ONNX_RUNTIME=1 ONNX Runtime runs it, and not OpenCV.
"""

import hashlib
import os
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from scipy.ndimage import map_coordinates


class OnnxFeatures:
    """A network, by its file."""

    def __init__(self, model=None, colour=None, most=2048, threshold=0.02):
        self.path = Path(model or os.environ["CAIRN_ONNX_MODEL"]).resolve()
        self.colour = "CAIRN_ONNX_COLOUR" in os.environ if colour is None else colour
        self.name, self.geometry, self.most, self.threshold = self.path.stem, "points", most, threshold
        self.fingerprint = hashlib.sha256(self.path.read_bytes() + repr((most, threshold)).encode()).hexdigest()
        self.dim = self.extract(np.zeros((64, 64, 3)[: 2 + self.colour], np.uint8))["descriptors"].shape[1]

    def extract(self, image):
        """Find and describe the keypoints of an image (H, W) or (H, W, 3), uint8."""
        size = np.array(image.shape[1::-1])
        image = cv2.copyMakeBorder(image, 0, -size[1] % 32, 0, -size[0] % 32, cv2.BORDER_REPLICATE)
        found = _load(self.path)(np.ascontiguousarray(np.atleast_3d(image).transpose(2, 0, 1)[None], np.float32) / 255)
        found = sorted((one[0] if len(one) == 1 else one for one in found), key=lambda one: (one.ndim, one.shape[-1]))
        if dense := found[0].ndim == 3:
            heat, rows = _maps_of({len(one): one for one in found})
            y, x = np.nonzero((heat == cv2.dilate(heat, np.ones((5, 5)))) & (heat > self.threshold))
            points, scores = np.stack([x, y], axis=1).astype(float), heat[y, x]
        else:
            scores, points, rows = found
            if np.abs(points).max(initial=0) <= 1:  # of ALIKED
                points = (points + 1) / 2 * np.subtract(image.shape[1::-1], 1)
        best = [row for row in np.argsort(-scores, kind="stable") if (points[row] < size).all()][: self.most]
        if dense:
            places = ((points[best] + 0.5) * rows.shape[1] / image.shape[0] - 0.5).T[::-1]
            rows = np.stack([map_coordinates(one, places, order=1, mode="nearest") for one in rows], axis=1)
        return {"keypoints": points[best], "scores": scores[best], "descriptors": rows if dense else rows[best]}


def _maps_of(maps):  # by their channels: scores (H, W) and descriptors (D, h, w)
    if 65 not in maps:  # of DISK both in one, of ALIKED two
        return (maps.pop(1)[0], *maps.values()) if 1 in maps else next((one[-1], one[:-1]) for one in maps.values())
    cells = np.exp(maps[65] - maps.pop(65).max(axis=0))  # of SuperPoint and XFeat a cell of 8 by 8 pixels, or none
    cells = (cells / cells.sum(axis=0))[:-1].reshape(8, 8, *cells.shape[1:]).transpose(2, 0, 3, 1)
    return cells.reshape(8 * len(cells), -1), next(one for channels, one in maps.items() if channels > 1)


@cache  # in each process
def _load(path):
    if "CAIRN_ONNX_RUNTIME" in os.environ and (session := __import__("onnxruntime").InferenceSession(path)):
        return lambda blob: session.run(None, {session.get_inputs()[0].name: blob})
    net = cv2.dnn.readNetFromONNX(str(path))
    return lambda blob: (net.setInput(blob), net.forward(net.getUnconnectedOutLayersNames()))[1]
