"""EXIF metadata and the tags of TIFF files, whose directories Pillow reads (TIFF 6.0, BigTIFF, EXIF 2.32)."""

import contextlib
import io
import math
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from PIL import TiffImagePlugin

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
_BLOCKS = (XMP_TAG, IPTC_TAG, RESOURCES_TAG)
_LARGEST_BLOCK = 4 << 20  # bytes of other metadata
_LARGEST_VALUE = 64 << 10  # bytes of any other tag
_MOST_ENTRIES = 65_535  # of a directory: what TIFF can count; BigTIFF's could be any number
_BYTE = 1
_SIZES = {_BYTE: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}  # by TIFF's type
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
    """What is used of EXIF; empty if it is not there."""

    original: str | None = None  # DateTimeOriginal; dates are as `retrieval.metadata.dates` writes them
    digitised: str | None = None  # DateTimeDigitized
    changed: str | None = None  # DateTime
    make: str = ""
    model: str = ""
    description: str = ""  # ImageDescription, if it is not what the camera writes into each
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
    file.seek(0)
    head = file.read(16)
    main = _directory(file, head)
    times = _directory(file, head, _EXIF_IFD, main)
    gps = _directory(file, head, _GPS_IFD, main)
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
    return exif, {tag: main.get(tag, b"") for tag in _BLOCKS}


def _directory(
    file: BinaryIO, head: bytes, pointer: int | None = None, main: Mapping[int, Any] | None = None
) -> dict[int, Any]:
    """Wanted tags of the first directory, or of the one that a tag of it points to."""
    try:
        directory = TiffImagePlugin.ImageFileDirectory_v2(head[: 16 if head[2:3] == b"+" else 8], group=pointer)
    except (SyntaxError, struct.error):  # it is no TIFF's
        return {}
    place = directory.next if pointer is None or main is None else main.get(pointer)
    part = _wanted_part(file, place, head, _WANTED[pointer]) if isinstance(place, int) else b""
    found: dict[int, Any] = {}
    with contextlib.suppress(Exception):  # Pillow raises whatever a damaged file leads it to
        directory.load(io.BytesIO(part))
        for tag in directory:
            with contextlib.suppress(Exception):
                found[tag] = directory[tag]
    return found


def _wanted_part(file: BinaryIO, place: int, head: bytes, wanted: Collection[int]) -> bytes:
    """A directory with no more than the wanted tags, and their values behind it.

    Pillow would read all tags, however large, and leave out what stands after a value that is not there.
    """
    order = "<" if head[:1] == b"I" else ">"
    forms = ("Q", "HHQ8s", "Q") if head[2:3] == b"+" else ("H", "HHL4s", "L")
    number, entry, offset = (struct.Struct(order + form) for form in forms)
    length = file.seek(0, io.SEEK_END)
    if not 0 <= place <= length:
        return b""
    file.seek(place)
    counted = file.read(number.size)
    if len(counted) < number.size:
        return b""
    (entries,) = number.unpack(counted)
    table = file.read(min(entries, _MOST_ENTRIES) * entry.size)
    values: dict[int, tuple[int, bytes]] = {}  # type and value
    for tag, kind, count, value in entry.iter_unpack(table[: len(table) - len(table) % entry.size]):
        size = _SIZES.get(kind, 0) * count
        if tag not in wanted or tag in values or not 0 < size <= (_LARGEST_BLOCK if tag in _BLOCKS else _LARGEST_VALUE):
            continue
        if size > offset.size:
            (start,) = offset.unpack(value)
            if start + size > length:
                continue
            file.seek(start)
            value = file.read(size)
        # A block is bytes, though IPTC is often stored as whole numbers of 32 bits.
        values[tag] = _BYTE if tag in _BLOCKS else kind, value[:size]
    start = number.size + len(values) * entry.size + offset.size
    part, behind = number.pack(len(values)), b""
    for tag, (kind, value) in values.items():
        field = value
        if len(value) > offset.size:
            field = offset.pack(start + len(behind))
            behind += value
        part += entry.pack(tag, kind, len(value) // _SIZES[kind], field)
    return part + offset.pack(0) + behind


def _text(value: Any) -> str:
    """A text, which Pillow takes for Latin-1; UTF-8 where a program has written that."""
    first = value[0] if isinstance(value, tuple) and value else value
    data = first.encode("latin-1") if isinstance(first, str) else first
    if not isinstance(data, bytes):
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
