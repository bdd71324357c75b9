"""The look of a photo: a small picture, to recognise copies that were rotated, mirrored or converted.

Features of a photo are described upright, so a copy rotated by 90 degrees shares no words with its original. As
pictures of 32 by 32 pixels the two differ only by the rotation, and all eight rotations and reflections can be tried.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

COPY, PART, FRAMED, NEGATIVE, TURNED, GREY = KINDS = ("copy", "part", "framed", "negative", "turned", "grey")
"""What a near duplicate is of its original: all of it; a part of it; all of it with a rim or bars around it; all of it,
dark where the original is light; all of it, turned by quarter turns or mirrored; all of it, without its colours."""

SIDE = 32
"""Rows and columns of a look."""

SYMMETRIES = tuple((turn, mirrored) for mirrored in (False, True) for turn in range(4))
"""Quarter turns clockwise, of a picture or of its mirror image."""

_COARSE = 8  # rows and columns of the coarse look for finding candidates
_BLUR = 0.05  # of a look's side: coarser structures are removed, as photos of one kind share them
_TILES = 4  # rows and columns of tiles of a fine look
_EMPTY = 0.05  # norm of a nearly blank tile, of a look of norm 1
_FEWEST_TILES = 4  # fewest tiles that show something
_STRAY_TILES = 1  # tiles that may differ: compression removes most detail of a tile of sky
_CHROMA = 6  # largest distance, in grey levels, of the chroma of a look from grey if the photo has no colours
_FLAT = 2.0  # grey levels: standard deviation below which a picture shows nothing
_CANDIDATES = 32  # most alike photos, for each turn, that are compared in detail
_EXACT = 20_000  # photos; beyond, candidates are found by an inverted file


@dataclass(frozen=True)
class LookOptions:
    """When two photos count as one picture by their looks."""

    coarse: float = 0.9  # least correlation of the coarse pictures: candidates
    fine: float = 0.9  # least correlation of the fine ones
    tile: float = (
        0.93  # least correlation of each tile of fine looks that shows something: rims and rules alone are similar
    )
    aspect: float = 1.04  # largest ratio of the ratios of their sides


@dataclass(frozen=True)
class PhotoLook:
    """A photo's look."""

    fine: NDArray[np.float16]  # (SIDE, SIDE) float16, its finer details, mean 0, norm 1
    coarse: NDArray[np.float32]  # (8, 8) float32, all of it, mean 0, norm 1
    aspect: float  # width over height
    is_grey: bool = True  # it has no colours


@dataclass(frozen=True)
class Copy:
    """Two photos that are one picture."""

    one: int
    other: int
    turn: int  # of the other: 0 to 3 quarter turns clockwise make it the one
    mirrored: bool  # left and right of the other are exchanged before it is turned
    negative: bool = False  # whether one is the negative of the other

    @property
    def pair(self) -> tuple[int, int]:
        """The two photos' numbers, ascending."""
        return min(self.one, self.other), max(self.one, self.other)

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return NEGATIVE if self.negative else TURNED if self.turn or self.mirrored else COPY


