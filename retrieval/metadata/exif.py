"""EXIF metadata and the tags of TIFF files, read from the directories alone (TIFF 6.0, BigTIFF, EXIF 2.32).

Only wanted tags are read, each once and bounded: however a file's directories overlap or point at each other, reading
them takes little time and memory.
"""

import io
import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

from retrieval.metadata.dates import read_date

_MAKE, _MODEL, _DESCRIPTION, _DATE_TIME = 0x010F, 0x0110, 0x010E, 0x0132
XMP_TAG, IPTC_TAG, RESOURCES_TAG = 700, 33723, 34377
_EXIF_IFD, _GPS_IFD = 0x8769, 0x8825
_ORIGINAL, _DIGITISED = 0x9003, 0x9004
_LATITUDE_REF, _LATITUDE, _LONGITUDE_REF, _LONGITUDE = 1, 2, 3, 4

_MOST_ENTRIES = 4096  # of a directory
_LARGEST_VALUE = 4 << 20  # bytes
_LARGEST_TEXT = 64 << 10  # bytes
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
_WHOLE = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q", 18: "Q"}
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


@dataclass(frozen=True)
class _Value:
    """A tag's value as it is stored."""

    kind: int  # TIFF's type
    data: bytes


def read_exif(file: BinaryIO) -> Exif:
    """Read EXIF from a block of it, or from a TIFF file.

    Parameters
    ----------
    file : binary file
        It begins with TIFF's header; offsets count from there.

    Returns
    -------
    Exif
    """
    directories = _Directories(file)
    main = directories.read(directories.first, (_MAKE, _MODEL, _DESCRIPTION, _DATE_TIME, _EXIF_IFD, _GPS_IFD))
    times = directories.read(directories.pointer(main.get(_EXIF_IFD)), (_ORIGINAL, _DIGITISED))
    gps = directories.read(
        directories.pointer(main.get(_GPS_IFD)), (_LATITUDE_REF, _LATITUDE, _LONGITUDE_REF, _LONGITUDE)
    )
    description = _text(main.get(_DESCRIPTION))
    return Exif(
        original=read_date(_text(times.get(_ORIGINAL))),
        digitised=read_date(_text(times.get(_DIGITISED))),
        changed=read_date(_text(main.get(_DATE_TIME))),
        make=_text(main.get(_MAKE)),
        model=_text(main.get(_MODEL)),
        description="" if description.upper() in _FILLERS else description,
        latitude=directories.coordinate(gps.get(_LATITUDE), _text(gps.get(_LATITUDE_REF)), "NS"),
        longitude=directories.coordinate(gps.get(_LONGITUDE), _text(gps.get(_LONGITUDE_REF)), "EW"),
    )


def blocks_of_tiff(file: BinaryIO) -> dict[int, bytes]:
    """The blocks of other metadata in a TIFF file's first directory: by `XMP_TAG`, `IPTC_TAG` and `RESOURCES_TAG`."""
    directories = _Directories(file)
    return {
        tag: value.data
        for tag, value in directories.read(directories.first, (XMP_TAG, IPTC_TAG, RESOURCES_TAG)).items()
    }


class _Directories:
    """Reads the directories of a TIFF file; what is damaged is as if it were not there."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = file.seek(0, io.SEEK_END)
        head = self._bytes(0, 16)
        self._order = {b"II": "<", b"MM": ">"}.get(head[:2], "")
        self.first: int | None = None  # where the first directory is
        self._big = False
        if not self._order or len(head) < 8:
            return
        (magic,) = struct.unpack_from(self._order + "H", head, 2)
        if magic == 43 and len(head) == 16:
            self._big = True
            (self.first,) = struct.unpack_from(self._order + "Q", head, 8)
        elif magic == 42:
            (self.first,) = struct.unpack_from(self._order + "I", head, 4)

    def read(self, place: int | None, wanted: Iterable[int]) -> dict[int, _Value]:
        """Read wanted tags of the directory at a place; of several of one tag, the first."""
        if place is None:
            return {}
        count_form, entry_form, size = ("Q", "HHQ8s", 20) if self._big else ("H", "HHI4s", 12)
        counted = self._bytes(place, struct.calcsize(f"={count_form}"))
        if len(counted) < struct.calcsize(f"={count_form}"):
            return {}
        (count,) = struct.unpack(self._order + count_form, counted)
        table = self._bytes(place + len(counted), min(count, _MOST_ENTRIES) * size)
        left, found = set(wanted), {}
        for at in range(0, len(table) - size + 1, size):
            tag, kind, number, inline = struct.unpack_from(self._order + entry_form, table, at)
            if tag not in left or kind not in _SIZES:
                continue
            left.remove(tag)
            length = number * _SIZES[kind]
            if length <= len(inline):
                found[tag] = _Value(kind, inline[:length])
            elif length <= _LARGEST_VALUE:
                (where,) = struct.unpack(self._order + ("Q" if self._big else "I"), inline)
                data = self._bytes(where, length)
                if len(data) == length:
                    found[tag] = _Value(kind, data)
        return found

    def pointer(self, value: _Value | None) -> int | None:
        """The place that a value points to."""
        if value is None or value.kind not in _WHOLE or len(value.data) < _SIZES[value.kind]:
            return None
        (place,) = struct.unpack_from(self._order + _WHOLE[value.kind], value.data)
        return int(place)

    def coordinate(self, value: _Value | None, side: str, sides: str) -> float | None:
        """Read degrees, minutes and seconds, three fractions, and which side of the equator or meridian they are on."""
        side = side.upper()[:1]
        if value is None or value.kind not in (5, 10) or len(value.data) < 8 or not side or side not in sides:
            return None
        form = "II" if value.kind == 5 else "ii"
        degrees = 0.0
        for place, unit in zip(range(0, min(len(value.data), 24) - 7, 8), (1, 60, 3600), strict=False):
            above, below = struct.unpack_from(self._order + form, value.data, place)
            if below == 0:
                if above == 0 and place:  # 0/0: minutes or seconds that are not given
                    continue
                return None
            degrees += above / below / unit
        if not math.isfinite(degrees) or degrees < 0:
            return None
        return -degrees if side in "SW" else degrees

    def _bytes(self, place: int, length: int) -> bytes:
        if place >= self._size:
            return b""
        self._file.seek(place)
        return self._file.read(length)


def _text(value: _Value | None) -> str:
    """An ASCII value; UTF-8 or Latin-1 where a program has written that."""
    if value is None or value.kind not in (1, 2, 7) or len(value.data) > _LARGEST_TEXT:
        return ""
    data = value.data.partition(b"\0")[0]
    try:
        return data.decode("utf-8").strip()
    except UnicodeDecodeError:
        return data.decode("latin-1").strip()
