"""Detect printed type in an image, without a network: pieces of ink of similar height, in several parallel rows.

Typesetting distinguishes type from rows of windows, bricks and hatching: pieces have many widths and few heights, the
same blackness, and hardly any ink between them. A sign has too few letters to be taken for type. The limits were chosen
on scanned books and on photos of streets, paintings and objects; see docs/how-to/books.md.
"""

from dataclasses import astuple, dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

LONGEST_SIDE = 1280
"""Pixels; a larger image is reduced to that before it is looked at."""

_LEAST_SIDE = 32  # pixels of an image that may show type
_HEIGHTS = 4, 90  # pixels of a letter, or of several that touch
_WIDEST = 14  # heights of a piece: a word whose letters touch
_GAP = 1.6  # heights between two pieces that follow each other
_STEEPEST = 0.36  # slope of a row: twenty degrees
_STRAIGHT = 0.35  # largest distance of pieces from the line of their row, in heights
_PITCHES = 1.0, 4.5  # heights between two rows of a block
_MOST_ROWS = 500  # longest rows used for blocks
_LEAST_ROWS = 3  # of a block
_LEAST_LENGTH = 60.0  # heights, of all rows of a block together
_LEAST_PURITY = 0.72  # least part of the ink within a block that belongs to its pieces, for much black type
_LITTLE_PURITY = 0.86  # of other type: rows of bricks have less
_MUCH = 400.0  # heights, of all rows of a block together
_BLACK = 30.0  # grey values
_MOST_CHANGE = 0.22  # of the blackness from one piece to the next, as a logarithm
_MOST_HEIGHTS = 0.34  # spread of the heights in a row, as a logarithm
_FILLING = 0.4, 0.76  # part of a piece's box that is ink: strokes, neither lines nor windows
_REACH = 1.3  # heights from the middle of a row that belong to it


@dataclass(frozen=True)
class _Pieces:
    """Pieces of ink, (N,) float64 each; lengths in pixels."""

    x: NDArray[np.float64]  # left
    y: NDArray[np.float64]  # top
    w: NDArray[np.float64]
    h: NDArray[np.float64]
    ink: NDArray[np.float64]  # pixels
    black: NDArray[np.float64]  # how far it stands off the ground, grey values

    def turned(self) -> "_Pieces":
        """The pieces of the image whose rows and columns have changed places."""
        return _Pieces(self.y, self.x, self.h, self.w, self.ink, self.black)

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> "_Pieces":
        return _Pieces(*(part[chosen] for part in (self.x, self.y, self.w, self.h, self.ink, self.black)))


