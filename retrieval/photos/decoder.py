"""Decode the open file of a photo of any format: upright, bounded in size, grey or colour."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from index.errors import CairnError
from index.extras import install_command
from retrieval.photos import jpeg
from retrieval.photos.colours import to_srgb
from retrieval.photos.options import ImageOptions
from retrieval.photos.pdf import PdfPage, is_pdf, pdf_page
from retrieval.photos.reasons import system_reason
from retrieval.photos.remarks import NONE, Remarks
from retrieval.photos.tiff import Page, is_tiff, no_page, photo_page, to_bytes_range
from retrieval.photos.work import check_parts, check_strips, refuse_large

# ImageOptions.max_pixels replaces Pillow's own limit: `_open` checks it before anything is decoded.
Image.MAX_IMAGE_PIXELS = None

# Pillow reads many other formats, some through other programs (PostScript): only formats of photos are allowed.
Image.init()
_FORMATS: tuple[str, ...] = ("JPEG", "PNG", "TIFF", "WEBP", "GIF", "BMP", "PPM", "AVIF")
_FORMATS = tuple(name for name in _FORMATS if name in Image.OPEN)  # Pillow may be built without some
_HEIC_BRANDS = frozenset((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1"))
GREY, COLOUR, ORIENTATION, PAGES = "grey", "colour", "orientation", "pages"
"""What may be wanted of a photo."""
_ORIENTATION_TAG = 0x0112
_PHOTOMETRIC_TAG = 262
_LARGEST_IN_MEMORY = 1 << 28  # bytes of a JPEG that begins too late
# A JPEG decoder's own reduction stays above the working size by this factor: measured on photos, the result is then as
# close to a Lanczos reduction as that of a full decode; at 1.0 the error is half as large again.
_DRAFT_MARGIN = 1.9
_BAND = 512  # rows of a picture that is not reduced, at a time
_FILM_HEADS = (b"\x1a\x45\xdf\xa3", b"\x30\x26\xb2\x75", b"\0\0\1\xba", b"\0\0\1\xb3")  # Matroska, ASF, MPEG
_ANIMATED = frozenset(("GIF", "WEBP", "PNG", "AVIF"))
MOST_BLANK = 32
"""Frames of an animation that are passed over where they show nothing."""
_LEAST_CONTRAST = 16  # grey values between the darkest and the lightest pixel, of a picture that shows something


def in_memory(image: Image.Image, options: ImageOptions, colour: bool) -> NDArray[Any]:
    """Convert an upright image in memory like a file in `decode`."""
    size = working_size(image.size, options)
    return np.ascontiguousarray(_working(image, (0, 0, *image.size), size, colour)[0])


class _Bounded(io.BufferedReader):
    """An open file that limits reads to its actual length, as decoders trust the lengths that a file states.

    Otherwise a file of a few bytes could make them allocate 4 GB. If `head` is not empty, it replaces the first bytes.
    """

    def __init__(self, handle: int) -> None:
        super().__init__(io.FileIO(handle, closefd=False))
        self.length = os.fstat(handle).st_size
        self.head = b""

    def read(self, size: int | None = -1, /) -> bytes:
        place = self.tell()
        if size is not None and size > io.DEFAULT_BUFFER_SIZE:
            size = max(0, min(size, self.length - place))
        data = super().read(size)
        if place < len(self.head):
            instead = self.head[place : place + len(data)]
            data = instead + data[len(instead) :]
        return data


@dataclass(frozen=True)
class Decoded:
    """Result of decoding a photo."""

    # (H, W) float32 or (H, W, 3) uint8; empty for `ORIENTATION` and `PAGES`, except for `PAGES` of a film: the times
    # of its other frames, (N,) int64, milliseconds
    pixels: NDArray[Any]
    width: int  # of the upright original; 1 for `PAGES`
    height: int
    orientation: int  # its EXIF orientation, 1 to 8
    remarks: Remarks = NONE  # remarks on how it was read
    page: int = 1  # its page in the file, from 1; in a film, its time in milliseconds


def decode(
    handle: int,
    options: ImageOptions,
    wanted: str,
    page: int | None = None,
    opened: Callable[[int], None] = lambda pixels: None,
    every: float | None = None,
) -> Decoded:
    """Decode an open file of a photo, reduce it and turn it upright.

    `wanted` is `GREY`, `COLOUR`, or `ORIENTATION` or `PAGES`, for which no pixel is decoded: for the latter, the
    remarks have the number of other pages. By default, the page is the one that has the name of the file. `opened` is
    called with the number of pixels before they are decoded. `every` is the interval of the frames of a film that are
    pages, seconds (0: by shots); with None, films are not decoded. The message of a CairnError is only the reason.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"PIL\.")  # damaged metadata does not matter here
            with _Bounded(handle) as file:
                if every is not None and _is_film(file):
                    return _decode_film(file, options, wanted, page, opened, every)
                return _decode(file, options, wanted, page, opened)
    except CairnError:
        raise
    except Exception as error:  # a decoder may raise anything on a damaged file: OSError, SyntaxError, struct.error...
        raise CairnError(reason_of(error)) from error


