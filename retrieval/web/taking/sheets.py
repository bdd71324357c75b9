"""Contact sheets: small pictures of photos with their titles or names below, on pages of A4."""

import contextlib
import io
import unicodedata
from collections.abc import Sequence
from typing import Literal

from PIL import Image, ImageDraw, ImageFont

DPI = 150
PAGE = (1240, 1754)  # pixels: A4
COLUMNS, ROWS = 4, 6
MARGIN, GAP, CAPTION = 80, 24, 34  # pixels
_TEXT = 17  # pixels
_END = 12  # characters of a caption that are always shown, to distinguish photos
_LONGEST = 200  # characters of a caption that are looked at
_FONTS = ("DejaVuSans.ttf", "NotoSans-Regular.ttf", "LiberationSans-Regular.ttf", "Arial.ttf", "arial.ttf")
"""Fonts of common systems; Pillow's own font only has ASCII letters."""
_LETTERS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})
_INK, _WELL = (40, 40, 40), (236, 238, 238)


def contact_sheet(photos: Sequence[tuple[bytes | None, str]], form: Literal["pdf", "png"] = "pdf") -> bytes:
    """Put thumbnails (JPEG, or None) and captions on pages of a PDF, or below each other in one PNG."""
    font = find_font()
    written = font or ImageFont.load_default(_TEXT)
    width = (PAGE[0] - 2 * MARGIN - (COLUMNS - 1) * GAP) // COLUMNS
    height = (PAGE[1] - 2 * MARGIN - (ROWS - 1) * GAP) // ROWS
    pages = []
    for place, (picture, caption) in enumerate(photos):
        row, column = divmod(place % (COLUMNS * ROWS), COLUMNS)
        if row == column == 0:
            pages.append(Image.new("RGB", PAGE, "white"))
        page, left, top = pages[-1], MARGIN + column * (width + GAP), MARGIN + row * (height + GAP)
        drawing = ImageDraw.Draw(page)
        room = (width, height - CAPTION)
        if picture is None:
            drawing.rectangle((left, top, left + room[0] - 1, top + room[1] - 1), fill=_WELL)
            drawing.text((left + room[0] // 2, top + room[1] // 2), "cannot be shown", _INK, written, anchor="mm")
        else:
            with Image.open(io.BytesIO(picture)) as opened:
                small = opened.convert("RGB")
            small.thumbnail(room, Image.Resampling.LANCZOS)
            page.paste(small, (left + (room[0] - small.width) // 2, top + room[1] - small.height))
        drawing.text((left, top + room[1] + 8), fit_caption(caption, font, width), _INK, written)
    file = io.BytesIO()
    if form == "png":
        used = -(-(len(photos) - (len(pages) - 1) * COLUMNS * ROWS) // COLUMNS)  # rows of the last page
        end = MARGIN + used * (height + GAP)
        whole = Image.new("RGB", (PAGE[0], (len(pages) - 1) * PAGE[1] + min(end + MARGIN - GAP, PAGE[1])), "white")
        for place, page in enumerate(pages):
            whole.paste(page, (0, place * PAGE[1]))
        whole.save(file, "PNG")
        return file.getvalue()
    pages[0].save(file, "PDF", save_all=True, append_images=pages[1:], resolution=DPI, quality=88)
    return file.getvalue()


def find_font() -> ImageFont.FreeTypeFont | None:
    """Return a font of the system for most European languages, or None."""
    for name in _FONTS:
        with contextlib.suppress(OSError):
            return ImageFont.truetype(name, _TEXT)
    return None


def fit_caption(text: str, font: ImageFont.FreeTypeFont | None, width: int) -> str:
    """Shorten a text in the middle to a width in pixels, on one line. Without a font only ASCII letters are used."""
    text = "".join(one if one.isprintable() else "?" for one in text)
    dots = "…"
    if font is None:
        parted = unicodedata.normalize("NFKD", text.translate(_LETTERS))
        text = "".join(one if one.isascii() else "?" for one in parted if not unicodedata.combining(one))
        dots = "..."
    if len(text) > _LONGEST:
        text = text[: _LONGEST // 2] + text[-_LONGEST // 2 :]
    measure = (font or ImageFont.load_default(_TEXT)).getlength
    if measure(text) <= width:
        return text
    start, end = text[:-_END], text[-_END:]
    while start and measure(start + dots + end) > width:
        start = start[:-1]
    return start + dots + end
