"""Real-world files with unusual contents, and their expected results.

Each is made from a photograph, so that the right pixels are known.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image, ImageCms

from tests.support.hostile import encode, photo

SIZE = (160, 120)
REC_601 = np.array([0.299, 0.587, 0.114])


@dataclass(frozen=True)
class Odd:
    """A file, and the expected result."""

    content: bytes
    remark: str = ""  # part of the note on how it was read
    refused: str = ""  # part of the reason for refusal
    shows: str = "photo"  # the photo, only its "luma", or something "else", which is not compared
    tolerance: float = 1.0  # mean difference of grey values
    size: tuple[int, int] = SIZE
    others: tuple[int, ...] = ()  # further pages that are separate photos


@cache
def colours() -> NDArray[np.uint8]:
    """Return the photograph in all files, (H, W, 3)."""
    return np.asarray(photo("chelsea", SIZE))


def luma() -> NDArray[np.float64]:
    """Return its luma (H, W)."""
    return colours() @ REC_601


def tiff(samples: NDArray[Any], **how: Any) -> bytes:
    """Return a TIFF of one page."""
    file = io.BytesIO()
    tifffile.imwrite(file, samples, **how)
    return file.getvalue()


def tiff_pages(*pages: tuple[NDArray[Any], dict[str, Any]]) -> bytes:
    """Return a TIFF of several pages."""
    file = io.BytesIO()
    with tifffile.TiffWriter(file) as writer:
        for samples, how in pages:
            writer.write(samples, **how)
    return file.getvalue()


def floats_with_a_predictor() -> bytes:
    """Return an RGB TIFF of float32 with the floating-point predictor (3), which sorts bytes by significance."""
    rows, across = SIZE[1], SIZE[0]
    values = (colours() / 255).astype(">f4")
    planes = values.view(np.uint8).reshape(rows, across * 3, 4).swapaxes(1, 2).reshape(rows, -1, 3)
    steps = np.diff(planes, axis=1, prepend=np.zeros((rows, 1, 3), np.uint8)).astype(np.uint8)
    strip = steps.tobytes()
    how = ((256, across), (257, rows), (259, 1), (262, 2), (277, 3), (278, rows), (279, len(strip)), (317, 3))
    entries = [(tag, 4, 1, value) for tag, value in how] + [(258, 3, 3, 8), (339, 3, 3, 14), (273, 4, 1, 20)]
    head = b"II*\0" + struct.pack("<I", 20 + len(strip)) + struct.pack("<6H", 32, 32, 32, 3, 3, 3)
    table = b"".join(struct.pack("<HHII", *entry) for entry in sorted(entries))
    return head + strip + struct.pack("<H", len(entries)) + table + bytes(4)


def _tiffs() -> dict[str, Odd]:
    rgb = colours()
    deep = rgb.astype(np.uint16) * 257
    planes = np.moveaxis(deep, 2, 0)
    grey = np.rint(luma()).astype(np.uint8)
    solid = np.full((*grey.shape, 1), 255, np.uint8)
    apart = {"photometric": "rgb", "planarconfig": "separate"}
    small, page = rgb[::4, ::4].copy(), {"photometric": "rgb"}
    found = {
        "planes apart.tif": tiff(np.moveaxis(rgb, 2, 0), **apart),
        "planes apart, 16 bits.tif": tiff(planes, **apart),
        "planes apart, 16 bits, deflated.tif": tiff(planes, compression="zlib", **apart),
        "planes apart, 16 bits, deflated steps.tif": tiff(planes, compression="zlib", predictor=True, **apart),
        "planes apart, 16 bits, big-endian.tif": tiff(planes, byteorder=">", **apart),
        "planes apart, 16 bits, big-endian steps.tif": tiff(
            planes, byteorder=">", compression="zlib", predictor=True, **apart
        ),
        "planes apart, 16 bits, tiles.tif": tiff(planes, tile=(64, 64), **apart),
        "planes apart, 16 bits, strips.tif": tiff(planes, rowsperstrip=7, **apart),
        "planes apart, 16 bits, transparency.tif": tiff(
            np.concatenate([planes, np.full((1, *grey.shape), 65535, np.uint16)]), extrasamples=["unassalpha"], **apart
        ),
        "16 bits.tif": tiff(deep, **page),
        "16 bits, big-endian.tif": tiff(deep, byteorder=">", **page),
        "16 bits, deflated steps.tif": tiff(deep, compression="zlib", predictor=True, **page),
        "16 bits, four colours.tif": tiff(
            np.concatenate([65535 - deep, np.zeros_like(deep[:, :, :1])], axis=2), photometric="separated"
        ),
        "16 bits, grey with transparency.tif": tiff(
            np.dstack([grey, solid]).astype(np.uint16) * 257, photometric="minisblack", extrasamples=["unassalpha"]
        ),
        "grey with transparency.tif": tiff(
            np.dstack([grey, solid]), photometric="minisblack", extrasamples=["unassalpha"]
        ),
        "16 bits, white is zero.tif": tiff((255 - grey).astype(np.uint16) * 257, photometric="miniswhite"),
        "32 bits.tif": tiff(grey.astype(np.uint32) * 16843009, photometric="minisblack"),
        "32 bits, colours.tif": tiff(rgb.astype(np.uint32) * 16843009, **page),
        "float.tif": tiff((luma() / 255).astype(np.float32), photometric="minisblack"),
        "float, colours.tif": tiff((rgb / 255).astype(np.float32), **page),
        "float, colours, deflated.tif": tiff((rgb / 255).astype(np.float32), compression="zlib", **page),
        "float, colours, planes apart.tif": tiff(np.moveaxis(rgb / 255, 2, 0).astype(np.float32), **apart),
        "float, colours, sorted bytes.tif": floats_with_a_predictor(),
        "float, up to 255.tif": tiff(rgb.astype(np.float32), **page),
        "half float.tif": tiff((luma() / 255).astype(np.float16), photometric="minisblack"),
        "half float, colours.tif": tiff((rgb / 255).astype(np.float16), **page),
        "double float.tif": tiff(luma() / 255, photometric="minisblack"),
        "big.tif": tiff(rgb, bigtiff=True, **page),
        "big, planes apart.tif": tiff(planes, bigtiff=True, **apart),
        "preview first.tif": tiff_pages((small, {"subfiletype": 1, **page}), (rgb, page)),
        "preview first, 16 bits apart.tif": tiff_pages((small, {"subfiletype": 1, **page}), (planes, apart)),
        "preview first, photo below.tif": tiff_pages((small, {"subfiletype": 1, "subifds": 1, **page}), (rgb, page)),
        "preview last.tif": tiff_pages((rgb, page), (small, {"subfiletype": 1, **page})),
    }
    several = "2 more pages"
    without = ("grey", "white", "32 bits.", "float.", "half float.", "double")  # colours
    return {
        name: Odd(content, shows="luma" if any(part in name for part in without) else "photo")
        for name, content in found.items()
    } | {
        "three pages.tif": Odd(tiff_pages((rgb, page), (rgb, page), (rgb, page)), several, others=(2, 3)),
        "three pages, the second is largest.tif": Odd(
            tiff_pages((small, page), (rgb, page), (small, page)), several, others=(1, 3)
        ),
        "two pages and a preview.tif": Odd(
            tiff_pages((rgb, page), (small, {"subfiletype": 1, **page}), (rgb, page)), "1 more page of", others=(2,)
        ),
        "too many samples.tif": Odd(
            tiff(np.zeros((*grey.shape, 20), np.uint16), photometric="minisblack", planarconfig="contig"),
            refused="20 samples",
        ),
        "fewer strips than rows.tif": Odd(tiff(planes, **apart)[: -len(planes.tobytes()) // 2], refused="damaged"),
    }


def _jpegs() -> dict[str, Odd]:
    image = photo("chelsea", SIZE)
    found: dict[str, Odd] = {}
    for kind, content in (
        ("baseline", encode(image, "JPEG", quality=97, subsampling=0)),
        ("progressive", encode(image, "JPEG", quality=97, subsampling=0, progressive=True)),
    ):
        short = "the lowest" if kind == "baseline" else "ends early"
        last = content[: len(content) * 99 // 100]
        found |= {
            f"{kind}, no end marker.jpg": Odd(content[:-2]),
            f"{kind}, half an end marker.jpg": Odd(content[:-1]),
            f"{kind}, zeros behind.jpg": Odd(content + bytes(5000)),
            f"{kind}, panorama behind.jpg": Odd(content + b"\0\0\x10\x0bPanorama_Shot_Info" + bytes(range(256)) * 20),
            f"{kind}, motion behind.jpg": Odd(content + struct.pack(">I", 24) + b"ftypmp42" + bytes(range(256)) * 20),
            f"{kind}, another photo behind.jpg": Odd(content + encode(image.rotate(180), "JPEG")),
            f"{kind}, a byte before.jpg": Odd(b"\0" + content),
            f"{kind}, a line before.jpg": Odd(b"\r\n" + content),
            f"{kind}, filling between markers.jpg": Odd(content[:2] + b"\xff\xff\xff" + content[2:]),
            f"{kind}, the last hundredth missing.jpg": Odd(last, short, tolerance=4),
            f"{kind}, a byte before, the last hundredth missing.jpg": Odd(b"\n" + last, short, tolerance=4),
            f"{kind}, nearly all missing.jpg": Odd(content[: len(content) // 40], refused="truncated"),
        }
    baseline = encode(image, "JPEG", quality=97)
    return found | {
        "half missing.jpg": Odd(baseline[: len(baseline) // 2], refused="truncated"),
        "header alone.jpg": Odd(baseline[:100], refused="truncated"),
        "a page of text before.jpg": Odd(b"Subject: photo\n" * 90 + baseline, refused="not a photo"),
    }


def profile_of(primaries: tuple[tuple[float, float], ...], gamma: float) -> bytes:
    """Return a display profile (ICC.1, version 2) of primaries and a white in D50, and one gamma.

    Parameters
    ----------
    primaries : tuple of three pairs
        x, y of red, green and blue, adapted to D50.
    gamma : float
        Exponent of all three curves.
    """
    white = np.array([0.9642, 1.0, 0.8249])
    matrix = np.array([[x / y, 1, (1 - x - y) / y] for x, y in primaries]).T
    scaled = matrix * np.linalg.solve(matrix, white)

    def fixed(value: float) -> bytes:
        return struct.pack(">i", round(value * 65536))

    tags = {b"wtpt": b"XYZ \0\0\0\0" + b"".join(map(fixed, white))}
    for name, column in zip((b"rXYZ", b"gXYZ", b"bXYZ"), scaled.T, strict=True):
        tags[name] = b"XYZ \0\0\0\0" + b"".join(map(fixed, column))
    for name in (b"rTRC", b"gTRC", b"bTRC"):
        tags[name] = b"curv\0\0\0\0" + struct.pack(">IHH", 1, round(gamma * 256), 0)
    text = b"made by a test\0"
    tags[b"desc"] = b"desc\0\0\0\0" + struct.pack(">I", len(text)) + text + bytes(12 + 67)
    tags[b"cprt"] = b"text\0\0\0\0none\0\0\0\0"
    table, body, place = b"", b"", 128 + 4 + 12 * len(tags)
    for name, value in tags.items():
        value += bytes(-len(value) % 4)
        table += name + struct.pack(">II", place + len(body), len(value))
        body += value
    content = struct.pack(">I", len(tags)) + table + body
    head = struct.pack(">I4sI4s4s4s", 128 + len(content), bytes(4), 0x02400000, b"mntr", b"RGB ", b"XYZ ")
    return (head + bytes(12) + b"acsp" + bytes(28) + b"".join(map(fixed, white))).ljust(128, b"\0") + content


# Primaries adapted to D50 (Bradford), and gamma.
PROFILES: dict[str, bytes] = {
    "Display P3": profile_of(((0.6797, 0.3203), (0.2840, 0.6744), (0.1553, 0.0414)), 2.2),
    "Adobe RGB": profile_of(((0.6484, 0.3309), (0.2302, 0.7016), (0.1559, 0.0661)), 2.2),
    "ProPhoto RGB": profile_of(((0.7347, 0.2653), (0.1596, 0.8404), (0.0366, 0.0001)), 1.8),
}


def in_profile(profile: bytes) -> Image.Image:
    """Return the photograph converted to a profile, with the same appearance."""
    wide = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    found = ImageCms.profileToProfile(Image.fromarray(colours()), ImageCms.createProfile("sRGB"), wide)
    assert found is not None
    return found


def _coloured() -> dict[str, Odd]:
    found = {}
    for name, profile in PROFILES.items():
        image = in_profile(profile)
        for ending, format, how in (("png", "PNG", {}), ("jpg", "JPEG", {"quality": 98}), ("tif", "TIFF", {})):
            found[f"{name}.{ending}"] = Odd(encode(image, format, icc_profile=profile, **how), shows="else")
    image = Image.fromarray(colours())
    return found | {
        "a damaged profile.jpg": Odd(encode(image, "JPEG", quality=97, icc_profile=b"no profile" * 9)),
        "an empty profile.png": Odd(encode(image, "PNG", icc_profile=b"\0")),
    }


def line_art(shade: int) -> Image.Image:
    """Return a line drawing of one shade on transparency."""
    lines = Image.fromarray(np.uint8(255) - np.asarray(photo("page", SIZE).convert("L")))
    image = Image.new("RGBA", SIZE, (shade, shade, shade, 0))
    image.putalpha(lines)
    return image


def _transparent() -> dict[str, Odd]:
    dark = "laid over black"
    return {
        "white lines on transparency.png": Odd(encode(line_art(255), "PNG"), dark, shows="else"),
        "white lines on transparency.webp": Odd(encode(line_art(255), "WEBP", lossless=True), dark, shows="else"),
        "near-white lines on transparency.png": Odd(encode(line_art(250), "PNG"), dark, shows="else"),
        "black lines on transparency.png": Odd(encode(line_art(0), "PNG"), shows="else"),
        "a photo that hides nothing.png": Odd(encode(Image.fromarray(colours()).convert("RGBA"), "PNG")),
    }


def _animated() -> dict[str, Odd]:
    shown, white = Image.fromarray(colours()), Image.new("RGB", SIZE, "white")
    clear = Image.new("RGBA", SIZE)

    def film(format: str, *frames: Image.Image, **options: Any) -> bytes:
        return encode(frames[0], format, save_all=True, append_images=frames[1:], duration=40, **options)

    one, two = "its first frame is blank", "its first 2 frames are blank"
    return {
        "blank first.gif": Odd(film("GIF", white, shown), one, tolerance=9),  # a palette of 256
        "transparent first.gif": Odd(film("GIF", clear, shown, disposal=2), one, tolerance=9),
        "blank first.png": Odd(film("PNG", white, Image.new("RGB", SIZE), shown), two),
        "transparent first.webp": Odd(film("WEBP", clear, shown.convert("RGBA"), lossless=True), one),
        "blank later.webp": Odd(film("WEBP", shown, white, lossless=True)),
    }


@cache
def odd_photos() -> dict[str, Odd]:
    """Return all, by their names."""
    makers: tuple[Callable[[], dict[str, Odd]], ...] = (_tiffs, _jpegs, _coloured, _transparent, _animated)
    return {name: odd for make in makers for name, odd in make().items()}
