"""Writing the files of a PhotoTour folder; `learning.patches.phototour` says what they hold, and reads them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from learning.patches.phototour import PATCH, PER_BITMAP, ROW, SIDE, bitmap_name, bitmaps_of


def write_bitmaps(
    folder: Path,
    patches: np.ndarray,
    order: np.ndarray | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> None:
    """Write patches as bitmaps.

    Parameters
    ----------
    folder : Path
        Must exist.
    patches : ndarray, shape (N, 64, 64), uint8
        May be memory-mapped: one bitmap's worth is copied at a time.
    order : ndarray, shape (M,), int, optional
        Which are written, and in which order; None: all as they are.
    progress : callable, optional
        Told how many bitmaps are done, and how many there are.
    """
    order = np.arange(len(patches)) if order is None else order
    total = bitmaps_of(len(order))
    for number in range(total):
        block = np.zeros((PER_BITMAP, PATCH, PATCH), np.uint8)
        part = patches[order[number * PER_BITMAP : (number + 1) * PER_BITMAP]]
        block[: len(part)] = part
        pixels = block.reshape(ROW, ROW, PATCH, PATCH).swapaxes(1, 2).reshape(SIDE, SIDE)
        Image.fromarray(pixels).save(Path(folder) / bitmap_name(number))
        progress(number + 1, total)


def write_info(folder: Path, points: np.ndarray, photos: np.ndarray) -> None:
    """Write ``info.txt``: points (N,) and photos (N,), whole numbers."""
    np.savetxt(Path(folder) / "info.txt", np.stack([points, photos], axis=1), "%d")


def write_interest(folder: Path, photos: np.ndarray, geometry: np.ndarray) -> None:
    """Write ``interest.txt``: photos (N,), and geometry (N, 4) of x, y, orientation (radians) and scale (log2)."""
    rows = np.column_stack([photos, geometry])
    np.savetxt(Path(folder) / "interest.txt", rows, ("%d", "%.6f", "%.6f", "%.6f", "%.6f"))


def write_pairs(folder: Path, split: int, first: np.ndarray, second: np.ndarray, points: np.ndarray) -> str:
    """Write a pair file.

    Parameters
    ----------
    folder : Path
        Must exist.
    split : int
        0, 1, 2: train, validation, test.
    first, second : ndarray, shape (M,), int
        Numbers of patches.
    points : ndarray, shape (N,), int
        The point of every patch, as in ``info.txt``.

    Returns
    -------
    str
        Its name, ``m50_P_N_S.txt`` for P matches, N non-matches and the split S. (The two numbers in the names of the
        published sets' files each give all their pairs.)
    """
    one, two = points[first], points[second]
    matches = int((one == two).sum())
    nothing = np.zeros_like(one)
    name = f"m50_{matches}_{len(one) - matches}_{split}.txt"
    rows = np.stack([first, one, nothing, second, two, nothing, nothing], axis=1)
    np.savetxt(Path(folder) / name, rows, "%d")
    return name
