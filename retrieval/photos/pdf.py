"""Pages of PDF as photos, drawn by PDFium, which is an optional package."""

from __future__ import annotations

import importlib
import threading
from dataclasses import dataclass
from typing import IO, Any

from PIL import Image

from index.errors import CairnError
from index.extras import install_command
from retrieval.photos.tiff import MOST_DIRECTORIES, no_page
from retrieval.photos.work import refuse_large

DOTS_AN_INCH = 200
"""How finely pages are drawn: pixels of such a photo. Pages are scanned at 200 to 600."""
_POINTS_AN_INCH = 72
_drawing = threading.Lock()  # PDFium knows one thread


def is_pdf(head: bytes) -> bool:
    """Whether a file whose first bytes are these is a PDF."""
    return head.startswith(b"%PDF-")


def load_pdf() -> Any:
    """Load the reader of PDF; raises CairnError if it is not installed."""
    try:
        return importlib.import_module("pypdfium2")
    except ImportError:
        raise CairnError(f"PDF needs an optional package: {install_command('pdf')}") from None


@dataclass(frozen=True)
class PdfPage:
    """A page of a PDF."""

    document: Any
    number: int  # of the pages of the file, from 1
    others: int  # number of other pages, if this one has the name of the file

    def draw(self, max_pixels: int) -> Image.Image:
        """Draw the page; raises CairnError if it is too large."""
        scale = DOTS_AN_INCH / _POINTS_AN_INCH
        with _drawing:
            page = self.document[self.number - 1]
            width, height = (max(1, round(side * scale)) for side in page.get_size())
            refuse_large(width, height, (width, height), max_pixels)
            image = page.render(scale=scale, rev_byteorder=True).to_pil()
        return image if isinstance(image, Image.Image) else Image.fromarray(image)


def pdf_page(file: IO[bytes], wanted: int | None = None) -> PdfPage:
    """Find a page of a PDF, by default the first; the file stays open as long as the page is in use."""
    pdfium = load_pdf()
    file.seek(0)
    with _drawing:
        try:
            document = pdfium.PdfDocument(file)
        except pdfium.PdfiumError as error:
            if "password" in str(error).lower():
                raise CairnError("the PDF is locked by a password") from None
            raise
        pages = len(document)
    if pages < (wanted or 1):
        raise no_page(wanted or 1, pages)
    return PdfPage(document, wanted or 1, 0 if wanted else min(pages, MOST_DIRECTORIES) - 1)
