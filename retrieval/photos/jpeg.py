"""JPEGs that end too early, or begin too late: what viewers show of them, and how much of them there is."""

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
_FILLING = bytes((0x00, 0x5A, 0xA7, 0x3C)) * 1000  # data of a scan, whatever it stands for, behind 0xFF too
_LONGEST = 1 << 28  # bytes that are looked through


def first_marker(head: bytes) -> int:
    """Return where a JPEG begins whose first bytes are these, behind a few that are none of it; 0 for others."""
    return max(0, head[: _BEFORE + len(_START)].find(_START))


def load(image: Any) -> Remarks:
    """Decode an open JPEG, and as far as it goes if its end is missing.

    Parameters
    ----------
    image : PIL.JpegImagePlugin.JpegImageFile
        As `PIL.Image.open` gives it, whose pixels are loaded here.

    Returns
    -------
    Remarks
        The share of its rows that are missing, at most `MOST_MISSING`. A progressive JPEG has all rows, and may lack
        fine details.

    Raises
    ------
    OSError
        It cannot be decoded, or too much is missing.
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
    """Decode a JPEG whose end is missing with another one; return its rows. Rows that differ by the end are missing."""
    tile, file, read = list(image.tile), image.fp, type(image).load_read
    ends = iter((end,))
    image.load_read = lambda size: read(image, size) or next(ends, b"")
    image.load()
    pixels = np.frombuffer(image.tobytes(), np.uint8).reshape(image.height, -1)
    image.tile, image.fp = tile, file
    return pixels
