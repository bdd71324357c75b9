"""JPEGs that are truncated, or begin too late: decode the part that viewers show, and measure it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval.photos.remarks import Remarks

MOST_MISSING = 0.25
"""Share of a photo's rows, the lowest ones, that its file may lack."""

_START = b"\xff\xd8\xff"
_BEFORE = 16  # bytes that may stand before the first marker
_END, _SCAN, _FRAME = b"\xff\xd9", b"\xff\xda", b"\xff\xc2"
_FILLING = bytes((0x00, 0x5A, 0xA7, 0x3C)) * 1000  # arbitrary data of a scan, valid also after 0xFF
_LONGEST = 1 << 28  # bytes examined at most


def first_marker(head: bytes) -> int:
    """Return the offset of a JPEG that begins after a few foreign bytes; 0 for other files."""
    return max(0, head[: _BEFORE + len(_START)].find(_START))


def load(image: Any) -> Remarks:
    """Decode an open JPEG, as far as possible if its end is missing; the remarks have the share of missing rows.

    That is at most `MOST_MISSING`, else OSError is raised. A progressive JPEG has all rows, and may lack fine details.
    """
    try:
        image.load()
        return Remarks()
    except OSError as error:
        if error.errno is not None or "truncated" not in str(error):
            raise
        rough = bool(image.info.get("progressive"))
        if rough and not _has_all_rows(image):
            raise
        other = _completed(image, _FILLING + _END)
        pixels = _completed(image, _END)
        image.tile = []  # it is decoded
        different = np.flatnonzero((pixels != other).any(axis=1))
        missing = (image.height - int(different[0])) / image.height if len(different) and not rough else 0.0
        if missing > MOST_MISSING:
            raise
        return Remarks(missing, rough and len(different) > 0)


def _has_all_rows(image: Any) -> bool:
    """Whether a second scan of a progressive JPEG has begun: the first has all rows, roughly."""
    image.fp.seek(0)
    data = image.fp.read(_LONGEST)
    return bool(data.count(_SCAN, data.rfind(_FRAME)) > 1)


def _completed(image: Any, end: bytes) -> NDArray[np.uint8]:
    """Decode a truncated JPEG with a substitute end; return its rows. Rows that depend on the end are missing."""
    tile, file, read = list(image.tile), image.fp, type(image).load_read
    ends = iter((end,))
    image.load_read = lambda size: read(image, size) or next(ends, b"")
    image.load()
    pixels = np.frombuffer(image.tobytes(), np.uint8).reshape(image.height, -1)
    image.tile, image.fp = tile, file
    return pixels
