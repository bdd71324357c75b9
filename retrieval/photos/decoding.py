"""The one reader of photos: upright, bounded in size, grey or colour, whatever the file."""

from __future__ import annotations

import stat
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from index.errors import CairnError
from retrieval.metadata.pages import is_film, split_page
from retrieval.photos.apart import decode_apart
from retrieval.photos.decoder import COLOUR, GREY, ORIENTATION, PAGES, Decoded, in_memory, reason_of
from retrieval.photos.options import ImageOptions
from retrieval.photos.reasons import system_reason
from retrieval.photos.remarks import NONE, Remarks
from retrieval.photos.tiff import MOST_PAGES

_LUMA = np.array([0.299, 0.587, 0.114])  # Rec. 601


@dataclass(frozen=True)
class Photo:
    """A photo's working image, and its place in the upright original.

    Points are (x, y) in pixels with the centre of the top-left pixel at (0, 0), in both images.
    """

    grey: NDArray[np.float32]  # rec. 601 luma of the working image, 0..255
    width: int  # size of the upright original, pixels
    height: int
    remarks: Remarks = field(default=NONE, kw_only=True)  # remarks on how it was read
    # mask of printed text in the working image, where no features are extracted; None: not detected
    text: NDArray[np.bool_] | None = field(default=None, kw_only=True)

    @property
    def scale(self) -> tuple[float, float]:
        """Pixels of the original to one pixel of the working image, along x and along y."""
        return self.width / self.grey.shape[1], self.height / self.grey.shape[0]

    def to_original(self, points: NDArray[np.floating]) -> NDArray[np.floating]:
        """Map points (N, 2) of the working image to the upright original, as float32 (float64 stays float64)."""
        points, scale = self._points(points)
        return np.asarray((points + points.dtype.type(0.5)) * scale - points.dtype.type(0.5))

    def to_working(self, points: NDArray[np.floating]) -> NDArray[np.floating]:
        """Map points (N, 2) of the upright original to the working image, as float32 (float64 stays float64)."""
        points, scale = self._points(points)
        return np.asarray((points + points.dtype.type(0.5)) / scale - points.dtype.type(0.5))

    def _points(self, points: NDArray[np.floating]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        points = np.asarray(points)
        if points.dtype != np.float64:
            points = points.astype(np.float32)
        return points, np.array(self.scale, points.dtype)


def read_photo(path: Path, options: ImageOptions | None = None) -> Photo:
    """Read a photo as an upright grey working image.

    The content decides the format, not the name. EXIF orientation is applied, transparency is blended with white (with
    black if only that shows anything), and more than 8 bits are scaled to 0..255. Unless the path names a page
    (`retrieval.metadata.pages`), the photo is the first frame of an animation that shows something, the largest page of
    a TIFF, the first page of a PDF, or a frame of the first shot of a film. A photo larger than ``max_side`` is reduced
    with an anti-aliasing filter, an elongated one less (see `ImageOptions.panorama`). The result is deterministic.

    Raises CairnError if the file cannot be used; its message is only the reason, without the path.
    """
    read = _read(Path(path), options or ImageOptions(), GREY)
    return Photo(read.pixels, read.width, read.height, remarks=read.remarks)


def read_colour(path: Path, options: ImageOptions | None = None) -> NDArray[np.uint8]:
    """Read a photo as an upright colour image (H, W, 3), RGB uint8, of the size `read_photo` gives; for pictures."""
    return read_colour_sized(path, options)[0]


def read_colour_sized(path: Path, options: ImageOptions | None = None) -> tuple[NDArray[np.uint8], int, int]:
    """Read a photo like `read_colour`, and also return the width and height of the upright original."""
    read = _read(Path(path), options or ImageOptions(), COLOUR)
    return read.pixels, read.width, read.height


def read_photo_in_colour(path: Path, options: ImageOptions | None = None) -> tuple[Photo, NDArray[np.uint8]]:
    """Read a photo as `read_photo` does, with its luma to the nearest, and its pixels (H, W, 3), RGB uint8."""
    read = _read(Path(path), options or ImageOptions(), COLOUR)
    grey = (read.pixels @ _LUMA).astype(np.float32)
    return Photo(grey, read.width, read.height, remarks=read.remarks), read.pixels


def photo_of_image(image: Image.Image, options: ImageOptions | None = None) -> Photo:
    """Convert an upright image in memory like a file in `read_photo`; values of mode F are from 0 to 1, or to 255."""
    return Photo(in_memory(image, options or ImageOptions(), colour=False), *image.size)


def colour_of_image(image: Image.Image, options: ImageOptions | None = None) -> NDArray[np.uint8]:
    """Convert an image in memory like a file in `read_colour`: RGB (H, W, 3) uint8; see `photo_of_image`."""
    return in_memory(image, options or ImageOptions(), colour=True)


def mirror_image(photo: Photo) -> Photo:
    """Exchange left and right of a photo."""
    text = None if photo.text is None else np.ascontiguousarray(photo.text[:, ::-1])
    return replace(photo, grey=np.ascontiguousarray(photo.grey[:, ::-1]), text=text)


def decode_content(content: bytes, options: ImageOptions) -> Decoded:
    """Decode the content of a file as `read_colour` does a file; raises CairnError as `read_photo`."""
    try:
        with tempfile.TemporaryFile() as file:
            file.write(content)
            file.flush()
            return decode_apart(file.fileno(), options, COLOUR)
    except OSError as error:
        raise CairnError(reason_of(error)) from error


def read_orientation(path: Path) -> int:
    """Read how a photo that `read_photo` can read is stored: its EXIF orientation, 1 (upright) to 8."""
    return _read(path, ImageOptions(), ORIENTATION).orientation


def other_pages(file: Path) -> list[int]:
    """List the pages of a file that are separate photos: all but the one that has its name, `MOST_PAGES` at most."""
    read = _read(file, ImageOptions(), PAGES)
    return [page for page in range(1, min(read.remarks.pages + 1, MOST_PAGES) + 1) if page != read.page]


def other_frames(film: Path, every: float) -> tuple[list[int], float]:
    """List the times (ms) of frames of a film that are photos, except the one that has its name; and the missing share.

    `every` is the interval, seconds; 0: by shots. There are `MOST_PAGES` times at most.
    """
    read = _read(film, ImageOptions(), PAGES, every)
    return read.pixels.astype(int).tolist(), read.remarks.missing


def _read(path: Path, options: ImageOptions, wanted: str, every: float = 0) -> Decoded:
    """Open a file and have it decoded: see `decode`; every failure becomes a `CairnError` with the reason."""
    try:
        path, page = split_page(path)
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            next(path.iterdir(), None)  # raises if it is a locked folder
            raise CairnError("it is a folder, not a photo")
        if not stat.S_ISREG(mode):  # opening a pipe would wait for ever
            raise CairnError("it is not a regular file")
        with path.open("rb", buffering=0) as file:
            return decode_apart(file.fileno(), options, wanted, page, every if is_film(path) else None)
    except ValueError as error:  # NUL in the path; messages differ between Python versions
        raise CairnError(system_reason(error)) from error
    except OSError as error:
        raise CairnError(reason_of(error)) from error
