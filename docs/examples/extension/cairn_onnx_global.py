"""Global descriptors by ONNX networks like DINO, EigenPlaces or the image encoder of CLIP.

CAIRN_ONNX_GLOBAL names the file, and CAIRN_ONNX_SIDE the side of its input, 224 otherwise. OpenCV runs it, or ONNX
Runtime with CAIRN_ONNX_RUNTIME=1. Colours are normalised as for ImageNet; or as for CLIP, with CAIRN_ONNX_TEXT, which
names its text encoder: photos are found by words then, all by ONNX Runtime, with the tokenizer.json next to that file.
"""

import hashlib
import os
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CLIP = (0.4815, 0.4578, 0.4082), (0.2686, 0.2613, 0.2758)


class OnnxGlobal:
    """A network, by its file."""

    def __init__(self, model=None, side=None, colours=None):
        self.path = Path(model or os.environ["CAIRN_ONNX_GLOBAL"]).resolve()
        self.side = side or int(os.environ.get("CAIRN_ONNX_SIDE", 224))
        self.colours = colours or (CLIP if "CAIRN_ONNX_TEXT" in os.environ else IMAGENET)
        self.name = self.path.stem
        made = self.path.read_bytes() + repr((self.side, self.colours)).encode()
        self.fingerprint = hashlib.sha256(made).hexdigest()
        self.dim = len(self.describe(np.zeros((8, 8, 3), np.uint8)))
        if "CAIRN_ONNX_TEXT" in os.environ:
            self.describe_words = self._describe_words

    def __reduce__(self):  # worker processes read the model again
        return OnnxGlobal, (self.path, self.side, self.colours)

    @cached_property
    def _run(self):
        if os.environ.keys() & {"CAIRN_ONNX_RUNTIME", "CAIRN_ONNX_TEXT"}:  # of several outputs the first
            session = __import__("onnxruntime").InferenceSession(self.path)
            return lambda blob: session.run(None, {session.get_inputs()[0].name: blob})[0]
        net = cv2.dnn.readNetFromONNX(str(self.path))
        return lambda blob: (net.setInput(blob), net.forward())[1]

    def describe(self, image):
        """Describe an image (H, W, 3), RGB uint8, by a row."""
        shrunk = cv2.resize(image, (self.side, self.side), interpolation=cv2.INTER_AREA).astype(np.float32) / 255
        mean, deviation = self.colours
        blob = ((shrunk - mean) / deviation).transpose(2, 0, 1)[None].astype(np.float32)
        found = self._run(np.ascontiguousarray(blob))[0]
        # A map (D, H, W) is pooled, of tokens (N, D) the first stands for the image, and a row is one.
        return found.mean(axis=(1, 2)) if found.ndim == 3 else found[0] if found.ndim == 2 else found

    @cached_property
    def _words(self):
        text = Path(os.environ["CAIRN_ONNX_TEXT"])
        tokenizer = __import__("tokenizers").Tokenizer.from_file(str(text.with_name("tokenizer.json")))
        return tokenizer, __import__("onnxruntime").InferenceSession(text)

    def _describe_words(self, text):
        """Describe words by a row that is like those of images that show what they say."""
        tokenizer, session = self._words
        said = tokenizer.encode(text)
        given = {"input_ids": said.ids, "attention_mask": said.attention_mask}
        asked = {one.name: np.array([given[one.name]], np.int64) for one in session.get_inputs()}
        return session.run(None, asked)[0][0]
