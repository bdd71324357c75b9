"""Text pages with ornaments between the lines, in installed fonts, and photos of them.

Ornaments are composed of printers' flowers. Words are made of syllables, and a few are far more frequent, as in any
language, so that pages of different text share many words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

FOLDERS = (Path("/usr/share/fonts"), Path("/Library/Fonts"), Path("/System/Library/Fonts"), Path("C:/Windows/Fonts"))
TYPEFACES = ("LiberationSerif-Regular", "DejaVuSerif", "LiberationSans-Regular", "LiberationSerif-Italic", "DejaVuSans")
WIDTH, HEIGHT, MARGIN = 1000, 1400, 90
_PAPER, _INK = 232, 28
_MOST_ORNAMENTS = 20


@cache
def typefaces() -> list[Path]:
    """Installed text fonts, of `TYPEFACES`."""
    there = {path.stem: path for folder in FOLDERS if folder.is_dir() for path in sorted(folder.rglob("*.ttf"))}
    return [there[name] for name in TYPEFACES if name in there]


@dataclass(frozen=True)
class PrintedPage:
    """A printed page: grey values (H, W) uint8, and boxes of its ornaments, x0, y0, x1, y1, by number."""

    pixels: NDArray[np.uint8]
    places: dict[int, tuple[int, int, int, int]]


@cache
def draw_ornament(number: int, side: int = 300) -> NDArray[np.uint8]:
    """Draw an ornament (side, side), ink on paper, of nine flowers unique to it."""
    rng = np.random.default_rng((77, number))
    image = Image.new("L", (2 * side, 2 * side), _PAPER)
    own = _flowers()[number::_MOST_ORNAMENTS]
    for place, flower in zip(rng.permutation(9), own, strict=False):
        type_of = ImageFont.truetype(str(_flower_font()), round(side * rng.uniform(0.55, 0.95)))
        tile = Image.new("L", (side, side), 0)
        ImageDraw.Draw(tile).text((side // 2, side // 2), flower, 255, type_of, anchor="mm")
        tile = tile.rotate(float(rng.uniform(0, 360)), Image.Resampling.BICUBIC)
        x, y = (np.array(divmod(int(place), 3)) * 0.62 + rng.uniform(-0.1, 0.1, 2)) * side + 0.1 * side
        image.paste(_INK, (round(x) - side // 6, round(y) - side // 6), tile)
    return np.asarray(image.resize((side, side), Image.Resampling.BOX))


def _flower_font() -> Path:
    return next(path for path in typefaces() if path.stem == "DejaVuSans")


@cache
def _flowers() -> list[str]:
    """Pictures of the font in random order, without similar ones."""
    font = ImageFont.truetype(str(_flower_font()), 60)
    seen: dict[bytes, str] = {}
    for code in (*range(0x2600, 0x2630), *range(0x2638, 0x2670), *range(0x2686, 0x26B0), *range(0x2701, 0x2768)):
        seen.setdefault(bytes(font.getmask(chr(code))), chr(code))
    found = list(seen.values())
    return [found[place] for place in np.random.default_rng(3).permutation(len(found))]


@cache
def _words() -> list[str]:
    rng = np.random.default_rng(5)
    parts = ("a be ca de en fi gra ho in ju la ment no or per qui re", "sti tion un ver wo th st ing ed ly er")
    syllables = " ".join(parts).split()
    return ["".join(rng.choice(syllables, rng.integers(1, 4))) for _ in range(900)]


def print_page(
    seed: int, ornaments: tuple[int, ...] = (), *, font: Path, size: int = 22, columns: int = 1, head: str = ""
) -> PrintedPage:
    """Print a page of words, each ornament between two pieces of text."""
    rng = np.random.default_rng((seed, size, columns))
    image = Image.new("L", (WIDTH, HEIGHT), _PAPER)
    draw, type_of = ImageDraw.Draw(image), ImageFont.truetype(str(font), size)
    if head:
        draw.text((WIDTH // 2, MARGIN // 2), head, _INK, type_of, anchor="mm")
    gap, line = 40, round(size * 1.35)
    across = (WIDTH - 2 * MARGIN - gap * (columns - 1)) // columns
    places: dict[int, tuple[int, int, int, int]] = {}
    waiting: dict[int, list[int]] = {int(rng.integers(0, columns)): [] for _ in range(1)} if not ornaments else {}
    for number in ornaments:
        waiting.setdefault(int(rng.integers(0, columns)), []).append(number)
    for column in range(columns):
        left, y = MARGIN + column * (across + gap), MARGIN
        own = waiting.get(column, [])
        at = sorted(int(one) for one in rng.integers(MARGIN, HEIGHT - MARGIN - 700, len(own)))
        while y < HEIGHT - MARGIN:
            if own and y >= at[0]:
                side = min(300, across)
                x0 = left + int(rng.integers(0, across - side + 1))
                y += line // 2
                image.paste(Image.fromarray(draw_ornament(own[0], side)), (x0, y))
                places[own.pop(0)] = x0, y, x0 + side, y + side
                y += side + line // 2
                at = [max(one, y + 2 * line) for one in at[1:]]
                continue
            _set_line(draw, rng, (left, y), across, type_of)
            y += line
    return PrintedPage(np.asarray(image), places)


def _set_line(
    draw: ImageDraw.ImageDraw,
    rng: np.random.Generator,
    start: tuple[int, int],
    across: int,
    font: ImageFont.FreeTypeFont,
) -> None:
    """Set one line of words, justified except for the last of a paragraph."""
    words: list[str] = []
    widths: list[float] = []
    space = draw.textlength(" ", font)
    names = _words()
    while sum(widths) + space * len(words) < across:
        word = names[min(int(rng.pareto(0.7) * 4), len(names) - 1)] + rng.choice(["", "", "", "", ",", "."])
        words.append(word.capitalize() if rng.random() < 0.1 else word)
        widths.append(draw.textlength(words[-1], font))
    words, widths = words[:-1], widths[:-1]
    ends = rng.random() < 0.1
    if ends:
        words, widths = words[: len(words) // 2 + 1], widths[: len(words) // 2 + 1]
    each = space if ends or len(words) < 2 else (across - sum(widths)) / (len(words) - 1)
    x = float(start[0])
    for word, width in zip(words, widths, strict=True):
        draw.text((x, start[1]), word, _INK, font)
        x += width + each


def photograph(
    page: PrintedPage, seed: int, *, turn: float = 4.0, scale: tuple[float, float] = (0.75, 1.0)
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Photograph a page: rotated by up to `turn` degrees, in perspective, unevenly lit, blurred, with noise.

    Returns
    -------
    photo : ndarray of uint8, shape (H, W)
    map : ndarray of float64, shape (3, 3)
        From the page to the photo.
    """
    rng = np.random.default_rng((seed, 3))
    height, width = page.pixels.shape
    factor = rng.uniform(*scale)
    size = round(width * factor), round(height * factor)
    angle = np.deg2rad(rng.uniform(-turn, turn))
    centre, turned = (
        np.array([width, height]) / 2,
        np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]),
    )
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float64)
    moved = ((corners - centre) @ turned.T * 0.96 + centre + rng.uniform(-1, 1, (4, 2)) * 0.015 * width) * factor
    matrix = cv2.getPerspectiveTransform(corners.astype(np.float32), moved.astype(np.float32))
    photo = cv2.warpPerspective(page.pixels, matrix, size, flags=cv2.INTER_AREA, borderValue=90).astype(np.float32)
    x = np.linspace(-1, 1, size[0])
    photo *= (1 - 0.15 * np.abs(x - rng.uniform(-1, 1))).astype(np.float32)
    photo = cv2.GaussianBlur(photo, (0, 0), rng.uniform(0.4, 0.9)) + rng.normal(0, 4, photo.shape)
    return np.clip(photo, 0, 255).astype(np.uint8), matrix.astype(np.float64)


def write_photo(path: Path, photo: NDArray[np.uint8]) -> None:
    """Write a photo as JPEG."""
    Image.fromarray(photo).save(path, quality=80)


def deal_ornaments(pages: int = 60, ornaments: int = 20, each: int = 3) -> list[tuple[int, ...]]:
    """Assign ornaments to pages, each to `each` of them; the second half goes to pages that already have one, or have
    none."""
    rng = np.random.default_rng(11)
    found: list[list[int]] = [[] for _ in range(pages)]
    for number in islice(cycle(range(ornaments)), ornaments * each):
        free = [page for page in range(pages) if number not in found[page] and len(found[page]) < 2]
        found[int(rng.choice(free))].append(number)
    return [tuple(one) for one in found]
