"""Files of several pages, each a photograph of its own."""

from __future__ import annotations

from pathlib import Path

from tests.support.hostile import photo

PAGES = ("chelsea", "coffee", "rocket", "astronaut")
"""What the pages of a book show."""


def write_book(path: Path, pages: tuple[str, ...] = PAGES, size: tuple[int, int] = (320, 240)) -> Path:
    """Write a TIFF or a PDF, by its ending, whose pages show photographs; each a little smaller than the one before."""
    images = [photo(name, (size[0] - place, size[1] - place)) for place, name in enumerate(pages)]
    images[0].save(path, save_all=True, append_images=images[1:], resolution=200)  # that of PDF is 72 by itself
    return path
