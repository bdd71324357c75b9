"""Procedurally drawn woodcuts, and ageing of their blocks: broken lines, and worm holes."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

WIDTH, HEIGHT = 620, 460
_FINE = 2  # scale of a block relative to its display
_PAPER, _INK = 232, 28


@cache
def print_block(number: int, age: float = 0.0) -> NDArray[np.uint8]:
    """Print a block: grey values (H, W) uint8, at most HEIGHT and WIDTH.

    Parameters
    ----------
    number : int
        Of the block: the same number is the same picture.
    age : float
        0: new; 1: with a few hundred breaks and a dozen holes. Breaks of an earlier age stay.
    """
    rng = np.random.default_rng((52, number))
    image = Image.new("L", (_FINE * WIDTH, _FINE * HEIGHT), 255)
    draw = ImageDraw.Draw(image)
    ground = HEIGHT * rng.uniform(0.55, 0.72)
    _draw_sky(draw, rng, ground)
    _draw_hills(draw, rng, ground)
    left = 0.0
    while left < WIDTH - 100:
        x, y, size = left + rng.uniform(20, 70), ground + rng.uniform(30, 110), rng.uniform(70, 150)
        (_draw_tree, _draw_tower, _draw_ship)[rng.integers(3)](draw, rng, x, min(y, HEIGHT - 20), size)
        left = x + size * 0.7
    width, height = (int(rng.integers(least, most)) for least, most in ((430, WIDTH), (330, HEIGHT)))
    left, top = int(rng.integers(WIDTH - width)), int(rng.integers(HEIGHT - height))
    image = image.crop((_FINE * left, _FINE * top, _FINE * (left + width), _FINE * (top + height)))
    draw = ImageDraw.Draw(image)
    rules = np.cumsum(rng.uniform(3, 9, rng.integers(1, 4)))
    draw.rectangle((0, 0, *image.size), outline=255, width=round(_FINE * rules[-1]))
    for inset in rules:
        _line(draw, _rectangle(inset, inset, width - inset, height - inset), rng.uniform(1.5, 5))
    _wear(draw, np.random.default_rng((53, number)), age)
    small = np.asarray(image.resize((width, height), Image.Resampling.BOX), np.float32) / 255
    return np.rint(_INK + small * (_PAPER - _INK)).astype(np.uint8)


def _line(draw: ImageDraw.ImageDraw, points: object, width: float = 2.5, fill: int = 0) -> None:
    some = [(float(x) * _FINE, float(y) * _FINE) for x, y in np.asarray(points, float)]
    draw.line(some, fill, max(1, round(width * _FINE)), "curve")


def _filled(draw: ImageDraw.ImageDraw, points: object, width: float = 2.5) -> None:
    """Clear the inside of an outline, and draw it."""
    some = np.asarray(points, float)
    draw.polygon([(x * _FINE, y * _FINE) for x, y in some], 255)
    _line(draw, [*some, some[0]], width)


def _rectangle(x0: float, y0: float, x1: float, y1: float) -> list[tuple[float, float]]:
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)]


def _draw_sky(draw: ImageDraw.ImageDraw, rng: np.random.Generator, ground: float) -> None:
    """A sun with rays, and clouds of bent strokes."""
    x, y, size = rng.uniform(80, WIDTH - 80), rng.uniform(60, 110), rng.uniform(18, 34)
    for angle in np.linspace(0, 2 * np.pi, int(rng.integers(9, 22)), endpoint=False) + rng.uniform(0, 1):
        way = np.array([np.cos(angle), np.sin(angle)])
        _line(draw, [(x, y) + way * size * 1.3, (x, y) + way * size * rng.uniform(1.6, 2.6)])
    turn = np.linspace(0, 2 * np.pi, 40)
    _filled(draw, np.stack([x + size * np.cos(turn), y + size * np.sin(turn)], 1))
    along = np.linspace(0, 1, 12)
    for _ in range(int(rng.integers(4, 10))):
        cloud = rng.uniform((0, 20), (WIDTH, ground - 60))
        for _ in range(int(rng.integers(4, 12))):
            start, end = cloud + rng.uniform((-90, -22), (90, 22), (2, 2))
            bend = rng.uniform(-30, 10) * np.sin(along * np.pi)
            _line(draw, start + along[:, None] * (end - start) + bend[:, None] * (0, 1), rng.uniform(1.2, 2.8))


def _draw_hills(draw: ImageDraw.ImageDraw, rng: np.random.Generator, ground: float) -> None:
    """Ridges, one before the other, with strokes of their own direction below each."""
    along = np.linspace(0, WIDTH, 60)
    for depth in range(3):
        waves = sum(rng.uniform(4, 14) * np.sin(along / rng.uniform(25, 110) + rng.uniform(0, 6)) for _ in range(4))
        ridge = ground - 30 + depth * 55 + waves
        _filled(draw, [*np.stack([along, ridge], 1), (WIDTH, HEIGHT), (0, HEIGHT)])
        lean, fine = rng.uniform(-1.5, 1.5), rng.uniform(0.5, 1.6)
        for x in np.cumsum(rng.uniform(5 * fine, 16 * fine, 60)):
            start = np.array([x, np.interp(x, along, ridge) + rng.uniform(2, 30)])
            length = rng.uniform(8, 38) * fine
            _line(
                draw,
                [
                    start,
                    np.add(start, (lean * length * 0.5, length * 0.5)),
                    np.add(start, (lean * length, length * 0.8)),
                ],
                1.8,
            )


def _draw_tree(draw: ImageDraw.ImageDraw, rng: np.random.Generator, x: float, y: float, size: float) -> None:
    """A trunk with bark, and leaves as arcs."""
    width = size * rng.uniform(0.06, 0.12)
    _filled(draw, [(x - width, y), (x - width / 2, y - size), (x + width / 2, y - size), (x + width * 1.4, y)])
    for share in rng.uniform(0.05, 0.9, 9):
        _line(draw, [(x - width / 2, y - size * share), (x + width / 3, y - size * (share - 0.07))], 1.5)
    turn = np.linspace(0, np.pi * 1.3, 10)
    for _ in range(int(rng.integers(26, 46))):
        r, angle, around = size * 0.45 * np.sqrt(rng.random()), rng.uniform(0, 2 * np.pi), rng.uniform(0, 2 * np.pi)
        leaf, centre = size * rng.uniform(0.05, 0.11), (x + r * np.cos(angle), y - size * 1.15 + r * np.sin(angle))
        _filled(draw, np.stack([np.cos(turn + around), np.sin(turn + around)], 1) * leaf + centre, 1.8)


def _draw_tower(draw: ImageDraw.ImageDraw, rng: np.random.Generator, x: float, y: float, size: float) -> None:
    """Walls with shade, a roof or battlements, windows and a door."""
    width, height = size * rng.uniform(0.2, 0.45), size * rng.uniform(0.8, 1.5)
    _filled(draw, _rectangle(x - width, y - height, x + width, y))
    if rng.random() < 0.5:
        _filled(
            draw,
            [(x - width * 1.3, y - height), (x, y - height * rng.uniform(1.3, 1.7)), (x + width * 1.3, y - height)],
        )
    else:
        for left in np.arange(x - width, x + width - 4, width / 2.5):
            _filled(draw, _rectangle(left, y - height - size * 0.12, left + width / 4, y - height))
    edge = rng.uniform(0.1, 0.7)
    for row in np.cumsum(rng.uniform(4, 9, 60)):
        if row < height - 3:
            _line(draw, [(x + width * rng.uniform(edge - 0.2, edge), y - row), (x + width, y - row)], 1.5)
    for _ in range(int(rng.integers(2, 6))):
        left, top = x - width * rng.uniform(-0.1, 0.8), y - height * rng.uniform(0.4, 0.9)
        draw.rectangle(
            [_FINE * one for one in (left, top, left + width * 0.2, top + size * rng.uniform(0.08, 0.16))], 0
        )
    draw.chord([_FINE * one for one in (x - width * 0.4, y - size * 0.3, x + width * 0.2, y + size * 0.3)], 180, 360, 0)


def _draw_ship(draw: ImageDraw.ImageDraw, rng: np.random.Generator, x: float, y: float, size: float) -> None:
    """A hull with planks, masts with sails and ropes, and waves."""
    half, deep = size * 0.8, size * rng.uniform(0.25, 0.4)
    for place in rng.uniform(-0.5, 0.5, int(rng.integers(1, 4))):
        foot, top = (
            np.array([x + half * place, y - deep]),
            np.array([x + half * place, y - deep - size * rng.uniform(0.7, 1.2)]),
        )
        _line(draw, [foot, top], 3.5)
        wide, swell = size * rng.uniform(0.2, 0.4), size * rng.uniform(-0.15, 0.15)
        sail = [
            np.add(top, (-wide, size * 0.1)),
            np.add(top, (wide, size * 0.1)),
            np.add(top, (wide + swell, size * 0.5)),
            np.add(top, (swell - wide, size * 0.45)),
        ]
        _filled(draw, sail)
        for share in rng.uniform(0.1, 0.9, 6):
            start = np.add(top, (wide * (2 * share - 1), size * 0.1))
            _line(draw, [start, np.add(start, (swell, size * rng.uniform(0.15, 0.35)))], 1.5)
        for side in (-half, half):
            _line(draw, [top, (x + side * 0.9, y - deep)], 1.2)
    along = np.linspace(-1, 1, 20)
    _filled(
        draw,
        [
            (x - half, y - deep * 1.3),
            (x + half, y - deep * 1.2),
            *np.stack([x - along * half * 0.8, y - deep * along**4], 1),
        ],
    )
    for share in (0.3, 0.55, 0.8):
        _line(
            draw, np.stack([x + along * half * (0.95 - share * 0.2), y - deep * (1.15 - share) - 3 * along**2], 1), 1.5
        )
    for _ in range(12):
        start = np.array([x + half * rng.uniform(-1.2, 1), y + rng.uniform(-4, 14)])
        _line(draw, start + np.stack([(along + 1) * size * 0.08, 3 * np.sin(along * 3)], 1), 1.8)


def _wear(draw: ImageDraw.ImageDraw, rng: np.random.Generator, age: float) -> None:
    """Break lines, and make holes: the same ones first at every age."""
    for number in range(round(420 * age)):
        x, y = rng.uniform(0, WIDTH), rng.uniform(0, HEIGHT)
        if number % 30 == 29:
            size = rng.uniform(3, 6)
            draw.ellipse([_FINE * one for one in (x - size, y - size, x + size, y + size)], 255)
        else:
            way = rng.uniform(-7, 7, 2)
            _line(draw, [(x, y) - way, np.add((x, y), way)], rng.uniform(1.5, 4), 255)
