"""Problematic files of real collections and worse: damaged, oversized, oddly stored, oddly named.

`write_hostile_folder` is for tests that one bad file neither stops a run nor gets lost.
"""

from __future__ import annotations

import io
import struct
import zlib
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

# Required part of the reason for each unreadable file.
UNREADABLE = {
    "truncated.jpg": "truncated",
    "truncated.png": "truncated",
    "zero-byte.jpg": "empty",
    "text.jpg": "not a photo",
    "huge.png": "60000x60000 pixels, which is more than the limit",
    "huge.webp": "pixels, which is more than the limit",
    "text-bomb.png": "unpacks to far more",
    "bad-checksum.png": "damaged",
}


def photo(name: str = "astronaut", size: tuple[int, int] = (320, 240)) -> Image.Image:
    """Return one of scikit-image's photographs as RGB of a given (width, height)."""
    return _photo(name, size).copy()


@cache
def _photo(name: str, size: tuple[int, int]) -> Image.Image:
    return _original(name).resize(size, Image.Resampling.LANCZOS)


@cache
def _original(name: str) -> Image.Image:
    return Image.fromarray(getattr(data, name)()).convert("RGB")


def encode(image: Image.Image, format: str, **options: object) -> bytes:
    """Return the bytes of an image file."""
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def png(width: int, height: int, *extra: tuple[bytes, bytes]) -> bytes:
    """Return a grey PNG with too few pixels for the size in its header, and valid checksums."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), *extra, (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def _huge_webp() -> bytes:
    """Return an animated WebP of one small frame, on a canvas of 16383 x 16383 pixels."""
    still = encode(photo(size=(32, 32)), "WEBP")[12:]
    frame = bytes(6) + (31).to_bytes(3, "little") * 2 + bytes(4) + still
    side = (16382).to_bytes(3, "little")
    chunks = [(b"VP8X", b"\x02\0\0\0" + side * 2), (b"ANIM", bytes(6)), (b"ANMF", frame)]
    body = b"WEBP" + b"".join(kind + struct.pack("<I", len(data)) + data for kind, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def hostile_files() -> dict[str, bytes]:
    """Return the content of every file by its name."""
    rng = np.random.default_rng(0)
    jpeg = encode(photo(), "JPEG", quality=90)
    turned = Image.Exif()
    turned[0x0112] = 6
    deep = np.asarray(photo("coffee").convert("L"), np.uint16) * 257 + rng.integers(0, 64, (240, 320), np.uint16)
    see_through = photo("chelsea").quantize(64)
    frames = [photo("chelsea"), photo("coffee")]
    good_png = encode(photo("rocket"), "PNG")
    middle = len(good_png) // 2
    return {
        "truncated.jpg": jpeg[: len(jpeg) // 2],
        "truncated.png": good_png[:middle],
        "zero-byte.jpg": b"",
        "text.jpg": b"This is a shopping list, not a photo.\n" * 40,
        "huge.png": png(60000, 60000),
        "huge.webp": _huge_webp(),
        "text-bomb.png": png(32, 32, (b"zTXt", b"Comment\0\0" + zlib.compress(bytes(50_000_000)))),
        "bad-checksum.png": good_png[:middle] + bytes(64) + good_png[middle + 64 :],
        "one-pixel.png": encode(Image.new("RGB", (1, 1), (90, 120, 60)), "PNG"),
        "thin.png": encode(Image.new("L", (20000, 1), 128), "PNG"),
        "cmyk.jpg": encode(photo("coffee").convert("CMYK"), "JPEG", quality=90),
        "sixteen-bit.tif": encode(Image.fromarray(deep), "TIFF"),
        "featureless.jpg": encode(Image.new("L", (320, 240), 127), "JPEG"),
        "exif-rotated.jpg": encode(photo("rocket"), "JPEG", quality=90, exif=turned),
        "broken-exif.jpg": encode(photo("rocket"), "JPEG", quality=90, exif=b"Exif\0\0MM\0*\0\0\xff\xff broken"),
        "palette-transparent.png": encode(see_through, "PNG", transparency=3),
        "one-bit.tif": encode(photo("page").convert("1"), "TIFF", compression="group4"),
        "grey-alpha.png": encode(photo().convert("LA"), "PNG"),
        "animated.webp": encode(frames[0], "WEBP", save_all=True, append_images=frames[1:]),
        "animated.gif": encode(frames[0], "GIF", save_all=True, append_images=frames[1:]),
        "really-a-png.JPG": good_png,
        "quotes ' and \".jpg": encode(photo("chelsea", (300, 240)), "JPEG"),
        "100% %s %41.jpg": encode(photo("chelsea", (310, 240)), "JPEG"),
        "new\nline.jpg": encode(photo("coffee", (300, 240)), "JPEG"),
        "<b>bold<b> & [red].jpg": encode(photo("rocket", (300, 240)), "JPEG"),
        "ünïcödé 石.jpg": encode(photo("astronaut", (300, 240)), "JPEG"),
    }


def write_hostile_folder(folder: Path) -> dict[str, bool]:
    """Write every hostile file into a folder, and return for each name whether it is a readable photo."""
    folder.mkdir(parents=True, exist_ok=True)
    files = hostile_files()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return {name: name not in UNREADABLE for name in files}
