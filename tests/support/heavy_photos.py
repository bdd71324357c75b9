"""Small files of photos that take long to decode, which must be refused or aborted."""

import contextlib
import re
import struct
import zlib
from functools import cache

from PIL import Image

from tests.support.hostile import encode, photo


def progressive(size: tuple[int, int], repeated: int, between: bytes = b"") -> bytes:
    """Return a progressive JPEG of ten scans, whose last one is repeated; `between` precedes each repetition."""
    content = encode(Image.new("RGB", size, (120, 130, 140)), "JPEG", progressive=True)
    last = [found.start() for found in re.finditer(rb"\xff\xda", content)][-1]
    return content[:-2] + (between + content[last:-2]) * repeated + b"\xff\xd9"


def sequential(size: tuple[int, int], repeated: int) -> bytes:
    """Return a sequential JPEG of three components, with only the scan of the first one, repeated."""
    grey = encode(Image.new("L", size, 120), "JPEG")
    frame, scan = grey.index(b"\xff\xc0"), grey.index(b"\xff\xda")
    head = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, size[1], size[0], 3)
    head += b"".join(bytes([number, 0x11, 0]) for number in (1, 2, 3))
    return grey[:frame] + head + grey[frame + 13 : scan] + grey[scan:-2] * repeated + b"\xff\xd9"


def chunk(kind: bytes, body: bytes = b"") -> bytes:
    """Return a chunk of a PNG."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def chunked_png(before: bytes = b"", after: bytes = b"", side: int = 100) -> bytes:
    """Return a grey PNG with chunks before and after its pixels."""
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(bytes((side + 1) * side)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + before + pixels + after + chunk(b"IEND")


def shared_strips(compression: int = 8, strip: bytes | None = None, rows: int = 2000) -> bytes:
    """Return a grey TIFF of width 64, whose one-row strips all share the same bytes."""
    strip = zlib.compress(bytes(64)) + bytes(1 << 20) if strip is None else strip
    tags = {256: 64, 257: rows, 258: 8, 259: compression, 262: 1, 277: 1, 278: 1}
    table = 8 + 2 + 12 * (len(tags) + 2) + 4
    place = table + 8 * rows
    entries = [(tag, 4, 1, value) for tag, value in tags.items()]
    entries += [(273, 4, rows, table), (279, 4, rows, table + 4 * rows)]
    packed = b"".join(struct.pack("<HHII", *entry) for entry in sorted(entries))
    head = b"II*\0" + struct.pack("<IH", 8, len(entries)) + packed + bytes(4)
    return head + struct.pack(f"<{2 * rows}I", *[place] * rows, *[len(strip)] * rows) + strip


def slow() -> bytes:
    """Return a JPEG that may be decoded, and takes some seconds."""
    return progressive((6000, 4000), 100)


@cache
def every_format() -> dict[str, bytes]:
    """Return a photo in each supported format, mode and compression, by description."""
    colour = photo(size=(96, 64))
    found = {
        f"{format} {mode}": encode(colour.convert(mode), format)
        for format, modes in {
            "JPEG": ("L", "RGB", "CMYK", "YCbCr"),
            "PNG": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
            "TIFF": ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "I;16", "I", "F"),
            "WEBP": ("RGB", "RGBA"),
            "GIF": ("L", "P"),
            "BMP": ("1", "L", "P", "RGB"),
            "PPM": ("1", "L", "RGB"),
            "AVIF": ("RGB", "RGBA"),
        }.items()
        if format in Image.SAVE
        for mode in modes
        if mode not in ("I;16", "LAB", "I", "F")
    }
    grey = colour.convert("L")
    found |= {f"TIFF {mode}": encode(grey.convert(mode), "TIFF") for mode in ("I;16", "I", "F")}
    for packing in ("tiff_lzw", "tiff_deflate", "packbits", "jpeg", "zstd", "lzma", "group3", "group4"):
        with contextlib.suppress(OSError):  # libtiff may lack some
            image = grey.convert("1") if packing.startswith("group") else colour
            found[f"TIFF {packing}"] = encode(image, "TIFF", compression=packing)
    found["JPEG progressive"] = encode(colour, "JPEG", progressive=True)
    more = {"save_all": True, "append_images": [photo("coffee", (96, 64))]}
    found |= {
        f"{format} of several": encode(colour, format, **more) for format in ("GIF", "WEBP", "PNG", "TIFF", "MPO")
    }
    return found
