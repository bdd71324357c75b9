"""Shots of a film, by the histograms of its frames, and the frames that stand for them.

A shot begins where the colours of two consecutive frames differ much, and far more than those of the surrounding
frames: a histogram difference with an adaptive threshold (Zhang, Kankanhalli and Smoliar, Multimedia Systems, 1993; Yeo
and Liu, IEEE Transactions on Circuits and Systems for Video Technology, 1995). Blank frames separate shots, too. Within
a shot one frame is taken of each stretch of similar pictures.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

NEAR = 8
"""Frames before and after two that are compared: by how much these differ says what is much."""
LEAST_DIFFERENCE, RATIO = 0.2, 3.0
"""Share of the pixels that change their colour at a cut, and how many times as many as around it."""
LEAST_FRAMES = 5
"""Of a shot: a flash begins none."""
ALIKE = 0.6
"""Correlation of two frames, from which they show the same."""
LEAST_TIME, LONGEST_TIME = 2_000, 10_000
"""Milliseconds of a stretch, before the next one may begin within a shot; and those whose sharpest frame is taken."""

_SIZE, _COARSE = (160, 90), (16, 9)  # width and height of a frame that is described, and of one that is compared
_COLOURS = 8  # steps of each channel
_LEAST_DEVIATION = 4.0  # standard deviation of the grey values of a frame that shows something


@dataclass(frozen=True)
class Sketch:
    """Summary of a frame for comparison."""

    time: int  # milliseconds from the beginning of the film
    histogram: NDArray[np.float32]  # shares of the pixels of each colour
    picture: NDArray[np.float32]  # coarse grey values, of mean 0 and length 1
    sharpness: float  # variance of the Laplacian
    shows: bool  # whether the frame is not blank


def sketch(time: int, frame: NDArray[np.uint8]) -> Sketch:
    """Describe a frame (H, W, 3), BGR."""
    small = cv2.resize(frame, _SIZE, interpolation=cv2.INTER_AREA)
    histogram = cv2.calcHist([small], [0, 1, 2], None, [_COLOURS] * 3, [0, 256] * 3).reshape(-1) / (small.size // 3)
    grey = cv2.cvtColor(small, cv2.COLOR_BGR2GRAY)
    coarse = cv2.resize(grey, _COARSE, interpolation=cv2.INTER_AREA).astype(np.float32).reshape(-1)
    coarse -= coarse.mean()
    picture = coarse / max(float(np.linalg.norm(coarse)), 1e-6)
    sharpness = float(cv2.Laplacian(grey, cv2.CV_32F).var())
    return Sketch(time, np.asarray(histogram, np.float32), picture, sharpness, bool(grey.std() >= _LEAST_DEVIATION))


def difference(one: Sketch, other: Sketch) -> float:
    """Return the share of pixels of different colours, 0 to 1."""
    return float(np.abs(one.histogram - other.histogram).sum()) / 2


def shot_starts(sketches: Iterable[Sketch]) -> Iterator[tuple[Sketch, bool]]:
    """Yield each frame, and whether a shot begins with it; False for the first frame of the film."""
    before: deque[float] = deque(maxlen=NEAR)
    ahead: deque[tuple[Sketch, float]] = deque()
    length = 0

    def settled() -> tuple[Sketch, bool]:
        nonlocal length
        frame, changed = ahead.popleft()
        around = [*before, *(one for _, one in ahead)]
        starts = length >= LEAST_FRAMES and changed >= max(LEAST_DIFFERENCE, RATIO * float(np.mean(around or [0.0])))
        length = 1 if starts else length + 1
        before.append(changed)
        return frame, starts

    frames = iter(sketches)
    first = next(frames, None)
    if first is None:
        return
    yield first, False
    length = 1
    for last, frame in pairwise(_behind(first, frames)):
        ahead.append((frame, difference(last, frame)))
        if len(ahead) > NEAR:
            yield settled()
    while ahead:
        yield settled()


def _behind(first: Sketch, others: Iterator[Sketch]) -> Iterator[Sketch]:
    yield first
    yield from others


def frames_of_shots(sketches: Iterable[Sketch]) -> Iterator[int]:
    """Yield the times of the chosen frames: the sharpest of each stretch, and at least one of each shot.

    Each time is yielded as soon as it is certain: the first one without reading most of the film.
    """
    reference: Sketch | None = None  # first frame of the stretch
    best: Sketch | None = None  # its sharpest frame so far; None: already yielded
    taken: Sketch | None = None  # the last yielded frame of the shot
    parted = False
    for frame, starts in shot_starts(sketches):
        parted = parted or starts or not frame.shows
        if not frame.shows:
            continue
        if reference is None or parted or _is_other(reference, frame):
            if best is not None and not (taken and _are_alike(taken, best)):
                yield best.time
                taken = best
            if parted:
                taken = None
            reference, best, parted = frame, frame, False
        elif best is not None and frame.time - reference.time <= LONGEST_TIME:
            if frame.sharpness > best.sharpness and _are_alike(reference, frame):
                best = frame
        elif best is not None:
            if not (taken and _are_alike(taken, best)):
                yield best.time
                taken = best
            best = None
    if best is not None and not (taken and _are_alike(taken, best)):
        yield best.time


def _are_alike(one: Sketch, other: Sketch) -> bool:
    return float(one.picture @ other.picture) >= ALIKE


def _is_other(reference: Sketch, frame: Sketch) -> bool:
    return frame.time - reference.time >= LEAST_TIME and not _are_alike(reference, frame)
