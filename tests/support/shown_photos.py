"""Photos and results for display."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

HOSTILE = '<script>alert("&")</script>\n\x1b[31m\'$x_$ \udcff.jpg'


@dataclass(frozen=True)
class ShownResult:
    rank: int = 1
    name: str = "tower.jpg"
    path: Path | str = "nowhere.jpg"
    width: int | None = 200
    height: int | None = 100
    inliers: int = 12
    probability: float = 0.98
    found: bool = True
    region: list[list[float]] | None = None
    query_index: int = 0


@dataclass(frozen=True)
class ShownMatch:
    inliers: int = 2
    probability: float = 0.98
    found: bool = True
    region: list[list[float]] | None = None
    query_ellipses: NDArray[np.float32] = field(default_factory=lambda: ellipses(2))
    photo_ellipses: NDArray[np.float32] = field(default_factory=lambda: ellipses(2))


def ellipses(number: int) -> NDArray[np.float32]:
    """Circles of five pixels, on a line."""
    rows = np.tile(np.array([0, 30, 0.04, 0, 0.04], np.float32), (number, 1))
    rows[:, 0] = np.linspace(10, 90, number)
    return rows


def written_photo(folder: Path, name: str = "tower.jpg", size: tuple[int, int] = (200, 100)) -> Path:
    Image.new("RGB", size, (200, 40, 40)).save(folder / name)
    return folder / name