@dataclass(frozen=True)
class _Rows:
    """Rows of pieces, each along a line y = middle + slope (x - (left + right) / 2); (M,) float64 each."""

    left: NDArray[np.float64]
    right: NDArray[np.float64]
    middle: NDArray[np.float64]
    slope: NDArray[np.float64]
    height: NDArray[np.float64]  # mean of its pieces
    off: NDArray[np.float64]  # distance of pieces from the line in heights, root mean square
    widths: NDArray[np.float64]  # spread of the widths, as a logarithm
    heights: NDArray[np.float64]  # that of the heights
    filling: NDArray[np.float64]  # part of its pieces' boxes that is ink
    change: NDArray[np.float64]  # of the blackness from one piece to the next, as a logarithm
    black: NDArray[np.float64]
    ink: NDArray[np.float64]  # pixels
    pieces: NDArray[np.float64]

    @property
    def length(self) -> NDArray[np.float64]:
        """In heights."""
        return np.asarray((self.right - self.left) / self.height)

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> "_Rows":
        return _Rows(*(part[chosen] for part in astuple(self)))

    def at(self, rows: NDArray[np.int64], x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Height of the line of some rows at places."""
        return np.asarray(self.middle[rows] + self.slope[rows] * (x - (self.left + self.right)[rows] / 2))


def text_mask(grey: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Mask of printed text in a grey image (H, W), dark or light, in blocks of lines including gaps; lines run across
    or upright, within twenty degrees.
    """
    height, width = grey.shape
    small: NDArray[Any] = np.clip(grey, 0, 255).astype(np.uint8)
    factor = LONGEST_SIDE / max(height, width)
    if factor < 1:
        size = max(1, round(width * factor)), max(1, round(height * factor))
        small = cv2.resize(small, size, interpolation=cv2.INTER_AREA)
    mask: NDArray[Any] = np.zeros(small.shape, np.uint8)
    if min(small.shape) >= _LEAST_SIDE:
        for off in _off_ground(small):
            ink = (off > 0).astype(np.uint8)
            pieces = _pieces(ink, off)
            mask |= _mask(pieces, ink)
            mask |= _mask(pieces.turned(), ink.T).T
    if factor < 1:
        mask = cv2.resize(mask, (width, height), interpolation=cv2.INTER_NEAREST)
    return np.asarray(mask > 0)


def _off_ground(grey: NDArray[np.uint8]) -> list[NDArray[np.float32]]:
    """Contrast of dark ink, and of light ink, to the surrounding ground, (H, W) each; 0 without ink."""
    side = 2 * (max(grey.shape) // 50) + 1
    ground = cv2.boxFilter(grey, cv2.CV_32F, (side, side))
    square = cv2.sqrBoxFilter(grey, cv2.CV_32F, (side, side))
    limit = np.maximum(0.25 * np.sqrt(np.maximum(square - ground * ground, 0)), 8.0)
    off = ground - grey
    return [np.where(off > limit, off, 0), np.where(off < -limit, -off, 0)]


def _pieces(ink: NDArray[np.uint8], off: NDArray[np.float32]) -> _Pieces:
    """Divide ink into connected pieces, without those that cannot be letters."""
    number, labels, found, _ = cv2.connectedComponentsWithStats(ink, connectivity=8)
    x, y, w, h, area = found[1:].T.astype(np.float64)
    where = np.flatnonzero(ink)
    black = np.bincount(labels.reshape(-1)[where], off.reshape(-1)[where], minlength=number)[1:] / np.maximum(area, 1)
    least, most = _HEIGHTS
    fits = (np.minimum(w, h) >= 2) & (np.maximum(w, h) >= least) & (np.minimum(w, h) <= most) & (area >= 6)
    return _Pieces(x, y, w, h, area, black).where(fits)


def _mask(pieces: _Pieces, ink: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Mask the type whose lines run across, (H, W) 0 or 1."""
    mask = np.zeros(ink.shape, np.uint8)
    least, most = _HEIGHTS
    pieces = pieces.where((pieces.h >= least) & (pieces.h <= most) & (pieces.w <= _WIDEST * pieces.h))
    if len(pieces.x) < 4 * _LEAST_ROWS:
        return mask
    rows = _rows(pieces)
    type_ = [block for block in _blocks(rows) if _is_type(rows, block, ink)]
    if not type_:
        return mask
    sure = np.concatenate(type_)
    height = float(np.median(rows.height[sure]))
    _paint(mask, rows, sure)
    _paint(mask, rows, _belonging(rows, sure, ink))
    side = round(2 * _REACH * height)  # words at the ends of lines, and gaps between lines
    border = cv2.copyMakeBorder(mask, side, side, side, side, cv2.BORDER_CONSTANT)
    closed = cv2.morphologyEx(border, cv2.MORPH_CLOSE, np.ones((side, side), np.uint8))
    return np.asarray(closed[side:-side, side:-side])


def _links(pieces: _Pieces) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pieces, and for each of them the next one in its row."""
    stretch = np.array([1.0, 2.0])  # a row is narrow
    ends = np.stack([pieces.x + pieces.w, pieces.y + pieces.h / 2], 1) * stretch
    starts = np.stack([pieces.x, pieces.y + pieces.h / 2], 1) * stretch
    near = min(6, len(starts))
    _, nearest = cKDTree(starts).query(ends, near, distance_upper_bound=_GAP * pieces.h.max())
    one, other = np.repeat(np.arange(len(starts)), near), nearest.reshape(-1)
    there = other < len(starts)
    one, other = one[there], other[there]
    x, y, w, h = pieces.x, pieces.y, pieces.w, pieces.h
    taller = np.maximum(h[one], h[other])
    gap = x[other] - x[one] - w[one]
    tops, bottoms = np.abs(y[one] - y[other]), np.abs(y[one] + h[one] - y[other] - h[other])
    fits = (
        (x[other] > x[one] + 0.3 * w[one])
        & (gap <= _GAP * taller)
        & (np.minimum(bottoms, tops) <= 0.4 * taller)
        & (np.maximum(bottoms, tops) <= 0.75 * taller)
        & (np.minimum(h[one], h[other]) >= 0.45 * taller)
    )
    one, other, gap = one[fits], other[fits], gap[fits]
    order = np.lexsort((gap, one))
    nearest = order[np.diff(one[order], prepend=-1) != 0]
    return one[nearest], other[nearest]


def _rows(pieces: _Pieces) -> _Rows:
    """Group pieces into rows; return straight rows of three pieces and more."""
    number = len(pieces.x)
    one, other = _links(pieces)
    _, label = connected_components(
        csr_array((np.ones(len(one)), (one, other)), shape=(number, number)), directed=False
    )
    label = label[order := np.lexsort((pieces.x, label))]
    several = np.bincount(label)[label] >= 3
    label, pieces = label[several], pieces.where(order[several])
    begins = np.flatnonzero(np.diff(label, prepend=-1))
    count = np.diff([*begins, len(label)]).astype(np.float64)
    which = np.repeat(np.arange(len(begins)), count.astype(np.int64))

    def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(which, values, len(begins)) / count

    def spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.sqrt(mean((values - mean(values)[which]) ** 2))

    right = np.full(len(begins), -np.inf)
    np.maximum.at(right, which, pieces.x + pieces.w)
    left, height = pieces.x[begins], mean(pieces.h)
    x, y = pieces.x + pieces.w / 2 - ((left + right) / 2)[which], pieces.y + pieces.h / 2
    apart = x - mean(x)[which]
    slope = mean(apart * y) / np.maximum(mean(apart**2), 1e-6)
    middle = mean(y) - slope * mean(x)
    off = np.sqrt(mean((y - middle[which] - slope[which] * x) ** 2)) / height
    change = np.abs(np.diff(np.log(pieces.black), prepend=0.0))
    change[begins] = 0
    rows = _Rows(
        *(left, right, middle, slope, height, off),
        widths=spread(np.log(pieces.w)),
        heights=spread(np.log(pieces.h)),
        filling=mean(pieces.ink / (pieces.w * pieces.h)),
        change=mean(change) * count / np.maximum(count - 1, 1),
        black=mean(pieces.black),
        ink=mean(pieces.ink) * count,
        pieces=count,
    )
    rows = rows.where((rows.off <= _STRAIGHT) & (np.abs(rows.slope) <= _STEEPEST) & (rows.length >= 2))
    return rows.where(np.sort(np.argsort(-rows.length, kind="stable")[:_MOST_ROWS]))


def _blocks(rows: _Rows) -> list[NDArray[np.int64]]:
    """Long rows that lie below each other at the distance of lines, are alike and parallel."""
    long = np.flatnonzero((rows.widths >= 0.3) & (rows.length >= 6) & (rows.pieces >= 4))
    one, other = (long[part] for part in np.triu_indices(len(long), 1))
    low, high = np.maximum(rows.left[one], rows.left[other]), np.minimum(rows.right[one], rows.right[other])
    shorter = np.minimum(rows.right[one] - rows.left[one], rows.right[other] - rows.left[other])
    pitch = np.abs(rows.at(one, (low + high) / 2) - rows.at(other, (low + high) / 2))
    taller = np.maximum(rows.height[one], rows.height[other])
    near = (
        (high - low >= 0.5 * shorter)
        & (pitch >= _PITCHES[0] * taller)
        & (pitch <= _PITCHES[1] * taller)
        & (np.minimum(rows.height[one], rows.height[other]) >= 0.6 * taller)
        & (np.abs(rows.slope[one] - rows.slope[other]) <= 0.06)
    )
    pairs = (np.ones(int(near.sum())), (one[near], other[near]))
    _, label = connected_components(csr_array(pairs, shape=(len(rows.left),) * 2), directed=False)
    blocks = [long[label[long] == each] for each in np.unique(label[long])]
    return [one for one in blocks if len(one) >= _LEAST_ROWS and rows.length[one].sum() >= _LEAST_LENGTH]


def _is_type(rows: _Rows, block: NDArray[np.int64], ink: NDArray[np.uint8]) -> bool:
    """Whether the statistics of the rows of a block, averaged over their pieces, are those of type."""
    weights = rows.pieces[block] / rows.pieces[block].sum()
    own = np.zeros(ink.shape, np.uint8)
    _paint(own, rows, block)
    purity = rows.ink[block].sum() / max(1, int(ink[own > 0].sum()))
    is_much = rows.length[block].sum() >= _MUCH and weights @ rows.black[block] >= _BLACK
    return bool(
        purity >= (_LEAST_PURITY if is_much else _LITTLE_PURITY)
        and weights @ rows.change[block] <= _MOST_CHANGE
        and weights @ rows.heights[block] <= _MOST_HEIGHTS
        and _FILLING[0] <= weights @ rows.filling[block] <= _FILLING[1]
    )


def _belonging(rows: _Rows, sure: NDArray[np.int64], ink: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Rows that are type given sure ones: short lines, headings, captions, of the same blackness and direction."""
    height, black, slope = (np.median(one[sure]) for one in (rows.height, rows.black, rows.slope))
    short = rows.length < 8
    likely = (
        (rows.height >= 0.5 * height)
        & (rows.height <= 3 * height)
        & (np.abs(np.log(rows.black / black)) <= 0.5)
        & ((np.abs(rows.slope - slope) <= 0.05) | (short & (np.abs(rows.slope - slope) <= 0.2)))
        & (rows.change <= 2 * _MOST_CHANGE)
        & (rows.heights <= 1.4 * _MOST_HEIGHTS)
        & (rows.filling >= _FILLING[0] - 0.05)
        & (rows.filling <= _FILLING[1] + 0.05)
    )
    likely[sure] = False
    return np.array([one for one in np.flatnonzero(likely) if _purity(rows, int(one), ink) >= _LEAST_PURITY], np.int64)


def _corners(rows: _Rows, one: int, reach: float) -> NDArray[np.int32]:
    ends = np.array([rows.left[one] - rows.height[one], rows.right[one] + rows.height[one]])
    y = rows.at(np.full(2, one), ends)
    half = reach * rows.height[one]
    down = [y[0] - half, y[1] - half, y[1] + half, y[0] + half]
    return np.asarray(np.rint(np.stack([ends[[0, 1, 1, 0]], down], 1)), np.int32)


def _purity(rows: _Rows, one: int, ink: NDArray[np.uint8]) -> float:
    """Part of the ink around a row that its pieces have."""
    corners = _corners(rows, one, 0.9)
    low = np.clip(corners.min(axis=0), 0, None)
    high = np.minimum(corners.max(axis=0) + 1, ink.shape[::-1])
    part = ink[low[1] : high[1], low[0] : high[0]]
    own = np.zeros(part.shape, np.uint8)
    cv2.fillConvexPoly(own, corners - low, 1)
    return float(rows.ink[one] / max(1, int(part[own > 0].sum())))


def _paint(mask: NDArray[np.uint8], rows: _Rows, chosen: NDArray[np.int64]) -> None:
    for one in chosen.tolist():
        cv2.fillConvexPoly(mask, _corners(rows, one, _REACH), 1)
