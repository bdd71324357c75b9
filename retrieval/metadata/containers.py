"""Containers of metadata in files of photos: blocks of EXIF, IPTC and XMP, found without decoding a pixel.

The content decides the format, not the name. Pillow finds the blocks of HEIC and AVIF. For PNG it would decode the
pixels to find a block after them, for WebP it allocates memory for the whole picture, and in a JPEG file with an
unusual header it finds no block at all: these are read here. Blocks larger than `LARGEST_BLOCK`, and truncated ones,
are ignored.
"""

import contextlib
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from PIL import AvifImagePlugin

from retrieval.metadata.bounded import BoundedFile
from retrieval.metadata.combining import SourceTexts
from retrieval.metadata.exif import IPTC_TAG, RESOURCES_TAG, XMP_TAG, read_exif
from retrieval.metadata.iptc import iptc_of_resources

LARGEST_BLOCK = 4 << 20
"""Bytes."""

_LARGEST_FILE = 128 << 20  # bytes of a HEIC or AVIF file, which are read whole
_MOST_CHUNKS = 100_000  # of a file, or segments of a JPEG file
_PNG = b"\x89PNG\r\n\x1a\n"
_EXIF_HEAD = b"Exif\0\0"
_SEGMENTS = (  # of a JPEG file: marker, first bytes, and kind of block
    (0xE1, _EXIF_HEAD, "exif"),
    (0xE1, b"http://ns.adobe.com/xap/1.0/\0", "xmp"),
    (0xED, b"Photoshop 3.0\0", "resources"),
)


@dataclass(frozen=True)
class MetadataBlocks:
    """The raw metadata of a file; empty if missing."""

    exif: SourceTexts = field(default_factory=dict)  # read already: in a TIFF file it is no block
    iptc: bytes = b""
    xmp: bytes = b""


def find_blocks(file: BinaryIO) -> MetadataBlocks:
    """Find the metadata of a JPEG, TIFF, PNG, WebP, HEIC or AVIF file; that of any other file is empty."""
    head = file.read(16)
    if head[:4] in (b"II*\0", b"MM\0*", b"II+\0"):
        exif, tags = read_exif(file)
        return MetadataBlocks(exif, tags[IPTC_TAG] or iptc_of_resources(tags[RESOURCES_TAG]), tags[XMP_TAG])
    blocks: dict[str, bytes] = {}
    if head[:3] == b"\xff\xd8\xff":
        blocks = _read_jpeg(file)
    elif head[:8] == _PNG:
        blocks = _read_png(file)
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        blocks = _read_webp(file)
    elif head[4:8] == b"ftyp":
        blocks = _read_heif(file)
    exif, _ = read_exif(io.BytesIO(blocks.get("exif", b"").removeprefix(_EXIF_HEAD)))
    return MetadataBlocks(exif, iptc_of_resources(blocks.get("resources", b"")), blocks.get("xmp", b""))


def _parse(parser: Any, file: BinaryIO, most: int) -> Any:
    """Result of one of Pillow's parsers for a file's header; None if it is damaged."""
    bounded = BoundedFile(file, most)
    image = None
    with contextlib.suppress(Exception):  # it raises whatever a damaged file leads it to
        image = parser(cast(BinaryIO, bounded))
    if bounded.error is not None:
        raise bounded.error
    return image


def _blocks_of(image: Any) -> dict[str, bytes]:
    blocks = {key: image.info.get(key) or b"" for key in ("exif", "xmp")} if image is not None else {}
    return {key: block for key, block in blocks.items() if len(block) <= LARGEST_BLOCK}


def _read_jpeg(file: BinaryIO) -> dict[str, bytes]:
    blocks: dict[str, bytearray] = {}
    for marker, length in _segments(file):
        head = file.read(min(length, max(len(start) for _, start, _ in _SEGMENTS)))
        for wanted, start, key in _SEGMENTS:
            if marker != wanted or not head.startswith(start) or (key == "xmp" and key in blocks):
                continue
            block = blocks.setdefault(key, bytearray())  # several segments of EXIF or of Photoshop's are one block
            rest = _take(file, length - len(head)) if len(block) + length <= LARGEST_BLOCK else b""
            if len(head) + len(rest) == length:
                block += (head + rest)[len(start) :]
    return {key: bytes(block) for key, block in blocks.items()}


def _segments(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """Markers and lengths of a JPEG file's segments before its pixels; the file is then at the beginning of each."""
    place = 2
    for _ in range(_MOST_CHUNKS):
        file.seek(place)
        head = file.read(4)
        if len(head) < 4 or head[:2] in (b"\xff\xd9", b"\xff\xda"):  # the end, or pixels
            return
        if head[0] != 0xFF or head[1] in (0, 0xFF):  # filling between segments
            place += 1
            continue
        length = max(2, int.from_bytes(head[2:], "big"))
        yield head[1], length - 2
        place += 2 + length


def _read_heif(file: BinaryIO) -> dict[str, bytes]:
    image = _parse(AvifImagePlugin.AvifImageFile, file, _LARGEST_FILE)
    with contextlib.suppress(ImportError):  # without the package its pixels cannot be read either
        if image is None:
            from pillow_heif import HeifImageFile

            image = _parse(HeifImageFile, file, _LARGEST_FILE)
    return _blocks_of(image)


def _read_png(file: BinaryIO) -> dict[str, bytes]:
    blocks: dict[str, bytes] = {}  # the first block of each kind, even if incomplete, to bound the time
    for kind, length in _chunks(file, len(_PNG), big=True):
        if kind == b"eXIf" and "exif" not in blocks:
            blocks["exif"] = _take(file, length)
        elif kind == b"iTXt" and "xmp" not in blocks:
            keyword, _, rest = _take(file, length).partition(b"\0")
            if keyword == b"XML:com.adobe.xmp" and len(rest) >= 2:
                text = rest[2:].split(b"\0", 2)[-1]  # after language and translated keyword
                blocks["xmp"] = _unpacked(text) if rest[0] else text
        elif kind == b"IEND":
            break
    return blocks


def _read_webp(file: BinaryIO) -> dict[str, bytes]:
    blocks: dict[str, bytes] = {}
    keys = {b"EXIF": "exif", b"XMP ": "xmp"}
    for kind, length in _chunks(file, 12, big=False):
        if kind in keys and keys[kind] not in blocks:
            blocks[keys[kind]] = _take(file, length)
    return blocks


def _chunks(file: BinaryIO, place: int, big: bool) -> Iterator[tuple[bytes, int]]:
    """Kinds and lengths of the chunks of a PNG (big) or RIFF file, which is then at the beginning of each."""
    for _ in range(_MOST_CHUNKS):
        file.seek(place)
        head = file.read(8)
        if len(head) < 8:
            return
        length = int.from_bytes(head[:4], "big") if big else int.from_bytes(head[4:], "little")
        yield head[4:] if big else head[:4], length
        place += 12 + length if big else 8 + length + length % 2


def _take(file: BinaryIO, length: int) -> bytes:
    """The next bytes of a file; empty if there are too many, or they are truncated."""
    data = file.read(length) if length <= LARGEST_BLOCK else b""
    return data if len(data) == length else b""


def _unpacked(data: bytes) -> bytes:
    """Decompress data; empty if it is damaged or too large."""
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(data, LARGEST_BLOCK)
    except zlib.error:
        return b""
    return text if unpacker.eof else b""
