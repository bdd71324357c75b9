"""Metadata of pages of a book from METS files next to them."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from retrieval.metadata.columns import ORDER
from retrieval.metadata.mets import books_beside, find_page

if TYPE_CHECKING:
    from retrieval.collection.collection import Collection


def keep_book_metadata(collection: "Collection", paths: Iterable[Path]) -> None:
    """Store title (once, as people may edit it), page, order and sections of photos that METS lists as pages."""
    places = [os.path.realpath(path) for path in paths]
    below = tuple(os.path.join(one, "") for one in places)  # noqa: PTH118 (ends in a slash)
    looked: dict[str, bool] = {}  # folders, and whether there may be METS next to their photos
    pages: dict[int, Path] = {}
    for number, _, path in collection.catalogue.places():
        if not (path.startswith(below) or path in places):
            continue
        folder = path.rpartition(os.sep)[0]
        if folder not in looked:
            looked[folder] = any(books_beside(Path(path)))
        if looked[folder]:
            pages[number] = Path(path)
    if pages:
        _keep(collection, pages)


def _keep(collection: "Collection", pages: dict[int, Path]) -> None:
    from retrieval.collection.sealing import sealed_afterwards
    from retrieval.iiif.manifests import IiifManifest, ManifestPage
    from retrieval.iiif.metadata import Values, keep_values, page_values

    labels: dict[str, str] = {}
    of_photo: dict[int, Values] = {}
    for number, path in pages.items():
        book_page = find_page(path)
        if book_page is None:
            continue
        _, book, page = book_page
        item = IiifManifest(book.title, {}, "", "", "", ())
        values = page_values("", item, ManifestPage("", page.label, "", "", 0, page.sections), page.order, labels)
        of_photo[number] = values
    if of_photo:
        with sealed_afterwards(collection):
            keep_values(collection, of_photo, labels, ORDER)
