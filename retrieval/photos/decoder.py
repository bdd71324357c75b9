"""What decodes the open file of a photo: upright, bounded in size, grey or colour, whatever its format."""

from __future__ import annotations

import importlib
import io
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from index.errors import CairnError
from index.extras import install_command
from retrieval.photos.options import ImageOptions
from retrieval.photos.reasons import system_reason
from retrieval.photos.work import PhotoTooLarge, check_parts, check_strips

# ImageOptions.max_pixels takes the place of Pillow's own limit: it is checked by `_open` before anything is decoded.
Image.MAX_IMAGE_PIXELS = None

# Pillow reads far more, some through other programs (PostScript): only what photos come in is tried.
Image.init()
_FORMATS: tuple[str, ...] = ("JPEG", "PNG", "TIFF", "WEBP", "GIF", "BMP", "PPM", "AVIF")
_FORMATS = tuple(name for name in _FORMATS if name in Image.OPEN)  # Pillow may be built without some
_HEIC_BRANDS = frozenset((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1"))
GREY, COLOUR, ORIENTATION = "grey", "colour", "orientation"
"""What may be wanted of a photo."""
_ORIENTATION_TAG = 0x0112
_PHOTOMETRIC_TAG = 262
# A JPEG decoder's own reduction is kept this far above the working size: measured on photos, the result is then as
# close to a Lanczos reduction as a full decode's, where at 1.0 it is half as far again.
_DRAFT_MARGIN = 1.9


def in_memory(image: Image.Image, options: ImageOptions, colour: bool) -> NDArray[Any]:
    """Take an image in memory, upright, as `decode` takes that of a file."""
    size = working_size(image.size, options)
    return np.ascontiguousarray(_reduce(_plain(image), (0, 0, *image.size), size, colour))


class _Bounded(io.BufferedReader):
    """An open file that is never asked for more than it has: a decoder reads what a part claims to be long.

    Otherwise a file of a few bytes has 4 GB set aside for it.
    """

    def __init__(self, handle: int) -> None:
        super().__init__(io.FileIO(handle, closefd=False))
        self.length = os.fstat(handle).st_size

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > io.DEFAULT_BUFFER_SIZE:
            size = max(0, min(size, self.length - self.tell()))
        return super().read(size)


def decode(
    handle: int, options: ImageOptions, wanted: str, opened: Callable[[int], None] = lambda pixels: None
) -> tuple[NDArray[Any], int, int, int]:
    """Decode an open file of a photo, reduce it and turn it upright.

    Parameters
    ----------
    handle : int
        Of the file. It stays open.
    options : ImageOptions
        Limits.
    wanted : str
        `GREY`, `COLOUR`, or `ORIENTATION`, for which no pixel is decoded.
    opened : callable
        Called with the number of pixels before they are decoded.

    Returns
    -------
    ndarray
        (H, W) float32 or (H, W, 3) uint8; without any pixels for `ORIENTATION`.
    int, int
        Width and height of the upright original.
    int
        How it is stored: its EXIF orientation, 1 to 8.

    Raises
    ------
    CairnError
        It cannot be decoded: the reason alone.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"PIL\.")  # damaged metadata does not matter here
            with _Bounded(handle) as file:
                image = _open(file, options)
                opened(image.width * image.height)
                if wanted == ORIENTATION:
                    return np.empty((0, 0), np.float32), *image.size, _orientation(image)
                return _decode(image, options, wanted == COLOUR)
    except CairnError:
        raise
    except Exception as error:  # a decoder may raise anything on a damaged file: OSError, SyntaxError, struct.error...
        raise CairnError(reason_of(error)) from error


def _decode(image: Image.Image, options: ImageOptions, colour: bool) -> tuple[NDArray[Any], int, int, int]:
    size = image.size
    box: tuple[float, float, float, float] | None = None
    if image.format in ("JPEG", "MPO"):
        # The decoder scales by 1/2, 1/4 or 1/8 in the DCT domain, and gives the stored luma without colour conversion.
        width, height = (int(_DRAFT_MARGIN * side) for side in working_size(size, options))
        drafted = image.draft("RGB" if colour else "L", (max(1, width), max(1, height)))
        box = drafted[1] if drafted else None
    image.load()
    if box is None:
        size = image.size
        box = (0, 0, *size)
    upright = _orientation(image)
    working = _reduce(_plain(image), box, working_size(size, options), colour)
    working = np.ascontiguousarray(_turn(working, upright))
    return (working, *(size if upright < 5 else size[::-1]), upright)


def _open(file: _Bounded, options: ImageOptions) -> Image.Image:
    """Read the header alone, and refuse what is too large, or too much work."""
    file.seek(0)
    head = file.read(16)
    file.seek(0)
    if not head:
        raise CairnError("the file is empty")
    formats = _FORMATS
    if is_heic(head):
        register_heic()
        formats = ("HEIF",)
    check_parts(file, file.length, options.max_pixels)
    image = Image.open(file, formats=formats)
    # A TIFF's buffer has the stored size, which its tags may set apart from the size after orientation.
    for width, height in {image.size, getattr(image, "_tile_size", image.size)}:
        if width < 1 or height < 1:
            raise CairnError("the photo has no pixels")
        if width * height > options.max_pixels:
            raise PhotoTooLarge(
                f"the photo is {width}x{height} pixels, which is more than the limit of {options.max_pixels} pixels"
            )
    check_strips(file, file.length, image, options.max_pixels)
    return image


def is_heic(head: bytes) -> bool:
    """Whether a file whose first bytes are these is HEIC."""
    return head[4:8] == b"ftyp" and head[8:12] in _HEIC_BRANDS


def register_heic() -> None:
    """Load what reads HEIC; raises CairnError if that is not installed."""
    try:
        importlib.import_module("pillow_heif").register_heif_opener()
    except ImportError:
        raise CairnError(f"HEIC needs an optional package: {install_command('heic')}") from None


def working_size(size: tuple[int, int], options: ImageOptions) -> tuple[int, int]:
    """Width and height of the working image of a photo of some width and height."""
    longer, wanted = max(size), options.working_side(*size)
    if longer <= wanted:
        return size
    width, height = (max(1, round(side * wanted / longer)) for side in size)
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


def reason_of(error: Exception) -> str:
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
