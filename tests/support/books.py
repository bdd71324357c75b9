"""Files of several pages, each with a different photograph."""

from __future__ import annotations

from pathlib import Path

from tests.support.hostile import photo

PAGES = ("chelsea", "coffee", "rocket", "astronaut")
"""Contents of the pages of a book."""


def write_book(path: Path, pages: tuple[str, ...] = PAGES, size: tuple[int, int] = (320, 240)) -> Path:
    """Write a TIFF or a PDF, by extension, whose pages show photographs, each slightly smaller than the last."""
    images = [photo(name, (size[0] - place, size[1] - place)) for place, name in enumerate(pages)]
    images[0].save(path, save_all=True, append_images=images[1:], resolution=200)  # the default of PDF is 72
    return path
