"""EXIF metadata and the tags of TIFF files, whose directories Pillow reads (TIFF 6.0, BigTIFF, EXIF 2.32)."""

import contextlib
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from PIL import TiffImagePlugin

from retrieval.metadata.bounded import BoundedFile
from retrieval.metadata.dates import read_date

_MAKE, _MODEL, _DESCRIPTION, _DATE_TIME = 0x010F, 0x0110, 0x010E, 0x0132
XMP_TAG, IPTC_TAG, RESOURCES_TAG = 700, 33723, 34377
_EXIF_IFD, _GPS_IFD = 0x8769, 0x8825
_ORIGINAL, _DIGITISED = 0x9003, 0x9004
_LATITUDE_REF, _LATITUDE, _LONGITUDE_REF, _LONGITUDE = 1, 2, 3, 4

_WANTED: dict[int | None, tuple[int, ...]] = {  # by the tag that points to a directory
    None: (_MAKE, _MODEL, _DESCRIPTION, _DATE_TIME, _EXIF_IFD, _GPS_IFD, XMP_TAG, IPTC_TAG, RESOURCES_TAG),
    _EXIF_IFD: (_ORIGINAL, _DIGITISED),
    _GPS_IFD: (_LATITUDE_REF, _LATITUDE, _LONGITUDE_REF, _LONGITUDE),
}
_LARGEST = 32 << 20  # bytes that are read of all directories
_LARGEST_BLOCK = 4 << 20  # bytes of other metadata
_LARGEST_TEXT = 64 << 10  # bytes
_FILLERS = frozenset(  # what cameras write as the description of every photo
    (
        "OLYMPUS DIGITAL CAMERA",
        "DIGITAL CAMERA",
        "SONY DSC",
        "DCIM",
        "MINOLTA DIGITAL CAMERA",
        "KONICA MINOLTA DIGITAL CAMERA",
    )
)


@dataclass(frozen=True)
class Exif:
    """What is used of EXIF; empty where it is not there."""

    original: str | None = None  # DateTimeOriginal; dates are as `retrieval.metadata.dates` writes them
    digitised: str | None = None  # DateTimeDigitized
    changed: str | None = None  # DateTime
    make: str = ""
    model: str = ""
    description: str = ""  # ImageDescription, where it is not what the camera writes into each
    latitude: float | None = None  # degrees, north positive
    longitude: float | None = None  # degrees, east positive


def read_exif(file: BinaryIO) -> tuple[Exif, dict[int, bytes]]:
    """Read EXIF from a block of it, or from a TIFF file; what is damaged is left out.

    Parameters
    ----------
    file : binary file
        It begins with TIFF's header; offsets count from there.

    Returns
    -------
    exif : Exif
    blocks : dict of int to bytes
        Other metadata in the first directory: by `XMP_TAG`, `IPTC_TAG` and `RESOURCES_TAG`.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    bounded = BoundedFile(file, _LARGEST, zeros=True)
    head = bounded.read(16)
    main = _directory(bounded, head)
    times = _directory(bounded, head, _EXIF_IFD, main)
    gps = _directory(bounded, head, _GPS_IFD, main)
    if bounded.error is not None:
        raise bounded.error
    description = _text(main.get(_DESCRIPTION))
    exif = Exif(
        original=read_date(_text(times.get(_ORIGINAL))),
        digitised=read_date(_text(times.get(_DIGITISED))),
        changed=read_date(_text(main.get(_DATE_TIME))),
        make=_text(main.get(_MAKE)),
        model=_text(main.get(_MODEL)),
        description="" if description.upper() in _FILLERS else description,
        latitude=_coordinate(gps.get(_LATITUDE), _text(gps.get(_LATITUDE_REF)), "NS"),
        longitude=_coordinate(gps.get(_LONGITUDE), _text(gps.get(_LONGITUDE_REF)), "EW"),
    )
    order = "<" if head[:1] == b"I" else ">"
    return exif, {tag: _block(main.get(tag), order) for tag in (XMP_TAG, IPTC_TAG, RESOURCES_TAG)}


def _directory(
    file: BoundedFile, head: bytes, pointer: int | None = None, main: Mapping[int, Any] | None = None
) -> dict[int, Any]:
    """Wanted tags of the first directory, or of the one that a tag of it points to."""
    found: dict[int, Any] = {}
    with contextlib.suppress(Exception):  # Pillow raises whatever a damaged file leads it to
        big = head[2:3] == b"+"
        directory = TiffImagePlugin.ImageFileDirectory_v2(head[: 16 if big else 8], group=pointer)
        file.seek(directory.next if pointer is None or main is None else main[pointer])
        directory.load(cast(BinaryIO, file))
        for tag in _WANTED[pointer]:
            with contextlib.suppress(Exception):
                found[tag] = directory[tag]
    return found


def _block(value: Any, order: str) -> bytes:
    """A block of other metadata; IPTC is often stored as whole numbers of 32 bits."""
    if isinstance(value, tuple):
        value = struct.pack(f"{order}{len(value)}I", *value) if all(type(one) is int for one in value) else b""
    return value if isinstance(value, bytes) and len(value) <= _LARGEST_BLOCK else b""


def _text(value: Any) -> str:
    """A text, which Pillow takes for Latin-1; UTF-8 where a program has written that."""
    first = value[0] if isinstance(value, tuple) and value else value
    data = first.encode("latin-1") if isinstance(first, str) else first
    if not isinstance(data, bytes) or len(data) > _LARGEST_TEXT:
        return ""
    data = data.partition(b"\0")[0]
    try:
        return data.decode("utf-8").strip()
    except UnicodeDecodeError:
        return data.decode("latin-1").strip()


def _coordinate(value: Any, side: str, sides: str) -> float | None:
    """Degrees, of degrees, minutes and seconds and the side of the equator or meridian that they are on."""
    side = side.upper()[:1]
    if not isinstance(value, tuple) or not side or side not in sides:
        return None
    degrees = 0.0
    for place, (part, unit) in enumerate(zip(value, (1, 60, 3600), strict=False)):
        if not isinstance(part, TiffImagePlugin.IFDRational):
            return None
        if place and (part.numerator, part.denominator) == (0, 0):  # minutes or seconds that are not given
            continue
        degrees += float(part) / unit
    if not math.isfinite(degrees) or degrees < 0:
        return None
    return -degrees if side in "SW" else degrees
