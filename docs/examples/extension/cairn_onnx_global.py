"""Global descriptors by ONNX networks like DINO, EigenPlaces or the image encoder of CLIP.

CAIRN_ONNX_GLOBAL names the file, and CAIRN_ONNX_SIDE the side of its input, 224 otherwise. Colours are normalised as
for ImageNet. OpenCV runs it, or ONNX Runtime with CAIRN_ONNX_RUNTIME=1.
"""

import hashlib
import os
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np


class OnnxGlobal:
    """A network, by its file."""

    def __init__(self, model=None, side=None, mean=(0.485, 0.456, 0.406), deviation=(0.229, 0.224, 0.225)):
        self.path = Path(model or os.environ["CAIRN_ONNX_GLOBAL"]).resolve()
        self.side, self.mean, self.deviation = side or int(os.environ.get("CAIRN_ONNX_SIDE", 224)), mean, deviation
        self.name = self.path.stem
        self.fingerprint = hashlib.sha256(
            self.path.read_bytes() + repr((self.side, mean, deviation)).encode()
        ).hexdigest()
        self.dim = len(self.describe(np.zeros((8, 8, 3), np.uint8)))

    def __reduce__(self):  # worker processes read the model again
        return OnnxGlobal, (self.path, self.side, self.mean, self.deviation)

    @cached_property
    def _run(self):
        if "CAIRN_ONNX_RUNTIME" in os.environ:
            session = __import__("onnxruntime").InferenceSession(self.path)
            return lambda blob: session.run(None, {session.get_inputs()[0].name: blob})[0]
        net = cv2.dnn.readNetFromONNX(str(self.path))
        return lambda blob: (net.setInput(blob), net.forward())[1]

    def describe(self, image):
        """Describe an image (H, W, 3), RGB uint8, by a row."""
        shrunk = cv2.resize(image, (self.side, self.side), interpolation=cv2.INTER_AREA).astype(np.float32) / 255
        blob = ((shrunk - self.mean) / self.deviation).transpose(2, 0, 1)[None].astype(np.float32)
        found = self._run(np.ascontiguousarray(blob))[0]
        # A map (D, H, W) is pooled, of tokens (N, D) the first stands for the image, and a row is one.
        return found.mean(axis=(1, 2)) if found.ndim == 3 else found[0] if found.ndim == 2 else found
