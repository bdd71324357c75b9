"""Whether two linked photos are one picture: they are registered, and their pixels compared everywhere.

Geometry alone cannot decide this: two photos taken from one place, a second apart, match nearly as well as a photo and
its copy. Copies agree in all fine details; photos taken one after the other do not.
"""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.parallel import run
from index.progress import Progress, silent
from retrieval.catalogue.schema import ImageRow
from retrieval.groups.links import Link
from retrieval.groups.looks import COPY, FRAMED, PART
from retrieval.photos.thumbnails import SIZES, thumbnail
from retrieval.search.outlines import area, clip_polygon

STEP = "compare"
"""What the progress of `register_photos` calls its one step."""

_TILES = 8  # rows and columns of tiles of the common part
_FEWEST_TILES = 6  # fewest tiles that show something
_EMPTY = 4.0  # grey levels: standard deviation of a tile that shows next to nothing
_NOISE = 0.7  # grey levels: standard deviation of compression noise
_WHOLE = 0.6  # least part of a tile that both photos show
_STEPS = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 40, 1e-4)
_BLUR = 5  # pixels, side of the filter while photos are registered: a start that is a little off is drawn to its place
_PLAIN = 8.0  # grey levels that a pixel of a rim may be off its colour
_RIM = 0.85  # least plain part of the surroundings of a picture that count as a rim
_PIXELS = 400  # fewest that both photos show


@dataclass(frozen=True)
class DuplicateOptions:
    """When two linked photos are near duplicates."""

    overlap: float = 0.9  # least part of a photo that the other shows: of each, or of the one that is a part
    stretch: float = 1.1  # largest ratio of the scales of the map between them, which is 1 for a similarity
    share: float = 0.1  # least part of the features of the photo with fewer that are inliers
    median: float = 0.995  # least correlation of half of the tiles
    most: float = 0.9  # least correlation of four fifths of them: letters may have been put over the others


class Registered(NamedTuple):
    """Relation of two photos of one picture."""

    kind: str  # COPY, PART or FRAMED
    derived: int | None  # number of the one that is a part, or has a rim


def shown_shares(link: Link, query: ImageRow, found: ImageRow, options: DuplicateOptions) -> tuple[float, float]:
    """Parts of two linked photos, by area, that the other shows; zero if the map between them is no similarity."""
    if link.inliers < options.share * min(query.features, found.features):
        return 0.0, 0.0
    affine = np.array(link.transform).reshape(2, 3)
    scales = np.linalg.svd(affine[:, :2], compute_uv=False)
    if not scales[1] > 0 or scales[0] > options.stretch * scales[1]:
        return 0.0, 0.0
    width, height = found.width or 1, found.height or 1
    outline = (_box(query) @ affine[:, :2].T + affine[:, 2]) * max(width, height) - 0.5
    shared = abs(area(clip_polygon(outline, width, height)))
    return shared / max(abs(area(outline)), 1e-12), shared / (width * height)


def register_photos(
    links: Iterable[Link],
    rows: Mapping[int, ImageRow],
    cache: Path,
    options: DuplicateOptions,
    *,
    workers: int = 1,
    progress: Progress = silent,
) -> dict[tuple[int, int], Registered]:
    """Find linked photos that are one picture, a part of one, or one with a rim, by their readable thumbnails."""
    wanted = []
    for link in links:
        shares = shown_shares(link, rows[link.query], rows[link.found], options)
        if max(shares) >= options.overlap:
            wanted.append((link, shares))
    places = {number: (rows[number].path, rows[number].sha256) for link, _ in wanted for number in link.pair}
    tasks = (
        partial(_compare, places[link.query], places[link.found], link.transform, shares, cache, options)
        for link, shares in wanted
    )
    related = {}
    for done, ((link, _), kind) in enumerate(zip(wanted, run(tasks, workers, batch=8), strict=True), start=1):
        if kind is not None:
            which = {0: link.query, 1: link.found, None: None}[kind[1]]
            related[link.pair] = Registered(kind[0], which)
        progress(STEP, done, len(wanted))
    return related


def _compare(
    one: tuple[str, str | None],
    other: tuple[str, str | None],
    transform: tuple[float, ...],
    shares: tuple[float, float],
    cache: Path,
    options: DuplicateOptions,
) -> tuple[str, int | None] | None:
    """Compare two photos; return a kind and which of the two is derived, or None if they are different pictures."""
    try:
        pictures = _read(*one, cache), _read(*other, cache)
    except CairnError:
        return None
    affine = np.array(transform).reshape(2, 3)
    registered = register(*pictures, affine)
    if registered is None or not _is_one(registered[0], options):
        return None
    around = registered[1]
    if min(shares) >= options.overlap:
        return COPY, None
    inner = int(np.argmax(shares))  # all of it is shown by the other
    return (FRAMED, 1 - inner) if around >= _RIM else (PART, inner)


def _is_one(tiles: NDArray[np.float64], options: DuplicateOptions) -> bool:
    return bool(np.median(tiles) >= options.median and np.quantile(tiles, 0.2) >= options.most)


