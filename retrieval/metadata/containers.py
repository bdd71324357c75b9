"""Where files of photos keep their metadata: blocks of EXIF, IPTC and XMP, found without decoding a pixel.

The content decides the format, not the name. Everything else in a file is skipped, not read; a block that is larger
than `LARGEST_BLOCK`, or that is cut off, is as if it were not there.
"""

import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from retrieval.metadata.exif import IPTC_TAG, RESOURCES_TAG, XMP_TAG, Exif, blocks_of_tiff, read_exif
from retrieval.metadata.iptc import iptc_of_resources

LARGEST_BLOCK = 4 << 20
"""Bytes."""

_MOST_PARTS = 100_000  # segments, chunks or boxes of a file that are looked at
_PNG = b"\x89PNG\r\n\x1a\n"
_EXIF_HEAD = b"Exif\0\0"
_XMP_HEAD = b"http://ns.adobe.com/xap/1.0/\0"
_RESOURCES_HEAD = b"Photoshop 3.0\0"
_XMP_TYPE = b"application/rdf+xml"


@dataclass(frozen=True)
class Blocks:
    """The metadata of a file, as it is stored; empty where there is none."""

    exif: Exif = field(default_factory=Exif)  # read already: in a TIFF file it is no block
    iptc: bytes = b""
    xmp: bytes = b""


@dataclass
class _Found:
    """The first block of each kind, be it whole or not: a file that has thousands is not read for ever."""

    exif: bytes | None = None
    xmp: bytes | None = None
    resources: bytes = b""  # Photoshop's, which hold IPTC; several blocks are one


