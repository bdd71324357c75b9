"""EXIF metadata and the tags of TIFF files, whose directories Pillow reads (TIFF 6.0, BigTIFF, EXIF 2.32)."""

import contextlib
import io
import math
import struct
from collections.abc import Collection, Mapping
from typing import Any, BinaryIO

from PIL import ExifTags, TiffImagePlugin

from retrieval.metadata.combining import SourceTexts
from retrieval.metadata.fields import SOURCES

XMP_TAG, IPTC_TAG, RESOURCES_TAG = 700, 33723, 34377
_EXIF_IFD, _GPS_IFD = 0x8769, 0x8825
_TAGS = {one.value: f"exif:{one.name}" for one in ExifTags.Base if f"exif:{one.name}" in SOURCES}
_GPS_TAGS = {one.value: f"gps:{one.name}" for one in ExifTags.GPS if f"gps:{one.name}" in SOURCES}
_SIDES = {  # of the equator and the meridian that degrees are on: the tag that says it, and the letters
    ExifTags.GPS.GPSLatitude.value: (ExifTags.GPS.GPSLatitudeRef.value, "NS"),
    ExifTags.GPS.GPSLongitude.value: (ExifTags.GPS.GPSLongitudeRef.value, "EW"),
}
_DESCRIPTION = ExifTags.Base.ImageDescription.value
_OF_WINDOWS = {one.value for one in ExifTags.Base if one.name.startswith("XP")}  # UTF-16, and lists with semicolons
_LISTS = {ExifTags.Base.XPKeywords.value}

_WANTED: dict[int | None, tuple[int, ...]] = {  # by the tag that points to a directory
    None: (*_TAGS, _EXIF_IFD, _GPS_IFD, XMP_TAG, IPTC_TAG, RESOURCES_TAG),
    _EXIF_IFD: (*_TAGS,),
    _GPS_IFD: (*_GPS_TAGS, *(tag for tag, _ in _SIDES.values())),
}
_BLOCKS = (XMP_TAG, IPTC_TAG, RESOURCES_TAG)
_LARGEST_BLOCK = 4 << 20  # bytes of other metadata
_LARGEST_VALUE = 64 << 10  # bytes of any other tag
_MOST_ENTRIES = 65_535  # of a directory: the limit of TIFF; BigTIFF has no practical limit
_BYTE = 1
_SIZES = {_BYTE: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}  # by TIFF's type
_FILLERS = frozenset(  # default descriptions of cameras
    (
        "OLYMPUS DIGITAL CAMERA",
        "DIGITAL CAMERA",
        "SONY DSC",
        "DCIM",
        "MINOLTA DIGITAL CAMERA",
        "KONICA MINOLTA DIGITAL CAMERA",
    )
)


def read_exif(file: BinaryIO) -> tuple[SourceTexts, dict[int, bytes]]:
    """Read EXIF from a TIFF file, or a block of EXIF; damaged parts are ignored.

    Returns texts of the tags used by fields, with signed degrees, north and east positive; and other metadata in the
    first directory, by `XMP_TAG`, `IPTC_TAG` and `RESOURCES_TAG`. Raises OSError if the file cannot be read.
    """
    file.seek(0)
    head = file.read(16)
    main = _directory(file, head)
    found = _directory(file, head, _EXIF_IFD, main) | main
    gps = _directory(file, head, _GPS_IFD, main)
    by_source = {source: _texts(tag, found[tag]) for tag, source in _TAGS.items() if tag in found}
    by_source |= {source: [_text(gps[tag])] for tag, source in _GPS_TAGS.items() if tag in gps and tag not in _SIDES}
    for tag, (side, sides) in _SIDES.items():
        degrees = _coordinate(gps.get(tag), _text(gps.get(side)), sides)
        if degrees is not None:
            by_source[_GPS_TAGS[tag]] = [str(degrees)]
    return by_source, {tag: main.get(tag, b"") for tag in _BLOCKS}


def _texts(tag: int, value: Any) -> list[str]:
    """Texts of a tag, without default values of cameras."""
    if tag in _OF_WINDOWS:
        data = bytes(value) if isinstance(value, bytes | tuple) else b""
        text = data.decode("utf-16-le", "replace").partition("\0")[0].strip()
        return text.split(";") if tag in _LISTS else [text]
    text = str(value) if isinstance(value, int) else _text(value)
    return [] if tag == _DESCRIPTION and text.upper() in _FILLERS else [text]


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
    values: dict[int, Any] = {}
    with contextlib.suppress(Exception):  # Pillow raises whatever a damaged file leads it to
        directory.load(io.BytesIO(part))
        for tag in directory:
            with contextlib.suppress(Exception):
                values[tag] = directory[tag]
    return values


def _wanted_part(file: BinaryIO, place: int, head: bytes, wanted: Collection[int]) -> bytes:
    """A directory with only the wanted tags, followed by their values.

    Pillow would read all tags, however large, and skip the tags after one with a missing value.
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
    """A text, which Pillow decodes as Latin-1; decoded as UTF-8 if valid."""
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
        if place and (part.numerator, part.denominator) == (0, 0):  # missing minutes or seconds
            continue
        degrees += float(part) / unit
    if not math.isfinite(degrees) or degrees < 0:
        return None
    return -degrees if side in "SW" else degrees