def _decode(
    file: _Bounded, options: ImageOptions, wanted: str, number: int | None, opened: Callable[[int], None]
) -> Decoded:
    colour = wanted == COLOUR
    page = _page(file, number)
    remarks = Remarks(pages=page.others if page is not None else 0)
    if wanted == PAGES:
        return Decoded(np.empty((0, 0), np.float32), 1, 1, 1, remarks, page.number if page is not None else 1)
    box: tuple[float, float, float, float] | None = None
    if isinstance(page, PdfPage):
        opened(options.max_pixels)  # the number of pixels is not known before
        image = page.draw(options.max_pixels)
        size = image.size
    elif page is not None and page.is_deep:
        image = page.unpack(file, file.length, options.max_pixels)
        size = image.size
    else:
        image = _open(file, options)
        size = image.size
        if image.format in ("JPEG", "MPO"):
            # The decoder scales by 1/2, 1/4 or 1/8 in the DCT domain, and returns the stored luma without colours.
            width, height = (int(_DRAFT_MARGIN * side) for side in working_size(size, options))
            drafted = image.draft("RGB" if colour else "L", (max(1, width), max(1, height)))
            box = drafted[1] if drafted else None
        _refuse_large(image, size, options.max_pixels)
        opened(min(size[0] * size[1], options.max_pixels))
        if wanted == ORIENTATION:
            return Decoded(np.empty((0, 0), np.float32), *size, _orientation(image))
        if image.format in ("JPEG", "MPO"):
            remarks = jpeg.load(image)
        else:
            image.load()
            image, blank = _first_shown(image, options.max_pixels, opened)
            remarks = replace(remarks, blank=blank)
    if box is None:
        size = image.size
        box = (0, 0, *size)
    upright = _orientation(image)
    working, over_dark = _working(image, box, working_size(size, options), colour)
    del image  # rotating a large one takes as much memory again
    working = np.ascontiguousarray(_turn(working, upright))
    return Decoded(working, *(size if upright < 5 else size[::-1]), upright, replace(remarks, over_dark=over_dark))


def _is_film(file: _Bounded) -> bool:
    """Whether a file is a film by its first bytes: no list of other files that a decoder of films would open."""
    head = file.read(64)
    is_boxed = head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip") and not is_heic(head)
    return is_boxed or head.startswith(_FILM_HEADS) or (head.startswith(b"RIFF") and head[8:12] == b"AVI ")


def _decode_film(
    file: _Bounded, options: ImageOptions, wanted: str, time: int | None, opened: Callable[[int], None], every: float
) -> Decoded:
    from retrieval.photos.films import Film

    film = Film(file, options.max_pixels, is_whole=wanted == PAGES)
    opened(film.work)
    nothing = np.empty((0, 0), np.float32)
    if wanted == PAGES:
        times = np.array(film.survey(every), np.int64)
        return Decoded(times, 1, 1, 1, Remarks(film.missing, pages=len(times)))
    if wanted == ORIENTATION:
        return Decoded(nothing, *film.size, 1)
    time, image = film.frame(time)
    size = working_size(image.size, options)
    pixels, _ = _working(image, (0, 0, *image.size), size, wanted == COLOUR)
    return Decoded(np.ascontiguousarray(pixels), *image.size, 1, page=time)


