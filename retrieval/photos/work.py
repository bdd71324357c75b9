"""Estimate the work of decoding a file beyond its pixels, from its headers, before anything is decoded.

A decoder processes all pixels for each scan of a progressive JPEG, reads a strip of a TIFF as often as it is
referenced, and handles each chunk of a PNG separately. So a file of half a megabyte can keep it busy for minutes.
"""

import re
import struct
from collections.abc import Iterable, Mapping
from typing import IO, Any

from index.errors import CairnError

SCANS = 20
"""Scans that a photo with the most pixels may have; a smaller one may have more. Encoders write up to a dozen."""

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")  # not data (FF00), a restart (FFD0 to FFD7) or filling
_SOS, _EOI, _ALONE = 0xDA, 0xD9, (0x01, 0xD8)
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE = frozenset((0xC2, 0xC6, 0xCA, 0xCE))
_HEADER = 1 << 16  # bytes in which the first scan of most JPEGs begins
_WALKED = 1 << 28  # bytes of a JPEG that are examined, at most
_OFFSETS, _LENGTHS, _COMPRESSION = (273, 324), (279, 325), 259  # tags of strips and of tiles
_JPEG_STRIPS = 7


class PhotoTooLarge(CairnError):
    """The photo has more pixels than `ImageOptions.max_pixels`, or its decoder would process more."""


def refuse_large(width: int, height: int, size: tuple[int, int], max_pixels: int) -> None:
    """Refuse a photo of this size if its decoder holds too many pixels, width x height; CairnError with the reason."""
    if width < 1 or height < 1:
        raise CairnError("the photo has no pixels")
    if width * height > max_pixels:
        raise PhotoTooLarge(
            f"the photo is {size[0]}x{size[1]} pixels, which is more than the limit of {max_pixels} pixels"
        )


def check_parts(file: IO[bytes], length: int, max_pixels: int) -> None:
    """Refuse a JPEG with too many scans, and a JPEG or PNG in far more parts than its length is reason for.

    Leaves the file at its start. The message of the CairnError is only the reason.
    """
    file.seek(0)
    head = file.read(len(_PNG))
    file.seek(0)
    most = 1000 + length // 256
    if head == _PNG:
        _check_chunks(file, most)
    elif head.startswith(_JPEG):
        _check_scans(_scans(file, _WALKED, most), max_pixels)
    file.seek(0)


def check_strips(file: IO[bytes], length: int, tags: Mapping[int, Any], size: tuple[int, int], max_pixels: int) -> None:
    """Refuse a TIFF whose strips or tiles share bytes, if reading them takes far longer than their pixels do.

    `tags` and `size` are those of the page to decode.
    """
    pixels = size[0] * size[1]
    for offsets, lengths in zip(_OFFSETS, _LENGTHS, strict=True):
        strips = list(zip(_whole(tags.get(offsets)), _whole(tags.get(lengths)), strict=False))
        if sum(bytes_ for _, bytes_ in strips) > length + 16 * pixels:
            raise CairnError("its strips share the same bytes, which no photo's do")
        if tags.get(_COMPRESSION) == _JPEG_STRIPS:
            for start, bytes_ in dict.fromkeys(strips):
                file.seek(start)
                scans, _, _ = _scans(file, min(bytes_, _WALKED), 1000 + bytes_ // 256)
                _check_scans((scans, *size), max_pixels)


def _check_chunks(file: IO[bytes], most: int) -> None:
    place = len(_PNG)
    for _ in range(most):
        file.seek(place)
        head = file.read(8)
        if len(head) < 8 or head.endswith(b"IEND"):
            return
        place += 12 + int.from_bytes(head[:4], "big")
    raise _in_parts(most)


def _scans(file: IO[bytes], length: int, most: int) -> tuple[int, int, int]:
    """Count the scans of a JPEG that a decoder processes; return them with its width and height."""
    data = file.read(min(length, _HEADER))
    scans = width = height = components = place = 0
    progressive = False
    for _ in range(most):
        marker = _MARKER.search(data, place)
        if marker is None or marker.end() + 8 > len(data):
            if more := file.read(min(length - len(data), 4 * len(data))):
                data += more
                continue
            if marker is None:
                break
        code, place = data[marker.end() - 1], marker.end()
        segment = data[place : place + 8]
        if code == _EOI:
            break
        if code in _ALONE:
            continue
        if code in _FRAMES and not components and len(segment) == 8:  # a decoder refuses a second one
            height, width, components = struct.unpack_from(">HHB", segment, 3)
            progressive = code in _PROGRESSIVE
        if code == _SOS and len(segment) > 2:
            scans += 1
            if scans == 1 and not progressive and segment[2] >= components:
                break  # a decoder reads no further
        place += int.from_bytes(segment[:2], "big")
    else:
        raise _in_parts(most)
    return scans, width, height


def _check_scans(counts: tuple[int, int, int], max_pixels: int) -> None:
    scans, width, height = counts
    if scans * width * height > SCANS * max_pixels:
        raise PhotoTooLarge(
            f"the photo has {scans} scans of {width}x{height} pixels, which is more than the limit of "
            f"{SCANS * max_pixels} pixels in all"
        )


def _in_parts(most: int) -> CairnError:
    return CairnError(f"the file is in more than {most} parts, which is far more than a photo of its length has")


def _whole(values: object) -> Iterable[int]:
    items = values if isinstance(values, tuple | list) else () if values is None else (values,)
    return [value for value in items if isinstance(value, int)]
