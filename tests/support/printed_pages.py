"""Pages of type with ornaments between the lines, drawn by fonts that are installed, and photos of them.

Ornaments are drawn like woodcuts: closed curves, hatched within. Words are made of syllables, a few of which are far more
frequent than the others, as in any language, so that pages of different text have many words in common.
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


@cache
def typefaces() -> list[Path]:
    """Fonts of text that are installed, of `TYPEFACES`."""
    there = {path.stem: path for folder in FOLDERS if folder.is_dir() for path in sorted(folder.rglob("*.ttf"))}
    return [there[name] for name in TYPEFACES if name in there]


@dataclass(frozen=True)
class PrintedPage:
    """A page as it is printed: its grey values (H, W) uint8, and where its ornaments are: x0, y0, x1, y1 by number."""

    pixels: NDArray[np.uint8]
    places: dict[int, tuple[int, int, int, int]]


@cache
def draw_ornament(number: int, side: int = 300) -> NDArray[np.uint8]:
    """Draw an ornament (side, side), ink on paper: leaves about a centre, each hatched, in a frame of its own."""
    rng = np.random.default_rng((77, number))
    big = np.full((2 * side, 2 * side), _PAPER, np.uint8)
    t = np.linspace(0, 2 * np.pi, 400)
    for _ in range(int(rng.integers(5, 9))):
        centre = side + rng.uniform(-0.5, 0.5, 2) * side
        radius = rng.uniform(0.15, 0.45) * side
        waves = sum(rng.uniform(0, 0.25) * np.cos(k * t + rng.uniform(0, 6)) for k in range(2, 7))
        curve = (centre + (radius * (1 + waves))[:, None] * np.stack([np.cos(t), np.sin(t)], 1)).astype(np.int32)
        inside = np.zeros_like(big)
        cv2.fillPoly(inside, [curve], 255)
        big[inside > 0] = _PAPER
        y, x = np.mgrid[: 2 * side, : 2 * side]
        angle, period, bend = rng.uniform(0, np.pi), rng.uniform(9, 20), rng.uniform(20, 80)
        wave = x * np.cos(angle) + y * np.sin(angle) + 12 * np.sin((x * np.sin(angle) - y * np.cos(angle)) / bend)
        big[(inside > 0) & (wave % period < period * rng.uniform(0.25, 0.6))] = _INK
        cv2.polylines(big, [curve], True, _INK, int(rng.integers(4, 9)), cv2.LINE_AA)
    cv2.rectangle(big, (6, 6), (2 * side - 7, 2 * side - 7), _INK, int(rng.integers(4, 10)))
    return cv2.resize(big, (side, side), interpolation=cv2.INTER_AREA)


@cache
def _words() -> list[str]:
    rng = np.random.default_rng(5)
    parts = "a be ca de en fi gra ho in ju la ment no or per qui re sti tion un ver wo th st ing ed ly er".split()
    return ["".join(rng.choice(parts, rng.integers(1, 4))) for _ in range(900)]


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
    waiting = {int(rng.integers(0, columns)): [] for _ in range(1)} if not ornaments else {}
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
    """Set one line of words, justified but for the last of a paragraph."""
    words, widths, space = [], [], draw.textlength(" ", font)
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
    """Photograph a page: turned by up to some degrees, in perspective, unevenly lit, blurred, with noise.

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
    centre, turned = np.array([width, height]) / 2, np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float64)
    moved = ((corners - centre) @ turned.T * 0.96 + centre + rng.uniform(-1, 1, (4, 2)) * 0.015 * width) * factor
    matrix = cv2.getPerspectiveTransform(corners.astype(np.float32), moved.astype(np.float32))
    photo = cv2.warpPerspective(page.pixels, matrix, size, flags=cv2.INTER_AREA, borderValue=90).astype(np.float32)
    x = np.linspace(-1, 1, size[0])
    photo *= (1 - 0.15 * np.abs(x - rng.uniform(-1, 1))).astype(np.float32)
    photo = cv2.GaussianBlur(photo, (0, 0), rng.uniform(0.4, 0.9)) + rng.normal(0, 4, photo.shape)
    return np.clip(photo, 0, 255).astype(np.uint8), matrix


def write_photo(path: Path, photo: NDArray[np.uint8]) -> None:
    """Write a photo as JPEG."""
    Image.fromarray(photo).save(path, quality=80)


def deal_ornaments(pages: int = 60, ornaments: int = 20, each: int = 3) -> list[tuple[int, ...]]:
    """Deal ornaments to pages, each to some: the second half of them comes on pages that have one already, or none."""
    rng = np.random.default_rng(11)
    found: list[list[int]] = [[] for _ in range(pages)]
    for number in islice(cycle(range(ornaments)), ornaments * each):
        free = [page for page in range(pages) if number not in found[page] and len(found[page]) < 2]
        found[int(rng.choice(free))].append(number)
    return [tuple(one) for one in found]
