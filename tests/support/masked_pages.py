"""Searches with text pages: numbers of pages found by text alone, and by a common ornament."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cairn
from retrieval.search.query import PhotoUnusable
from tests.support.printed_pages import deal_ornaments, photograph, print_page, typefaces, write_photo


@dataclass(frozen=True)
class PageFigures:
    """Results of searches with all pages of a set."""

    features: int
    masked: int  # pages with masked text
    wrong: int  # pairs of pages found without a common ornament
    found: int  # pairs with one
    wanted: int


def print_set(
    folder: Path, typeface: int = 0, size: int = 22, columns: int = 1, *, pages: int = 60, ornaments: int = 20
) -> list[tuple[int, ...]]:
    """Write photos of pages, each ornament on three of them; return the ornaments of each page."""
    dealt = deal_ornaments(pages, ornaments)
    folder.mkdir()
    for number, own in enumerate(dealt):
        look = {"font": typefaces()[typeface], "size": size, "columns": columns, "head": "THE HISTORY OF ORNAMENT"}
        write_photo(folder / f"{number:02d}.jpg", photograph(print_page(number, own, **look), number)[0])
    return dealt


def search_set(folder: Path, dealt: list[tuple[int, ...]], ignore: str | None, workers: int = 1) -> PageFigures:
    """Index the pages, masking text or not, and search with each, counting photos called found."""
    wrong = found = 0
    with cairn.create(folder.parent / f"{folder.name}-{ignore}.cairn", ignore=ignore) as collection:
        collection.add(folder, workers=workers)
        for number in range(len(dealt)):
            try:
                answer = list(collection.search(folder / f"{number:02d}.jpg", top=len(dealt)))
            except PhotoUnusable:  # only text
                continue
            for other in (int(Path(one.name).stem) for one in answer if one.found):
                shared = set(dealt[number]) & set(dealt[other])
                found += bool(shared) and other != number
                wrong += not shared and other != number
        info = collection.info()
    pairs = [(one, other) for place, one in enumerate(dealt) for other in dealt[:place] if set(one) & set(other)]
    return PageFigures(info.features, info.text_masked, wrong, found, 2 * len(pairs))
