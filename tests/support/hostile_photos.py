"""Photos for a denial of service: small files that take long, and damaged ones of every format."""

from __future__ import annotations

import random
from functools import cache

from tests.support.heavy_photos import progressive
from tests.support.hostile import encode, hostile_files, photo, png

# Pixels of a photo, and repetitions of its last scan.
SCANS = ((12000, 8000, 1000), (9000, 9000, 300), (2000, 1500, 20_000), (640, 480, 60_000))


_progressive = cache(progressive)


@cache
def _sound() -> tuple[bytes, ...]:
    small = photo(size=(320, 240))
    formats: tuple[tuple[str, dict[str, object]], ...] = (
        ("JPEG", {}),
        ("JPEG", {"progressive": True}),
        ("PNG", {}),
        ("WEBP", {}),
        ("GIF", {}),
        ("TIFF", {}),
    )
    return tuple(encode(small, name, **options) for name, options in formats)


def hostile_photo(draw: random.Random) -> tuple[str, bytes]:
    """Draw a photo; return its description and bytes."""
    kind = draw.choice(("scans", "scans", "known", "bytes", "bytes", "cut", "size", "frames"))
    if kind == "scans":
        width, height, times = draw.choice(SCANS)
        return f"{times} scans of {width}x{height} pixels", _progressive((width, height), times)
    if kind == "known":
        return draw.choice(sorted(hostile_files().items()))
    if kind == "size":
        width, height = (draw.choice((1, 9_999, 60_000, 2**31 - 1)) for _ in range(2))
        return f"a PNG that claims {width}x{height} pixels", png(width, height)
    if kind == "frames":
        frames = [photo(size=(64, 48)).rotate(place) for place in range(90)]
        return "90 frames", encode(frames[0], draw.choice(("WEBP", "GIF", "PNG")), save_all=True, append_images=frames)
    content = bytearray(draw.choice(_sound()))
    if kind == "cut":
        return "cut short", bytes(content[: draw.randrange(len(content))])
    for _ in range(draw.choice((1, 5, 50))):
        content[draw.randrange(len(content))] = draw.randrange(256)
    return "bytes changed", bytes(content)
