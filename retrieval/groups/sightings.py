"""Looks (small pictures for comparison) of a collection's photos, from their thumbnails."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.parallel import run
from index.progress import Progress, silent
from retrieval.catalogue.schema import ImageRow
from retrieval.groups.looks import PhotoLook, look
from retrieval.photos.thumbnails import SIZES, thumbnail

STEP = "look"
"""What the progress of `see_photos` calls its one step."""

_BATCH = 16  # photos for a process at a time


def see_photos(
    rows: Iterable[ImageRow],
    cache: Path,
    *,
    workers: int = 1,
    progress: Progress = silent,
) -> dict[int, PhotoLook]:
    """Return the looks of photos, by number, without blank and unreadable ones, and only one of equal files."""
    # Do not hold the rows of a large collection.
    wanted: dict[str, tuple[int, Callable[[], PhotoLook | None]]] = {}
    for row in rows:
        task = partial(_see, row.path, row.sha256, row.width, row.height, cache)
        wanted.setdefault(row.sha256 or f"none {row.number}", (row.number, task))
    looks: dict[int, PhotoLook] = {}
    results = run((task for _, task in wanted.values()), workers, batch=_BATCH)
    for done, ((number, _), seen) in enumerate(zip(wanted.values(), results, strict=True), start=1):
        if seen is not None:
            looks[number] = seen
        progress(STEP, done, len(wanted))
    return looks


def _see(path: str, sha256: str | None, width: int | None, height: int | None, cache: Path) -> PhotoLook | None:
    """The look of one photo; None if it is blank or cannot be read."""
    try:
        jpeg = thumbnail(Path(path), sha256, SIZES[0], cache)
    except CairnError:
        return None
    seen: NDArray[Any] | None = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    if seen is None:
        return None
    picture = np.asarray(cv2.cvtColor(seen, cv2.COLOR_BGR2RGB), np.uint8)
    return look(picture, width / height if width and height else None)