def _page(file: _Bounded, number: int | None) -> Page | PdfPage | None:
    """Find the page of the photo, and make a TIFF begin with it; None for files of one photo."""
    file.seek(0)
    head = file.read(64)
    file.head = b""
    if is_pdf(head):
        return pdf_page(file, number)
    if is_tiff(head) and (page := photo_page(file, number)) is not None:
        file.head = page.header
        return page
    if number is not None and number > 1:
        raise no_page(number, 1)
    return None


def _open(file: _Bounded, options: ImageOptions) -> Image.Image:
    """Read only the header, and refuse files that take too much work."""
    file.seek(0)
    head = file.read(64)
    if not head:
        raise CairnError("the file is empty")
    formats = _FORMATS
    if is_heic(head):
        register_heic()
        formats = ("HEIF",)
    check_parts(file, file.length, options.max_pixels)
    try:
        image = Image.open(file, formats=formats)
    except UnidentifiedImageError:
        start = jpeg.first_marker(head)
        if not start or file.length > _LARGEST_IN_MEMORY:
            raise
        file.seek(start)
        whole = io.BytesIO(file.read())
        check_parts(whole, file.length, options.max_pixels)
        image = Image.open(whole, formats=("JPEG", "MPO"))
    check_strips(file, file.length, getattr(image, "tag_v2", {}), image.size, options.max_pixels)
    return image