def find_blocks(file: BinaryIO) -> Blocks:
    """Find the metadata of a JPEG, TIFF, PNG, WebP, HEIC or AVIF file; that of any other file is empty.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    head = file.read(16)
    if head[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        tags = blocks_of_tiff(file)
        iptc = tags.get(IPTC_TAG, b"") or iptc_of_resources(tags.get(RESOURCES_TAG, b""))
        return Blocks(read_exif(file), iptc, tags.get(XMP_TAG, b""))
    found = _Found()
    if head[:3] == b"\xff\xd8\xff":
        _read_jpeg(file, found)
    elif head[:8] == _PNG:
        _read_png(file, found)
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        _read_webp(file, found)
    elif head[4:8] == b"ftyp":
        _read_boxes(file, found)
    return Blocks(
        read_exif(io.BytesIO((found.exif or b"").removeprefix(_EXIF_HEAD))),
        iptc_of_resources(found.resources),
        found.xmp or b"",
    )


def _take(file: BinaryIO, length: int) -> bytes:
    """The next bytes of a file, or none where they are too many or cut off."""
    if not 0 <= length <= LARGEST_BLOCK:
        return b""
    data = file.read(length)
    return data if len(data) == length else b""


def _read_jpeg(file: BinaryIO, found: _Found) -> None:
    place = 2
    for _ in range(_MOST_PARTS):
        file.seek(place)
        head = file.read(4)
        if len(head) < 4 or head[0] != 0xFF:
            return
        marker = head[1]
        if marker == 0xFF:  # fill bytes may come before a marker
            place += 1
            continue
        if marker in (0xD9, 0xDA):  # what follows is pixels
            return
        length = int.from_bytes(head[2:], "big")
        if marker in (0xE1, 0xED):
            data = _take(file, length - 2)
            if data.startswith(_EXIF_HEAD) and found.exif is None:
                found.exif = data
            elif data.startswith(_XMP_HEAD) and found.xmp is None:
                found.xmp = data.removeprefix(_XMP_HEAD)
            elif data.startswith(_RESOURCES_HEAD) and len(found.resources) + len(data) <= LARGEST_BLOCK:
                found.resources += data.removeprefix(_RESOURCES_HEAD)
        place += 2 + length


def _read_png(file: BinaryIO, found: _Found) -> None:
    place = len(_PNG)
    for _ in range(_MOST_PARTS):
        file.seek(place)
        head = file.read(8)
        if len(head) < 8 or head[4:] == b"IEND":
            return
        length = int.from_bytes(head[:4], "big")
        if head[4:] == b"eXIf" and found.exif is None:
            found.exif = _take(file, length)
        elif head[4:] == b"iTXt" and found.xmp is None:
            keyword, _, rest = _take(file, length).partition(b"\0")
            if keyword == b"XML:com.adobe.xmp" and len(rest) >= 2:
                text = rest[2:].split(b"\0", 2)[-1]  # behind language and translated keyword
                found.xmp = _unpacked(text) if rest[0] else text
        place += 12 + length


def _unpacked(data: bytes) -> bytes:
    """What was compressed; none where it is damaged, or more than is read."""
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(data, LARGEST_BLOCK)
    except zlib.error:
        return b""
    return text if unpacker.eof else b""


def _read_webp(file: BinaryIO, found: _Found) -> None:
    place = 12
    for _ in range(_MOST_PARTS):
        file.seek(place)
        head = file.read(8)
        if len(head) < 8:
            return
        length = int.from_bytes(head[4:], "little")
        if head[:4] == b"EXIF" and found.exif is None:
            found.exif = _take(file, length)
        elif head[:4] == b"XMP " and found.xmp is None:
            found.xmp = _take(file, length)
        place += 8 + length + length % 2


# HEIC and AVIF: boxes (ISO 14496-12), with metadata as items of the box `meta` (ISO 23008-12).

_IN_FILE, _IN_IDAT = 0, 1  # what the offsets of an item count from: the file, or the box `idat`


def _read_boxes(file: BinaryIO, found: _Found) -> None:
    place = 0
    for _ in range(_MOST_PARTS):
        file.seek(place)
        head = file.read(16)
        if len(head) < 8:
            return
        size, begins = int.from_bytes(head[:4], "big"), 8
        if size == 1:
            size, begins = int.from_bytes(head[8:16], "big"), 16
        if head[4:8] == b"meta":
            file.seek(place + begins)
            _read_items(file, _take(file, size - begins)[4:], found)
            return
        if size < begins or place + size >= 1 << 62:
            return
        place += size


def _read_items(file: BinaryIO, meta: bytes, found: _Found) -> None:
    boxes = dict(_boxes(meta))
    first: dict[bytes, int] = {}
    for number, kind in _kinds(boxes.get(b"iinf", b"")):
        first.setdefault(kind, number)
    kinds = {number: kind for kind, number in first.items()}
    for item, method, parts in _locations(boxes.get(b"iloc", b"")):
        kind = kinds.pop(item, b"")
        if not kind or sum(length for _, length in parts) > LARGEST_BLOCK:
            continue
        data = b""
        for offset, length in parts:
            if method == _IN_IDAT:
                data += boxes.get(b"idat", b"")[offset : offset + length]
            elif offset < 1 << 62:
                file.seek(offset)
                data += _take(file, length)
        if kind == b"Exif":
            found.exif = data[4 + int.from_bytes(data[:4], "big") :]
        else:
            found.xmp = data


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = 0
    while place + 8 <= len(data):
        size = int.from_bytes(data[place : place + 4], "big")
        if size < 8:
            return
        yield data[place + 4 : place + 8], data[place + 8 : place + size]
        place += size


def _kinds(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbers of the items that hold EXIF or XMP."""
    for kind, body in _boxes(data[6 if data[:1] == b"\0" else 8 :]):
        if kind != b"infe" or body[:1] not in (b"\2", b"\3"):
            continue
        wide = 4 if body[0] == 3 else 2
        item, rest = int.from_bytes(body[4 : 4 + wide], "big"), body[6 + wide :]  # behind the item's protection
        if rest[:4] == b"Exif":
            yield item, b"Exif"
        elif rest[:4] == b"mime" and _XMP_TYPE in rest[4:].split(b"\0", 2)[1:2]:
            yield item, b"XMP"


def _locations(data: bytes) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """Number of each item, what its offsets count from, and the (offset, length) of its parts."""
    stream = io.BytesIO(data)

    def number(width: int) -> int:
        return int.from_bytes(stream.read(width), "big")

    version = number(1)
    number(3)
    sizes = number(2)
    offset_size, length_size, base_size, index_size = (sizes >> shift & 15 for shift in (12, 8, 4, 0))
    if not offset_size + length_size:  # any number of parts would fit into no bytes
        return
    for _ in range(min(number(4 if version == 2 else 2), _MOST_PARTS)):
        item = number(4 if version == 2 else 2)
        method = number(2) & 15 if version else 0
        number(2)
        base = number(base_size)
        parts = []
        for _ in range(min(number(2), _MOST_PARTS)):
            if stream.tell() >= len(data):
                return
            number(index_size if version else 0)
            parts.append((base + number(offset_size), number(length_size)))
        if method in (_IN_FILE, _IN_IDAT):
            yield item, method, parts
