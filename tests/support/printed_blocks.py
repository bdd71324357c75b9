"""Procedurally drawn blocks, aged, recut, printed by a simulated press, and photographed.

A block is a set of strokes: a frame of rules, outlines, and hatching within and around them, as woodcuts have. The
impressions of one block differ by its age, ink, paper and the camera; a block that is cut alike differs in each stroke.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from tests.support.printed_pages import PrintedPage, photograph

SIDE = 800
"""Rows and columns of a block, pixels of the page that it is printed on."""
PAGE = (1000, 1240)
"""Width and height of a page, pixels; a block lies in the middle of its width, `TOP` pixels down."""
TOP = 200
_FINE = 3  # pixels that strokes are drawn at to one of the page
_STEP = 4.0  # pixels between the points of a stroke


@dataclass(frozen=True)
class Stroke:
    """A line of a block: its points (K, 2), and its width at each, pixels of the page."""

    points: NDArray[np.float64]
    widths: NDArray[np.float64]

    @property
    def length(self) -> float:
        """Length in pixels."""
        return float(np.linalg.norm(np.diff(self.points, axis=0), axis=1).sum())


def cut_block(seed: int) -> list[Stroke]:
    """Cut a block: two rules around it, seven hatched shapes, and level lines between them."""
    rng = np.random.default_rng((seed, 1))
    strokes = [_rule(rng, *ends, width) for inset, width in ((6, 5.0), (20, 2.5)) for ends in _frame(inset)]
    taken = np.zeros((SIDE, SIDE), np.uint8)
    cv2.rectangle(taken, (0, 0), (SIDE - 1, SIDE - 1), 1, 70)
    for _ in range(7):
        outline = _outline(rng)
        mask = np.zeros_like(taken)
        cv2.fillPoly(mask, [np.rint(outline).astype(np.int32)], 1)
        mask[(taken > 0) | (cv2.erode(1 - taken, np.ones((3, 3), np.uint8)) == 0)] = 0
        if mask.sum() < 4000:
            continue
        strokes += _edges(rng, mask)
        strokes += _hatching(rng, cv2.erode(mask, np.ones((9, 9), np.uint8)), rng.uniform(0, np.pi), (2.0, 4.0))
        taken |= cv2.dilate(mask, np.ones((11, 11), np.uint8))
    return strokes + _hatching(rng, 1 - taken, rng.normal(0, 0.05), (1.6, 2.6), spacing=(13, 20))


def age_block(
    strokes: list[Stroke], seed: int, breaks: int = 12, thinning: float = 0.3, holes: int = 2
) -> list[Stroke]:
    """Break lines of a block, make holes through all that is there, and thin all lines by some pixels."""
    rng = np.random.default_rng((seed, 2))
    worn = [replace(one, widths=np.where(one.widths > 0, np.maximum(one.widths - thinning, 0.8), 0)) for one in strokes]
    lengths = np.array([one.length for one in worn])
    for place in rng.choice(len(worn), breaks, p=lengths / lengths.sum()):
        points = worn[place].points
        centre, reach = points[rng.integers(len(points))], rng.uniform(5, 16)
        worn[place] = replace(worn[place], widths=_cut(worn[place], centre, reach))
    for _ in range(min(holes, breaks)):
        centre, reach = rng.uniform(60, SIDE - 60, 2), rng.uniform(6, 10)
        worn = [replace(one, widths=_cut(one, centre, reach)) for one in worn]
    return worn


def age_states(
    block: list[Stroke], seed: int, ages: NDArray[np.floating], breaks: float = 1.0, thinning: float = 0.01
) -> list[list[Stroke]]:
    """A block at some ages, ascending: each year breaks some lines, a Poisson number, and thins all by some pixels."""
    rng = np.random.default_rng((seed, 6))
    states = []
    for place, years in enumerate(np.diff(ages, prepend=0.0)):
        block = age_block(block, 1000 * seed + place, int(rng.poisson(breaks * years)), thinning * years, holes=0)
        states.append(block)
    return states


def _cut(stroke: Stroke, centre: NDArray[np.float64], reach: float) -> NDArray[np.float64]:
    """Widths of a stroke that has none within some pixels of a place."""
    near = np.linalg.norm(stroke.points - centre, axis=1) < reach
    return np.where(near, 0.0, stroke.widths)


def cut_alike(strokes: list[Stroke], seed: int, jitter: float = 2.5) -> list[Stroke]:
    """Cut a block after another one: each stroke is off its place by about so many pixels, with a width of its own.

    Half of the error is common to what lies within some 200 pixels, as of a drawing that is copied by eye; a twentieth
    of the strokes is left out.
    """
    rng = np.random.default_rng((seed, 3))
    field = _smooth_field(rng, (SIDE, SIDE), 200) * jitter / np.sqrt(2)
    found = []
    for one in strokes:
        if rng.random() < 0.05:
            continue
        at = np.clip(np.rint(one.points).astype(int), 0, SIDE - 1)
        own = rng.normal(0, jitter / 2, 2) + _wobble(rng, len(at), jitter / 2)
        widths = one.widths * rng.uniform(0.85, 1.15)
        found.append(Stroke(one.points + field[at[:, 1], at[:, 0]] + own, widths))
    return found


def print_block(strokes: list[Stroke], seed: int, bend: float = 4.0) -> PrintedPage:
    """Print a block on a page between lines of type, with uneven ink, on paper that has stretched and is bent.

    Parameters
    ----------
    strokes : list of Stroke
    seed : int
        Of ink, paper and type.
    bend : float
        Largest shift by the page's curve, pixels; paper also stretches by up to 0.5% either way.
    """
    rng = np.random.default_rng((seed, 4))
    width, height = PAGE
    plate = np.zeros((height, width), np.float32)
    left = (width - SIDE) // 2
    plate[TOP : TOP + SIDE, left : left + SIDE] = draw_strokes(strokes)
    type_set = np.zeros((height, width), np.uint8)
    for y in (*range(60, TOP - 20, 42), *range(TOP + SIDE + 60, height - 40, 42)):
        letters = "".join(rng.choice(list("abcdefghilmnoprstu  "), 46))
        cv2.putText(type_set, letters, (left, y), cv2.FONT_HERSHEY_COMPLEX, 1.0, 255, 2, cv2.LINE_AA)
    plate = np.maximum(plate, type_set.astype(np.float32) / 255)
    spread = cv2.GaussianBlur(plate, (0, 0), rng.uniform(0.8, 1.3))
    level = rng.uniform(0.36, 0.5) + 0.06 * _smooth_field(rng, (height, width), 120)[..., 0]
    for _ in range(3):  # wiped ink, or no contact of the paper with the block
        y, x = rng.uniform(0, height), rng.uniform(0, width)
        down, across = np.arange(height)[:, None] - y, np.arange(width) - x
        away = np.hypot(down, across) / rng.uniform(40, 90)
        level = level + rng.uniform(0.1, 0.4) * np.exp(-(away**4))
    grain = cv2.GaussianBlur(rng.normal(0, 1, (height, width)).astype(np.float32), (0, 0), 1.2) * 3
    ink = np.clip((spread - level + 0.05 * grain) * 5 + 0.5, 0, 1)
    ink *= rng.uniform(0.8, 1) + 0.06 * _smooth_field(rng, (height, width), 60)[..., 0] + 0.03 * grain
    ink = np.clip(ink, 0, 1)
    paper = rng.uniform(200, 235) + 4 * _smooth_field(rng, (height, width), 150)[..., 0] + 1.5 * grain
    page = paper * (1 - ink) + rng.uniform(30, 60) * ink
    return PrintedPage(_stretched(rng, page.astype(np.float32), bend), {})


def impression(
    strokes: list[Stroke], seed: int, *, bend: float = 4.0, scale: tuple[float, float] = (0.85, 1.0)
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Print a block and photograph the page; returns the photo, and the map (3, 3) from the flat page to it."""
    return photograph(print_block(strokes, seed, bend), seed, scale=scale)