def register(
    one: NDArray[np.float32], other: NDArray[np.float32], affine: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float] | None:
    """Register two pictures (grey, 0..255) with an approximate map, by enhanced correlation (Evangelidis and Psarakis,
    2008). `affine` (2, 3): from the one to the other, in units of their longer sides, the corner of the top-left pixel
    at (0, 0). Returns correlations (N,) within tiles of the common part that show something, and the plain part, by
    area, of the surroundings that only one shows: 1 for a rim of one colour.
    """
    units = max(one.shape), max(other.shape)
    pixels = np.empty((2, 3))
    pixels[:, :2] = affine[:, :2] * units[1] / units[0]
    pixels[:, 2] = affine[:, 2] * units[1] + pixels[:, :2] @ [0.5, 0.5] - 0.5
    scale = np.sqrt(abs(np.linalg.det(pixels[:, :2])))
    if not 0 < scale < np.inf:
        return None
    finer: NDArray[Any]
    finer, coarser = (one, other) if scale < 1 else (other, one)
    back = cv2.invertAffineTransform(pixels) if scale < 1 else pixels  # from the coarser to the finer
    if min(scale, 1 / scale) < 0.6:
        finer = cv2.GaussianBlur(finer, (0, 0), 0.45 / min(scale, 1 / scale))
    try:
        _, warp = cv2.findTransformECC(
            coarser, finer, back.astype(np.float32), cv2.MOTION_AFFINE, _STEPS, np.array([]), _BLUR
        )
    except cv2.error:  # it does not converge, as of pictures that have nothing in common
        return None
    size, flags = coarser.shape[::-1], cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    warped = cv2.warpAffine(finer, warp, size, flags=flags)
    shown = cv2.warpAffine(np.ones_like(finer, np.uint8), warp, size, flags=cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP)
    both = cv2.erode(shown, np.ones((3, 3), np.uint8), borderType=cv2.BORDER_CONSTANT, borderValue=0) > 0
    if np.count_nonzero(both) < _PIXELS:
        return None
    pictures = cv2.GaussianBlur(coarser, (0, 0), 1), cv2.GaussianBlur(warped, (0, 0), 1)
    # Undo changes of brightness or contrast; if they lost tones, apply them to the other picture instead.
    tries = [
        _correlations(picture, _toned(other, picture, both), both) for picture, other in (pictures, pictures[::-1])
    ]
    tiles = max(tries, key=lambda found: float(np.median(found)) if len(found) else -1.0)
    if len(tiles) < _FEWEST_TILES:
        return None
    within = cv2.warpAffine(np.ones_like(coarser, np.uint8), warp, finer.shape[::-1], flags=cv2.INTER_NEAREST) > 0
    outer, inside = min((coarser, both), (finer, within), key=lambda one: float(one[1].mean()))
    return tiles, _plain(outer, inside) if inside.mean() < 0.95 else 0.0


def _correlations(one: NDArray[Any], other: NDArray[Any], both: NDArray[np.bool_]) -> NDArray[np.float64]:
    rows, columns = np.nonzero(both)
    down = np.linspace(rows.min(), rows.max() + 1, _TILES + 1).astype(int)
    across = np.linspace(columns.min(), columns.max() + 1, _TILES + 1).astype(int)
    correlations = []
    for top, bottom in itertools.pairwise(down):
        for left, right in itertools.pairwise(across):
            mask = both[top:bottom, left:right]
            if not mask.size or mask.mean() < _WHOLE:
                continue
            first, second = (values[top:bottom, left:right][mask] for values in (one, other))
            first, second = first - first.mean(), second - second.mean()
            spread = first.std(), second.std()
            if max(spread) >= _EMPTY:
                shown = math.sqrt(max(spread[0] ** 2 - _NOISE**2, 0.0) * max(spread[1] ** 2 - _NOISE**2, 0.0))
                correlations.append(min(float((first * second).mean() / max(shown, _EMPTY)), 1.0))
    return np.array(correlations)


def _toned(picture: NDArray[Any], model: NDArray[Any], both: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Replace each grey value of a picture by the mean of its model at these pixels."""
    values = np.clip(np.rint(picture), 0, 255).astype(np.int64)
    count = np.bincount(values[both], minlength=256)
    total = np.bincount(values[both], model[both], minlength=256)
    known = np.flatnonzero(count)
    means = np.interp(np.arange(256), known, total[known] / count[known])
    low = np.clip(np.floor(picture), 0, 254).astype(np.int64)
    return np.asarray(means[low] + (picture - low) * (means[low + 1] - means[low]))


def _plain(picture: NDArray[Any], inside: NDArray[np.bool_]) -> float:
    """Part of the surroundings of a picture within another that has one colour, without the pixels next to it."""
    outside = cv2.dilate(inside.astype(np.uint8), np.ones((9, 9), np.uint8)) == 0
    if not outside.any():
        return 0.0
    around = picture[outside]
    return float((np.abs(around - np.median(around)) < _PLAIN).mean())


@lru_cache(maxsize=32)  # photos of one view are compared with each other
def _read(path: str, sha256: str | None, cache: Path) -> NDArray[np.float32]:
    jpeg = thumbnail(Path(path), sha256, SIZES[-1], cache)
    grey: NDArray[Any] | None = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_GRAYSCALE)
    if grey is None:
        raise CairnError("The thumbnail of {path} cannot be read.", path=path)
    return grey.astype(np.float32)


def _box(row: ImageRow) -> NDArray[np.float64]:
    """Corners (4, 2) of a photo in units of its longer side."""
    width, height = float(row.width or 1), float(row.height or 1)
    return np.array([[0, 0], [width, 0], [width, height], [0, height]]) / max(width, height)