def look(picture: NDArray[np.uint8], aspect: float | None = None) -> PhotoLook | None:
    """Compute a photo's look from an upright picture of about 64 pixels or more, RGB if it has colours; None if it is
    nearly blank. `aspect`: width over height of the photo, if the picture is a rounded reduction of it.
    """
    grey = picture if picture.ndim == 2 else cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    small = cv2.resize(grey, (SIDE, SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    is_grey = picture.ndim == 2
    if not is_grey:
        tiny = cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        chroma = cv2.cvtColor(tiny, cv2.COLOR_RGB2YCrCb)[..., 1:].astype(np.int16) - 128
        is_grey = bool(np.abs(chroma).max() <= _CHROMA)
    detail = small - cv2.GaussianBlur(small, (0, 0), _BLUR * SIDE)
    coarse = cv2.resize(small, (_COARSE, _COARSE), interpolation=cv2.INTER_AREA)
    if min(float(detail.std()), float(coarse.std())) < _FLAT:
        return None
    return PhotoLook(
        _normalised(detail).astype(np.float16),
        _normalised(coarse),
        aspect or picture.shape[1] / picture.shape[0],
        is_grey,
    )


def find_copies(looks: Mapping[int, PhotoLook], options: LookOptions | None = None) -> list[Copy]:
    """Find the photos that are one picture, whatever their size, turn and colours: each pair once, the smaller number
    first, with the turn at which they are most alike.
    """
    options = options or LookOptions()
    numbers = sorted(looks)
    if len(numbers) < 2:
        return []
    search = _nearest(np.stack([looks[number].coarse.ravel() for number in numbers]))
    best: dict[tuple[int, int], tuple[float, Copy]] = {}
    negatives = ((0, mirrored, -1) for mirrored in (False, True))
    for turn, mirrored, sign in (*((*one, 1) for one in SYMMETRIES), *negatives):
        queries = np.stack([sign * _turned(looks[number].coarse, turn, mirrored).ravel() for number in numbers])
        closeness, places = search(queries)
        rows, columns = np.nonzero((closeness >= options.coarse) & (places >= 0))
        for row, place in zip(rows.tolist(), places[rows, columns].tolist(), strict=True):
            one, other = numbers[place], numbers[row]
            if one >= other or not _same_shape(looks[one], looks[other], turn, options.aspect):
                continue
            first = looks[one].fine.astype(np.float32)
            second = sign * _turned(looks[other].fine, turn, mirrored).astype(np.float32)
            alike = float((first * second).sum())
            if alike < max(options.fine, best.get((one, other), (0.0, None))[0]):
                continue
            if _alike_everywhere(first, second, options.tile):
                best[one, other] = alike, Copy(one, other, turn, mirrored, sign < 0)
    return [copy for _, (_, copy) in sorted(best.items())]


def _same_shape(one: PhotoLook, other: PhotoLook, turn: int, most: float) -> bool:
    aspect = 1 / other.aspect if turn % 2 else other.aspect
    return max(one.aspect / aspect, aspect / one.aspect) <= most


def _alike_everywhere(one: NDArray[np.floating], other: NDArray[np.floating], least: float) -> bool:
    """Whether two fine looks agree in every tile that shows something, except one.

    Scans of different photos on one kind of mount, or different pages of one form, agree in rims and rules, which
    dominate a small picture; only copies also agree inside.
    """
    side = SIDE // _TILES
    tiles = [
        look.reshape(_TILES, side, _TILES, side).swapaxes(1, 2).reshape(_TILES * _TILES, side * side)
        for look in (one, other)
    ]
    first, second = (tile - tile.mean(axis=1, keepdims=True) for tile in tiles)
    norms = [np.linalg.norm(tile, axis=1) for tile in (first, second)]
    seen = np.maximum(*norms) > _EMPTY
    if np.count_nonzero(seen) < _FEWEST_TILES:
        return False
    agreement = (first * second).sum(axis=1)[seen] / np.maximum(norms[0] * norms[1], _EMPTY**2)[seen]
    return bool(np.sort(agreement)[_STRAY_TILES] >= least)


def _turned(picture: NDArray[np.floating], turn: int, mirrored: bool) -> NDArray[np.floating]:
    """A picture, or its mirror image, turned clockwise by a number of quarter turns."""
    return np.ascontiguousarray(np.rot90(picture[:, ::-1] if mirrored else picture, -turn))


def _normalised(picture: NDArray[np.number]) -> NDArray[np.float32]:
    picture = picture - picture.mean()
    return np.asarray(picture / max(float(np.linalg.norm(picture)), 1e-6), np.float32)


def _nearest(
    rows: NDArray[np.float32],
) -> Callable[[NDArray[np.float32]], tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """A search for the rows of largest inner product with each of some queries."""
    import faiss

    index: Any
    dim = rows.shape[1]
    if len(rows) <= _EXACT:
        index = faiss.IndexFlatIP(dim)
    else:
        cells = int(np.sqrt(len(rows)))
        index = faiss.index_factory(dim, f"IVF{cells},Flat", faiss.METRIC_INNER_PRODUCT)
        index.train(rows)
        index.nprobe = max(8, cells // 16)
    index.add(rows)
    most = min(_CANDIDATES, len(rows))
    return lambda queries: index.search(queries, most)