def place_of_block() -> NDArray[np.float64]:
    """Corners (4, 2) of the block on the page."""
    left = (PAGE[0] - SIDE) // 2
    return np.array([[left, TOP], [left + SIDE, TOP], [left + SIDE, TOP + SIDE], [left, TOP + SIDE]], np.float64)


def draw_strokes(strokes: list[Stroke]) -> NDArray[np.float32]:
    """Draw the printing surface of a block: 0 to 1, shape (SIDE, SIDE)."""
    canvas = np.zeros((SIDE * _FINE, SIDE * _FINE), np.uint8)
    for one in strokes:
        corners = np.rint(one.points * _FINE * 16).astype(int)
        widths = np.where(np.minimum(one.widths[:-1], one.widths[1:]) > 0, (one.widths[:-1] + one.widths[1:]) / 2, 0)
        for start, end, width in zip(corners[:-1], corners[1:], widths, strict=True):
            if width > 0:
                cv2.line(canvas, start.tolist(), end.tolist(), 255, max(1, round(width * _FINE)), cv2.LINE_8, 4)
    small: NDArray[Any] = cv2.resize(canvas, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    return small.astype(np.float32) / 255


def _frame(inset: float) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    low, high = inset, SIDE - 1 - inset
    corners = [(low, low), (high, low), (high, high), (low, high)]
    return list(zip(corners, corners[1:] + corners[:1], strict=True))


def _rule(rng: np.random.Generator, start: Any, end: Any, width: float) -> Stroke:
    steps = max(3, round(float(np.linalg.norm(np.subtract(end, start))) / _STEP))
    points = np.linspace(start, end, steps) + _wobble(rng, steps, 0.6)
    return Stroke(points, np.full(steps, width) + _wobble(rng, steps, 0.2)[:, 0])


def _wobble(rng: np.random.Generator, steps: int, size: float) -> NDArray[np.float64]:
    """A smooth random path (steps, 2) of some standard deviation."""
    knots = rng.normal(0, size, (max(2, steps // 8 + 2), 2))
    at = np.linspace(0, len(knots) - 1, steps)
    return np.column_stack([np.interp(at, np.arange(len(knots)), knots[:, axis]) for axis in (0, 1)])


def _smooth_field(rng: np.random.Generator, shape: tuple[int, int], reach: int) -> NDArray[np.float32]:
    """Two random fields (H, W, 2) of standard deviation 1, correlated within some pixels."""
    coarse = rng.normal(0, 1, (shape[0] // reach + 3, shape[1] // reach + 3, 2)).astype(np.float32)
    fine: NDArray[Any] = cv2.resize(coarse, shape[::-1], interpolation=cv2.INTER_CUBIC)
    return np.asarray(fine, np.float32)


def _outline(rng: np.random.Generator) -> NDArray[np.float64]:
    angle = np.linspace(0, 2 * np.pi, 80, endpoint=False)
    radius = rng.uniform(90, 170) * np.ones_like(angle)
    for wave in range(2, 6):
        radius *= 1 + rng.normal(0, 0.16) * np.cos(wave * angle + rng.uniform(0, 7))
    centre = rng.uniform(150, SIDE - 150, 2)
    return np.asarray(centre + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))


def _edges(rng: np.random.Generator, mask: NDArray[np.uint8]) -> list[Stroke]:
    found = []
    for contour in cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[0]:
        points = contour[:: round(_STEP), 0].astype(np.float64)
        if len(points) > 8:
            points = np.vstack([points, points[:1]])
            found.append(Stroke(points, rng.uniform(3, 5) + _wobble(rng, len(points), 0.5)[:, 0]))
    return found


def _hatching(
    rng: np.random.Generator,
    mask: NDArray[np.uint8],
    angle: float,
    width: tuple[float, float],
    spacing: tuple[float, float] = (9, 14),
) -> list[Stroke]:
    """Curved parallel strokes within a mask, with ends that taper."""
    along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    gap, curve = rng.uniform(*spacing), rng.normal(0, 2e-4)
    steps = np.arange(-SIDE, SIDE, _STEP)
    found = []
    for off in np.arange(-SIDE, SIDE, gap):
        shift = off + rng.normal(0, gap / 10) + curve * steps**2
        points = SIDE / 2 + steps[:, None] * along + shift[:, None] * across
        at = np.rint(points).astype(int)
        inside = (at >= 0).all(axis=1) & (at < SIDE).all(axis=1)
        inside[inside] = mask[at[inside, 1], at[inside, 0]] > 0
        edges = np.flatnonzero(np.diff(np.concatenate([[0], inside.astype(np.int8), [0]])))
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            if end - start < 5:
                continue
            taper = np.minimum(1, (0.5 + np.minimum(np.arange(end - start), np.arange(end - start)[::-1])) / 4)
            own = points[start:end] + _wobble(rng, end - start, 0.5)
            found.append(Stroke(own, rng.uniform(*width) * taper))
    return found


def _stretched(rng: np.random.Generator, page: NDArray[np.float32], bend: float) -> NDArray[np.uint8]:
    """A page distorted by stretching: globally, by a curve at one side, and locally."""
    height, width = page.shape
    x, y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    scale = 1 + rng.uniform(-0.005, 0.005, 2)
    own = _smooth_field(rng, (height, width), 300) * 0.4
    side = x / width if rng.random() < 0.5 else 1 - x / width
    curve = bend * rng.uniform(-1, 1) * side**2
    from_x = (x - width / 2) * scale[0] + width / 2 + curve + own[..., 0]
    from_y = (y - height / 2) * scale[1] + height / 2 + own[..., 1] + 0.3 * curve
    bent = cv2.remap(page, from_x.astype(np.float32), from_y.astype(np.float32), cv2.INTER_CUBIC, borderValue=215)
    return np.asarray(np.clip(bent, 0, 255), np.uint8)
