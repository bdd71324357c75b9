"""Conversion of callers' images, arrays of any usual type, to the grey values that features are made from."""

import io
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageOps

from index.errors import CairnError
from retrieval.photos.decoding import Photo, colour_of_image, photo_of_image, read_colour
from retrieval.photos.options import ImageOptions

_LUMA = np.array([0.299, 0.587, 0.114], np.float32)  # Rec. 601, as Pillow converts colours
_ROUNDING = 1e-4  # by which floats may exceed 0 to 1, as after resampling


def read_image(path: "str | PathLike[str]", max_side: int = 1024) -> NDArray[np.uint8]:
    """Read a photo as indexing does, in colour: upright, transparency over white, whatever its format.

    Parameters
    ----------
    path : str or path
        The file: JPEG, PNG, TIFF, WebP, GIF, BMP, PPM or AVIF; HEIC with an optional package.
    max_side : int
        Longest side, pixels: larger photos are reduced, without aliasing; 0: no limit. `cairn index` uses 1024.

    Returns
    -------
    ndarray, shape (H, W, 3), uint8
        RGB.

    Raises
    ------
    CairnError
        The file cannot be used.

    Examples
    --------
    >>> import os
    >>> import skimage.data
    >>> from retrieval.library.parts.images import read_image
    >>> read_image(os.path.join(os.path.dirname(skimage.data.__file__), "coffee.png"), max_side=300).shape
    (200, 300, 3)
    """
    try:
        return read_colour(Path(path), ImageOptions(max_side=max_side))
    except CairnError as error:
        raise CairnError(f"{path} cannot be used: {error}.") from error


def as_image(image: ArrayLike | Image.Image) -> NDArray[np.float32]:
    """Convert an image to grey values of single precision, as `cairn index` does with a file.

    Colours become Rec. 601 luma, transparency is blended with white, more than 8 bits are scaled without rounding. The
    pixels of a PNG give exactly the grey values of indexing at the same size. For a JPEG, indexing uses the stored
    luma, which differs from the luma of its colours by about one grey value, due to rounding.

    Parameters
    ----------
    image : ndarray, shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), or PIL.Image.Image
        Grey, RGB or RGBA; uint8 (0 to 255), uint16 (0 to 65535) or floats (0 to 1).

    Returns
    -------
    ndarray, shape (H, W), float32
        0 to 255.

    Raises
    ------
    CairnError
        It has another shape or type, no pixels, or values that are not finite or out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from retrieval.library.parts.images import as_image
    >>> as_image(np.array([[[255, 0, 0], [0, 0, 255]]], np.uint8))
    array([[76.245, 29.07 ]], dtype=float32)
    >>> as_image(np.full((2, 2), 0.5))
    array([[127.5, 127.5],
           [127.5, 127.5]], dtype=float32)
    """
    return as_photo(image, ImageOptions(max_side=0)).grey


def as_photo(image: ArrayLike | Image.Image, options: ImageOptions | None = None) -> Photo:
    """Convert an image in memory like a file in `read_photo`: see `as_image`; reduced if larger than the limit."""
    if not isinstance(image, Image.Image):
        image = _as_pillow(_checked(image))
    return photo_of_image(_with_pixels(image), options)


def as_colour(image: ArrayLike | Image.Image, max_side: int = 0) -> NDArray[np.uint8]:
    """Convert an image in memory (see `as_image`) for display: RGB (H, W, 3) uint8, at most `max_side` (0: any)."""
    return colour_of_image(_as_bytes(image), ImageOptions(max_side=max_side))


def encode_image(image: ArrayLike | Image.Image) -> bytes:
    """Encode an image in memory (see `as_image`) as PNG: without loss, except of fractions of uint8 values."""
    upright = ImageOps.exif_transpose(_as_bytes(image))
    if upright.mode not in ("1", "L", "LA", "I;16", "RGB", "RGBA"):
        upright = upright.convert("RGB")
    file = io.BytesIO()
    upright.save(file, "PNG", compress_level=1)
    return file.getvalue()


def _as_bytes(image: ArrayLike | Image.Image) -> Image.Image:
    """An image in memory as one of uint8."""
    if not isinstance(image, Image.Image):
        pixels = _checked(image)
        if pixels.dtype == np.uint16:
            pixels = (pixels >> 8).astype(np.uint8)
        elif pixels.dtype != np.uint8:
            pixels = np.rint(255 * np.clip(_parts_of_one(pixels), 0, 1)).astype(np.uint8)
        image = Image.fromarray(np.ascontiguousarray(pixels))
    return _with_pixels(image)


def _with_pixels(image: Image.Image) -> Image.Image:
    if min(image.size) < 1:
        raise CairnError("The image has no pixels.")
    return image


def _checked(image: ArrayLike) -> NDArray[Any]:
    """An image as an array (H, W) or (H, W, 3 or 4) of a type that images have."""
    try:
        pixels = np.asarray(image)
    except ValueError:
        pixels = np.empty(0)  # rows of several lengths
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.ndim != 2 and not (pixels.ndim == 3 and pixels.shape[2] in (3, 4)):
        raise CairnError(
            f"An image is an array of shape (H, W), (H, W, 3) or (H, W, 4), not {_written(pixels.shape)}: give one "
            "image at a time, its channels last."
        )
    if not pixels.size:
        raise CairnError("The image has no pixels.")
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)
    if pixels.dtype.kind != "f" and pixels.dtype not in (np.uint8, np.uint16):
        raise CairnError(
            f"An image has values of uint8, uint16 or floats from 0 to 1, not {pixels.dtype}: convert it, as by "
            f"{'image.astype(float)' if pixels.dtype.kind == 'b' else 'image.astype(np.uint8)'}."
        )
    return pixels


def _as_pillow(pixels: NDArray[Any]) -> Image.Image:
    """A checked array as an image of a mode that decoding knows: L, RGB, RGBA, I;16, or F of values from 0 to 1."""
    if pixels.dtype == np.uint8 or (pixels.dtype == np.uint16 and pixels.ndim == 2):
        return Image.fromarray(np.ascontiguousarray(pixels))
    # Decoding distinguishes 0 to 1 from 0 to 255 by the largest value.
    parts = pixels / np.float32(65535) if pixels.dtype == np.uint16 else _parts_of_one(pixels)
    if parts.ndim == 3:
        grey = parts[:, :, :3] @ _LUMA
        if parts.shape[2] == 4:
            grey = 1 + (grey - 1) * parts[:, :, 3]
        parts = grey
    return Image.fromarray(np.clip(parts, 0, 1).astype(np.float32))


def _parts_of_one(pixels: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return floats unchanged, if all are from 0 to 1, up to rounding."""
    low, high = float(pixels.min()), float(pixels.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise CairnError("The image has values that are not finite: give each pixel a number.")
    if low < -_ROUNDING or high > 1 + _ROUNDING:
        raise CairnError(
            f"An image of floats has values from 0 to 1, not from {low:g} to {high:g}: divide it by its largest value, "
            "such as 255."
        )
    return pixels.astype(np.float32)


def _written(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})" if len(shape) != 1 else f"({shape[0]},)"