def _first_shown(image: Image.Image, max_pixels: int, opened: Callable[[int], None]) -> tuple[Image.Image, int]:
    """Seek the first frame of an animation that shows something; return it and the number of blank ones before it.

    If there is no such frame among the first, or a frame is damaged, use the first one.
    """
    # Frames of a GIF are not counted in advance: that takes as long as reading all of it.
    if image.format not in _ANIMATED or (image.format != "GIF" and getattr(image, "n_frames", 1) == 1):
        return image, 0
    if not _is_blank(image):
        return image, 0
    first, pixels = image.copy(), image.width * image.height
    most = min(MOST_BLANK, max_pixels // pixels - 1)
    opened(pixels * (most + 1))
    with contextlib.suppress(
        Exception
    ):  # a decoder may raise anything on a damaged file, and EOFError after the last frame
        for frame in range(1, most + 1):
            image.seek(frame)
            if image.size != first.size:  # a frame of GIF may make the picture larger
                break
            image.load()
            if not _is_blank(image):
                return image, frame
    return first, 0


def _is_blank(image: Image.Image) -> bool:
    """Whether a picture is of one colour, or nearly so."""
    plain = _plain(image)
    return _contrast(_opaque(plain)[0] if plain.mode == "RGBA" else plain) < _LEAST_CONTRAST


def _refuse_large(image: Image.Image, size: tuple[int, int], max_pixels: int) -> None:
    """Refuse a photo of more pixels than a decoder may hold; for most JPEGs, pixels after the decoder's reduction."""
    held = size if image.info.get("progressive") else image.size
    # A TIFF's buffer has the stored size, which its tags may set apart from the size after orientation.
    for width, height in {held, getattr(image, "_tile_size", held)}:
        refuse_large(width, height, size, max_pixels)


def is_heic(head: bytes) -> bool:
    """Whether a file whose first bytes are these is HEIC."""
    return head[4:8] == b"ftyp" and head[8:12] in _HEIC_BRANDS


def register_heic() -> None:
    """Load the reader of HEIC; raises CairnError if it is not installed."""
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
        return Image.fromarray(to_bytes_range(np.asarray(image, np.float32), whole=mode == "I"))
    if image.has_transparency_data:
        return image.convert("RGBA")
    if mode == "1":
        return image.convert("L")
    if mode == "LAB":
        return image.getchannel(0)
    return image if mode in ("L", "RGB") else image.convert("RGB")


def _working(
    image: Image.Image, box: tuple[float, float, float, float], size: tuple[int, int], colour: bool
) -> tuple[NDArray[Any], bool]:
    """Make the working image: float32 luma (H, W), or uint8 RGB (H, W, 3); return whether it was blended with black.

    Colours are sRGB. Luma is that of the stored values, whatever their colour space.
    """
    profile = image.info.get("icc_profile")
    if colour and profile and image.mode == "CMYK":
        image, profile = to_srgb(image, profile), None
    image, box = _averaged(_plain(image), box, size)
    over_dark = False
    if image.mode == "RGBA":
        image, over_dark = _opaque(image)
    if colour and (image.size, box) == (size, (0, 0, *size)):
        # Pixel by pixel, and a few rows at a time: a large one would need its memory several times over.
        working = np.empty((size[1], size[0], 3), np.uint8)
        for top in range(0, size[1], _BAND):
            part = image.crop((0, top, size[0], min(top + _BAND, size[1])))
            working[top : top + _BAND] = _coloured(part, (0, 0, *part.size), part.size, profile)
        return working, over_dark
    return _coloured(image, box, size, profile) if colour else _resampled(image, box, size, colour), over_dark


def _coloured(
    image: Image.Image, box: tuple[float, float, float, float], size: tuple[int, int], profile: bytes | None
) -> NDArray[np.uint8]:
    """Resample like `_resampled`, and convert images with a profile to sRGB."""
    working = _resampled(image, box, size, colour=True)
    if profile and image.mode in ("L", "RGB"):
        picture = Image.fromarray(working)
        working = np.asarray(to_srgb(picture.getchannel(0) if image.mode == "L" else picture, profile))
    return working


def _averaged(
    image: Image.Image, box: tuple[float, float, float, float], size: tuple[int, int]
) -> tuple[Image.Image, tuple[float, float, float, float]]:
    """Average blocks of whole pixels down to twice a size, to bound time and memory of later steps."""
    factors = max(1, image.width // (2 * size[0])), max(1, image.height // (2 * size[1]))
    if max(factors) == 1:
        return image, box
    return image.reduce(factors), (0, 0, box[2] / factors[0], box[3] / factors[1])


def _opaque(image: Image.Image) -> tuple[Image.Image, bool]:
    """Blend transparency with white, or with black if nothing is visible on white; return whether it was black."""
    white, black = (_laid_over(image, shade) for shade in (255, 0))
    if _contrast(white) < _LEAST_CONTRAST < _contrast(black):
        return black, True
    return white, False


def _laid_over(image: Image.Image, shade: int) -> Image.Image:
    ground = Image.new("RGB", image.size, (shade, shade, shade))
    ground.paste(image, mask=image.getchannel("A"))
    return ground


def _contrast(image: Image.Image) -> int:
    low, high = image.convert("L").getextrema()
    return int(high - low)  # type: ignore[operator]  # of one channel it is two numbers


def _resampled(
    image: Image.Image, box: tuple[float, float, float, float], size: tuple[int, int], colour: bool
) -> NDArray[Any]:
    """Resample the `box` of an image to `size`, anti-aliased: float32 luma (H, W), or uint8 RGB (H, W, 3)."""
    if not colour or image.mode == "F":
        image = image.convert("F")  # from RGB: (299 R + 587 G + 114 B) / 1000, not rounded
    if image.size != size or box != (0, 0, *size):
        image = image.resize(size, Image.Resampling.LANCZOS, box)
    if image.mode == "F":
        grey = np.clip(np.asarray(image, np.float32), 0, 255)
        return np.repeat(np.rint(grey).astype(np.uint8)[:, :, None], 3, axis=2) if colour else grey
    return np.asarray(image.convert("RGB"), np.uint8)


def _orientation(image: Image.Image) -> int:
    """Return the EXIF orientation 1..8 that is still to be applied; 1 if EXIF is damaged."""
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
    """Return in one plain sentence, without the path, why a file could not be read."""
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
    is_readable = detail.isprintable() and detail not in ("", "None")
    return f"the file is damaged ({detail})" if is_readable else "the file is damaged"
