"""Frames of films as photos, read by OpenCV's own decoder (FFmpeg) from an open file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from index.errors import CairnError
from index.parallel import cores
from retrieval.metadata.pages import LAST_MOMENT, moment
from retrieval.photos.shots import frames_of_shots, sketch
from retrieval.photos.tiff import MOST_PAGES
from retrieval.photos.work import refuse_large

MOST_FRAMES = 2_000_000
"""Frames of a film that are looked at: 22 hours of 25 a second."""
FRAMES_A_PHOTO = 10
"""Frames that may take as long to decode as a photo of their size."""
MOST_THREADS = 4
"""Threads that decode a film if all of its frames are read."""
_LEAST_MISSING = 1_000  # milliseconds, of a film that ends early: it may begin so late, and its length be that of all


class Film:
    """An open film, whose file stays open as long as it is in use.

    `max_pixels` limits a frame, and `is_whole` says whether all frames are to be read. `size` is width and height of an
    upright frame, `work` the pixels of a photo that takes as long to decode. Raises CairnError if it cannot be read.
    """

    def __init__(self, file: IO[bytes], max_pixels: int, is_whole: bool = False) -> None:
        self._max_pixels = max_pixels
        file.seek(0)
        threads = min(cores(), MOST_THREADS) if is_whole else 1
        self._capture = cv2.VideoCapture(file, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, threads])  # type: ignore[call-overload]
        if not self._capture.isOpened():
            raise CairnError("the film is damaged, or in a format that cannot be read")
        wanted = (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT, cv2.CAP_PROP_FRAME_COUNT)
        width, height, frames = (int(self._capture.get(one)) for one in wanted)
        refuse_large(width, height, (width, height), max_pixels)
        frames = frames if 0 < frames <= MOST_FRAMES else MOST_FRAMES  # some say nothing of it
        self.size = width, height
        self.work = frames * width * height // FRAMES_A_PHOTO
        self._end = 0

    def survey(self, every: float) -> list[int]:
        """List the frames that are photos, by their times in milliseconds, at an interval of seconds.

        With 0, those of its shots, except the first, which stands for the film.
        """
        found = list(self._at_intervals(round(1000 * every)) if every else self._of_shots())
        return found[: MOST_PAGES - 1] if every else found[1:MOST_PAGES]

    @property
    def missing(self) -> float:
        """Share of the film's length by which it ends early, 0 to 1, once it was surveyed."""
        said = self._capture.get(cv2.CAP_PROP_FRAME_COUNT), self._capture.get(cv2.CAP_PROP_FPS)
        length = 1000 * said[0] / said[1] if min(said) > 0 else 0.0
        missing = length - self._end - 1000 / said[1] if length else 0.0
        return min(1.0, missing / length) if missing > max(_LEAST_MISSING, length / 20) else 0.0

    def frame(self, time: int | None) -> tuple[int, Image.Image]:
        """Read the frame at a time or the next after it, by default that of the first shot; return its time too."""
        if time is None:
            time = next(self._of_shots(), 0)
        for back in (0, 1_000, 10_000, time):  # where a film is entered is up to its decoder
            self._capture.set(cv2.CAP_PROP_POS_MSEC, max(0, time - back))
            if not self._capture.grab() or (self._now() > time and back < time):
                continue
            while self._now() < time and self._capture.grab():
                pass
            if self._now() >= time:
                return self._now(), Image.fromarray(cv2.cvtColor(self._retrieved(), cv2.COLOR_BGR2RGB))
        raise CairnError(f"the film has no frame at {moment(time)}")

    def _retrieved(self) -> NDArray[np.uint8]:
        done, frame = self._capture.retrieve()
        if not done:
            raise CairnError("the film is damaged")
        size = frame.shape[1], frame.shape[0]  # it may change within a film
        refuse_large(*size, size, self._max_pixels)
        return np.asarray(frame, np.uint8)

    def _now(self) -> int:
        time = self._capture.get(cv2.CAP_PROP_POS_MSEC)
        return round(time) if 0 <= time <= LAST_MOMENT else -1

    def _times(self) -> Iterator[int]:
        """Go through all frames; each can be retrieved when its time is returned."""
        last = -1
        for _ in range(MOST_FRAMES):
            if not self._capture.grab():
                return
            if (time := self._now()) > last:
                self._end = last = time
                yield time

    def _of_shots(self) -> Iterator[int]:
        return frames_of_shots(sketch(time, self._retrieved()) for time in self._times())

    def _at_intervals(self, interval: int) -> Iterator[int]:
        wanted = interval
        for time in self._times():
            if time >= wanted:
                wanted = interval * (time // interval + 1)
                if sketch(time, self._retrieved()).shows:
                    yield time
