"""The one reader of photos: upright, bounded in size, grey or colour, whatever the file."""

from __future__ import annotations

import importlib
import io
import os
import stat
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from index.errors import CairnError
from index.extras import install_command
from retrieval.photos.options import ImageOptions
from retrieval.photos.reasons import system_reason

# ImageOptions.max_pixels takes the place of Pillow's own limit: it is checked by `_open` before anything is decoded.
Image.MAX_IMAGE_PIXELS = None

# Pillow reads far more, some through other programs (PostScript): only what photos come in is tried.
Image.init()
_FORMATS: tuple[str, ...] = ("JPEG", "PNG", "TIFF", "WEBP", "GIF", "BMP", "PPM", "AVIF")
_FORMATS = tuple(name for name in _FORMATS if name in Image.OPEN)  # Pillow may be built without some
_HEIC_BRANDS = frozenset((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1"))
_ORIENTATION_TAG = 0x0112
_PHOTOMETRIC_TAG = 262
# A JPEG decoder's own reduction is kept this far above the working size: measured on photos, the result is then as
# close to a Lanczos reduction as a full decode's, where at 1.0 it is half as far again.
_DRAFT_MARGIN = 1.9


class PhotoTooLarge(CairnError):
    """The photo has more pixels than `ImageOptions.max_pixels`."""


@dataclass(frozen=True)
class Photo:
    """A photo's working image, and its place in the upright original.

    Points are (x, y) in pixels with the centre of the top-left pixel at (0, 0), in both images.

    Attributes
    ----------
    grey : ndarray of float32, shape (H, W)
        Rec. 601 luma of the working image, 0..255.
    width, height : int
        Size of the upright original, pixels.
    """

    grey: NDArray[np.float32]
    width: int
    height: int

    @property
    def scale(self) -> tuple[float, float]:
        """Pixels of the original to one pixel of the working image, along x and along y."""
        return self.width / self.grey.shape[1], self.height / self.grey.shape[0]

    def to_original(self, points: NDArray[np.floating]) -> NDArray[np.floating]:
        """Take points (N, 2) of the working image to the upright original, as float32 (float64 stays float64)."""
        points, scale = self._points(points)
        return np.asarray((points + points.dtype.type(0.5)) * scale - points.dtype.type(0.5))

    def to_working(self, points: NDArray[np.floating]) -> NDArray[np.floating]:
        """Take points (N, 2) of the upright original to the working image, as float32 (float64 stays float64)."""
        points, scale = self._points(points)
        return np.asarray((points + points.dtype.type(0.5)) / scale - points.dtype.type(0.5))

    def _points(self, points: NDArray[np.floating]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        points = np.asarray(points)
        if points.dtype != np.float64:
            points = points.astype(np.float32)
        return points, np.array(self.scale, points.dtype)


def read_photo(path: Path, options: ImageOptions | None = None) -> Photo:
    """Read a photo as an upright grey working image.

    The content decides the format, not the name. EXIF orientation is applied, transparency is laid over white, the
    first frame of several is taken, and more than 8 bits are scaled to 0..255 without rounding. A photo larger than
    ``max_side`` is reduced with an anti-aliasing filter; the same file gives the same pixels, always.

    Parameters
    ----------
    path : Path
        The file.
    options : ImageOptions, optional
        Limits on the working image and on the file.

    Returns
    -------
    Photo

    Raises
    ------
    CairnError
        The file cannot be used. The message is the reason alone, such as "the file is truncated", without the path.
    """
    grey, width, height = _read(Path(path), options or ImageOptions(), colour=False)
    return Photo(grey, width, height)


def read_colour(path: Path, options: ImageOptions | None = None) -> NDArray[np.uint8]:
    """Read a photo as an upright colour image (H, W, 3), RGB uint8, of the size `read_photo` gives; for pictures.

    Raises
    ------
    CairnError
        As `read_photo`.
    """
    return read_colour_sized(path, options)[0]


def read_colour_sized(path: Path, options: ImageOptions | None = None) -> tuple[NDArray[np.uint8], int, int]:
    """Read a photo as `read_colour` does, and tell the width and height of the upright original too.

    Raises
    ------
    CairnError
        As `read_photo`.
    """
    return _read(Path(path), options or ImageOptions(), colour=True)


def photo_of_image(image: Image.Image, options: ImageOptions | None = None) -> Photo:
    """Take an image in memory as `read_photo` takes that of a file: luma, transparency over white, reduced.

    Parameters
    ----------
    image : PIL.Image.Image
        Upright, of any mode; of mode F, values from 0 to 1, or to 255.
    options : ImageOptions, optional
        Limit on the working image.

    Returns
    -------
    Photo
    """
    return Photo(_in_memory(image, options or ImageOptions(), colour=False), *image.size)


def colour_of_image(image: Image.Image, options: ImageOptions | None = None) -> NDArray[np.uint8]:
    """Take an image in memory as `read_colour` takes that of a file: RGB (H, W, 3) uint8; see `photo_of_image`."""
    return _in_memory(image, options or ImageOptions(), colour=True)


def _in_memory(image: Image.Image, options: ImageOptions, colour: bool) -> NDArray[Any]:
    size = _working_size(image.size, options)
    return np.ascontiguousarray(_reduce(_plain(image), (0, 0, *image.size), size, colour))


def read_orientation(path: Path) -> int:
    """Read how a photo that `read_photo` can read is stored: its EXIF orientation, 1 (upright) to 8."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        with _Bounded(path) as file:
            return _orientation(_open(file, ImageOptions()))


def _read(path: Path, options: ImageOptions, colour: bool) -> tuple[NDArray[Any], int, int]:
    """Decode, reduce and turn upright; every failure becomes a `CairnError` with the reason."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"PIL\.")  # damaged metadata does not matter here
            mode = _mode(path)
            if stat.S_ISDIR(mode):
                next(path.iterdir(), None)  # says so where it is a folder that is locked
                raise CairnError("it is a folder, not a photo")
            if not stat.S_ISREG(mode):  # opening a pipe would wait for ever
                raise CairnError("it is not a regular file")
            with _Bounded(path) as file:
                return _decode(file, options, colour)
    except CairnError:
        raise
    except Exception as error:  # a decoder may raise anything on a damaged file: OSError, SyntaxError, struct.error...
        raise CairnError(_reason(error)) from error


def _mode(path: Path) -> int:
    """Give the type and permissions of a file."""
    try:
        return path.stat().st_mode
    except ValueError as error:  # no path of a file has NUL in it; each Python version says so in other words
        raise CairnError(system_reason(error)) from error


class _Bounded(io.BufferedReader):
    """An open file that is never asked for more than it has: a decoder reads what a part claims to be long.

    Otherwise a file of a few bytes has 4 GB set aside for it.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path))
        self._length = os.fstat(self.fileno()).st_size

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > io.DEFAULT_BUFFER_SIZE:
            size = max(0, min(size, self._length - self.tell()))
        return super().read(size)


def _decode(file: IO[bytes], options: ImageOptions, colour: bool) -> tuple[NDArray[Any], int, int]:
    image = _open(file, options)
    size = image.size
    box: tuple[float, float, float, float] | None = None
    if image.format in ("JPEG", "MPO"):
        # The decoder scales by 1/2, 1/4 or 1/8 in the DCT domain, and gives the stored luma without colour conversion.
        width, height = (int(_DRAFT_MARGIN * side) for side in _working_size(size, options))
        drafted = image.draft("RGB" if colour else "L", (max(1, width), max(1, height)))
        box = drafted[1] if drafted else None
    image.load()
    if box is None:
        size = image.size
        box = (0, 0, *size)
    upright = _orientation(image)
    working = _reduce(_plain(image), box, _working_size(size, options), colour)
    working = np.ascontiguousarray(_turn(working, upright))
    return (working, *(size if upright < 5 else size[::-1]))


def _open(file: IO[bytes], options: ImageOptions) -> Image.Image:
    """Read the header alone, and refuse what is too large."""
    head = file.read(16)
    file.seek(0)
    if not head:
        raise CairnError("the file is empty")
    formats = _FORMATS
    if head[4:8] == b"ftyp" and head[8:12] in _HEIC_BRANDS:
        _register_heic()
        formats = ("HEIF",)
    image = Image.open(file, formats=formats)
    # A TIFF's buffer has the stored size, which its tags may set apart from the size after orientation.
    for width, height in {image.size, getattr(image, "_tile_size", image.size)}:
        if width < 1 or height < 1:
            raise CairnError("the photo has no pixels")
        if width * height > options.max_pixels:
            raise PhotoTooLarge(
                f"the photo is {width}x{height} pixels, which is more than the limit of {options.max_pixels} pixels"
            )
    return image


def _register_heic() -> None:
    try:
        importlib.import_module("pillow_heif").register_heif_opener()
    except ImportError:
        raise CairnError(f"HEIC needs an optional package: {install_command('heic')}") from None


def _working_size(size: tuple[int, int], options: ImageOptions) -> tuple[int, int]:
    longer = max(size)
    if options.max_side == 0 or longer <= options.max_side:
        return size
    width, height = (max(1, round(side * options.max_side / longer)) for side in size)
    return width, height


def _plain(image: Image.Image) -> Image.Image:
    """Bring any mode to L, RGB, RGBA or (for more than 8 bits) F in 0..255."""
    mode = image.mode
    if mode.startswith("I;16"):
        inverted = image.format == "TIFF" and getattr(image, "tag_v2", {}).get(_PHOTOMETRIC_TAG) == 0  # white is zero
        image = image.convert("F")
        return image.point(lambda value: value * (-1 / 257) + 255 if inverted else value * (1 / 257) + 0)
    if mode in ("I", "F"):
        return Image.fromarray(_to_bytes_range(np.asarray(image, np.float32), whole=mode == "I"))
    if image.has_transparency_data:
        return image.convert("RGBA")
    if mode == "1":
        return image.convert("L")
    if mode == "LAB":
        return image.getchannel(0)
    return image if mode in ("L", "RGB") else image.convert("RGB")


def _to_bytes_range(values: NDArray[np.float32], whole: bool) -> NDArray[np.float32]:
    """Scale whole or fractional numbers of unknown range to 0..255: 8 bit, 16 bit or 0..1; else lowest to highest."""
    values = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    if low >= 0 and not whole and high <= 1:
        return values * np.float32(255)
    if low >= 0 and high <= 255:
        return values
    if low >= 0 and whole and high <= 65535:
        return values / np.float32(257)
    # Halved first, for the range of float32 itself does not fit a float32.
    return ((values / 2 - low / 2) * (255 / max(high / 2 - low / 2, 1e-30))).astype(np.float32)


def _reduce(
    image: Image.Image, box: tuple[float, float, float, float], size: tuple[int, int], colour: bool
) -> NDArray[Any]:
    """Resample the `box` of an image to `size`, anti-aliased: float32 luma (H, W), or uint8 RGB (H, W, 3)."""
    # Whole-number averaging down to twice the size first bounds the time and memory of what follows.
    factors = max(1, image.width // (2 * size[0])), max(1, image.height // (2 * size[1]))
    if max(factors) > 1:
        image = image.reduce(factors)
        box = (0, 0, box[2] / factors[0], box[3] / factors[1])
    if image.mode == "RGBA":
        white = Image.new("RGB", image.size, (255, 255, 255))
        white.paste(image, mask=image.getchannel("A"))
        image = white
    if not colour or image.mode == "F":
        image = image.convert("F")  # from RGB: (299 R + 587 G + 114 B) / 1000, not rounded
    if image.size != size or box != (0, 0, *size):
        image = image.resize(size, Image.Resampling.LANCZOS, box)
    if image.mode == "F":
        grey = np.clip(np.asarray(image, np.float32), 0, 255)
        return np.repeat(np.rint(grey).astype(np.uint8)[:, :, None], 3, axis=2) if colour else grey
    return np.asarray(image.convert("RGB"), np.uint8)


def _orientation(image: Image.Image) -> int:
    """Return the EXIF orientation 1..8 that is still to be applied; damaged EXIF counts as none."""
    try:
        value = image.getexif().get(_ORIENTATION_TAG, 1)
    except Exception:  # metadata is no reason to lose a photo
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _turn(image: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Turn a stored image (H, W, ...) upright (EXIF 2.3, tag 0x0112)."""
    if orientation >= 5:
        image = image.swapaxes(0, 1)
    if orientation in (2, 3, 6, 7):
        image = image[:, ::-1]
    if orientation in (3, 4, 7, 8):
        image = image[::-1]
    return image


def _reason(error: Exception) -> str:
    """Say in one plain sentence, without the path, why a file could not be read."""
    if isinstance(error, OSError) and error.errno is not None:
        return system_reason(error)
    if isinstance(error, UnidentifiedImageError):
        return "it is not a photo in a format that can be read, or its header is damaged"
    if isinstance(error, MemoryError):
        return "there is not enough memory to decode it"
    text = str(error).lower()
    if isinstance(error, EOFError) or "truncated" in text or "unexpected end" in text:
        return "the file is truncated"
    if "max_text" in text or "decompressed data too large" in text:
        return "the text stored in the file unpacks to far more than a photo's does"
    detail = " ".join(str(error).split())[:120]
    told = detail.isprintable() and detail not in ("", "None")
    return f"the file is damaged ({detail})" if told else "the file is damaged"
