"""Films whose frames encode their numbers."""

from collections.abc import Iterable
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from tests.support.hostile import photo

FPS = 25
_BITS, _SQUARE = 12, 16  # bits of a number, and pixels of one bit
CODECS = {".mp4": "mp4v", ".mov": "mp4v", ".mkv": "MJPG", ".avi": "MJPG", ".webm": "VP90"}


def shot(name: str, frames: int, size: tuple[int, int] = (320, 240), pan: float = 0) -> Iterable[NDArray[np.uint8]]:
    """Return the frames (H, W, 3), BGR, of a shot that pans over a photograph by some pixels a frame."""
    moved = round(pan * frames)
    whole = np.asarray(photo(name, (size[0] + moved, size[1])))[:, :, ::-1]
    for frame in range(frames):
        left = round(pan * frame)
        yield whole[:, left : left + size[0]].copy()


def grey(frames: int, size: tuple[int, int] = (320, 240)) -> Iterable[NDArray[np.uint8]]:
    """Return blank frames."""
    return (np.full((size[1], size[0], 3), 30, np.uint8) for _ in range(frames))


def write_film(path: Path, *shots: Iterable[NDArray[np.uint8]]) -> Path:
    """Write a film of some shots, `FPS` frames a second, in the usual codec of its container; blank frames have no
    number."""
    writer = None
    for number, frame in enumerate(frame for some in shots for frame in some):
        if writer is None:
            code = cv2.VideoWriter.fourcc(*CODECS[path.suffix])
            writer = cv2.VideoWriter(str(path), code, FPS, (frame.shape[1], frame.shape[0]))
        if frame.std():
            for bit in range(_BITS):
                frame[:_SQUARE, _SQUARE * bit : _SQUARE * (bit + 1)] = 255 * (number >> bit & 1)
        writer.write(frame)
    assert writer is not None
    writer.release()
    return path


def number_of(pixels: NDArray[np.uint8]) -> int:
    """Decode the number of a frame from its pixels."""
    middle = _SQUARE // 2
    row = pixels[middle, middle : _SQUARE * _BITS : _SQUARE].mean(axis=1) > 127
    return int(sum(1 << bit for bit, is_set in enumerate(row) if is_set))
