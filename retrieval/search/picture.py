"""A picture of a query and its best matches: the box, the inlier ellipses and the lines between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from retrieval.catalogue.schema import ImageRow
from retrieval.features.encoding import decode_geometry
from retrieval.photos.decoding import read_colour
from retrieval.photos.options import ImageOptions
from retrieval.search.homography import homography
from retrieval.search.outlines import found_region
from retrieval.search.photos import SearchedPhotos
from retrieval.search.query import Query
from retrieval.search.ranking import Hit


@dataclass(frozen=True)
class PictureOptions:
    """Layout of a picture; sizes in pixels."""

    tile: int = 380  # longer side of a photo in it
    columns: int = 2  # pairs of photos side by side
    pairs: int = 6  # pairs at most
    lines: int = 60  # inlier matches that are drawn in a pair, at most
    gap: int = 14  # between photos
    caption: int = 26  # height of a caption


_BACKGROUND = (248, 248, 246)
_INK = (50, 50, 50)
_BOX = (225, 50, 50)
_SHIFT = 4  # fractional bits of drawn coordinates


def check_picture(path: Path) -> None:
    """Raise CairnError if a picture cannot be written under that name."""
    if path.suffix.lower() not in (".jpg", ".jpeg", ".png"):
        raise CairnError(f"A picture is written as .jpg or .png, not {path.name!r}.")
    if not path.absolute().parent.is_dir():
        raise CairnError(f"The folder {path.absolute().parent} for the picture does not exist.")


def draw_matches(
    path: Path,
    index: SearchedPhotos,
    found: Sequence[tuple[Query, Hit, ImageRow]],
    query: Query,
    options: PictureOptions | None = None,
) -> None:
    """Write a picture of the best matches, each next to the query. `found`: the answer, the best first, each with the
    query whose features it matches. Only verified photos are shown with matches. `query`: shown alone if nothing was
    found.
    """
    options = options or PictureOptions()
    pairs = [
        _pair(_Tile.of_query(matched, options.tile), index, matched, hit, row, place + 1, options)
        for place, (matched, hit, row) in enumerate(found[: options.pairs])
    ]
    if not pairs:
        pairs = [_caption(_Tile.of_query(query, options.tile).pixels, "no match", options)]
    rows = [pairs[start : start + options.columns] for start in range(0, len(pairs), options.columns)]
    height = max(pair.shape[0] for pair in pairs)
    width = max(pair.shape[1] for pair in pairs)
    columns = max(len(row) for row in rows)
    gap = 2 * options.gap
    canvas = np.full((len(rows) * (height + gap) + gap, columns * (width + gap) + gap, 3), _BACKGROUND, np.uint8)
    for down, row in enumerate(rows):
        for across, pair in enumerate(row):
            y, x = gap + down * (height + gap), gap + across * (width + gap)
            canvas[y : y + pair.shape[0], x : x + pair.shape[1]] = pair
    suffix = path.suffix.lower()
    quality = [] if suffix == ".png" else [cv2.IMWRITE_JPEG_QUALITY, 90]  # PNG would warn on standard error
    done, data = cv2.imencode(suffix, cv2.cvtColor(canvas, cv2.COLOR_RGB2BGR), quality)
    try:
        path.write_bytes(data.tobytes() if done else b"")
    except OSError as error:
        raise CairnError(
            "The picture {path} cannot be written ({reason}).", path=path, reason=error.strerror
        ) from error


@dataclass(frozen=True)
class _Tile:
    """A photo as it stands in the picture."""

    pixels: NDArray[np.uint8]  # (H, W, 3) uint8
    scale: tuple[float, float]  # pixels of the tile to one pixel of the upright original

    @staticmethod
    def read(path: Path, width: int, height: int, side: int) -> "_Tile":
        try:
            pixels = np.array(read_colour(path, ImageOptions(max_side=side)))  # a copy, to be drawn on
        except CairnError:
            # The file may be missing by now; its place stays visible.
            factor = side / max(width, height, 1)
            pixels = np.full((max(1, int(height * factor)), max(1, int(width * factor)), 3), 220, np.uint8)
        return _Tile(pixels, (pixels.shape[1] / max(width, 1), pixels.shape[0] / max(height, 1)))

    @staticmethod
    def of_query(query: Query, side: int) -> "_Tile":
        """Read a query's photo, and draw its box."""
        tile = _Tile.read(query.path, query.width, query.height, side)
        if query.box is not None:
            corners = tile.place(np.array(query.box, np.float64).reshape(2, 2))
            (x0, y0), (x1, y1) = np.rint(corners).astype(int).tolist()
            cv2.rectangle(tile.pixels, (x0, y0), (x1, y1), _BOX, 2, cv2.LINE_AA)
        return tile

    def place(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take points of the original to the tile."""
        return (points + 0.5) * self.scale - 0.5


def _pair(
    left: _Tile, index: SearchedPhotos, query: Query, hit: Hit, row: ImageRow, place: int, options: PictureOptions
) -> NDArray[np.uint8]:
    right = _Tile.read(Path(row.path), row.width or 1, row.height or 1, options.tile)
    height = max(left.pixels.shape[0], right.pixels.shape[0])
    split = left.pixels.shape[1] + options.gap
    canvas = np.full((height, split + right.pixels.shape[1], 3), _BACKGROUND, np.uint8)
    canvas[: left.pixels.shape[0], : left.pixels.shape[1]] = left.pixels
    canvas[: right.pixels.shape[0], split:] = right.pixels
    if hit.verification.inliers:
        _draw_inliers(canvas, (left, right), split, index, query, hit, row, options)
        count = f"{hit.verification.inliers} inliers"
    else:
        count = "not verified"
    return _caption(canvas, f"{place}   {row.name}   {count}", options)


def _draw_inliers(
    canvas: NDArray[np.uint8],
    tiles: tuple[_Tile, _Tile],
    split: int,
    index: SearchedPhotos,
    query: Query,
    hit: Hit,
    row: ImageRow,
    options: PictureOptions,
) -> None:
    left, right = tiles
    matches = hit.verification.matches
    matches = matches[np.linspace(0, len(matches) - 1, min(len(matches), options.lines)).astype(int)]
    side = max(row.width or 1, row.height or 1)
    frames = decode_geometry(index.images.features(hit.number).columns, matches[:, 1])
    there = frames.ellipses(side)
    here = query.ellipses(hit.view, matches[:, 0])
    hues = np.linspace(0, 150, len(matches)).astype(np.uint8)
    hsv = np.stack([hues, np.full_like(hues, 190), np.full_like(hues, 235)], -1)[None]
    colours = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)[0].tolist() if len(matches) else []
    for first, second, colour in zip(here, there, colours, strict=True):
        start = _draw_ellipse(canvas, left, 0, first, colour)
        end = _draw_ellipse(canvas, right, split, second, colour)
        cv2.line(canvas, start, end, colour, 1, cv2.LINE_AA, _SHIFT)
    if query.box is not None:
        matrix = homography(hit, query, row, index.images.features(hit.number))
        region = found_region(query, matrix, row.width, row.height)
        if region is not None:
            _draw_region(canvas, right, split, region)


def _draw_ellipse(
    canvas: NDArray[np.uint8], tile: _Tile, offset: int, ellipse: NDArray[np.float32], colour: Sequence[int]
) -> tuple[int, int]:
    """Draw an ellipse, at least three pixels across, and give its centre in fractional drawing units."""
    a, b, c = ellipse[2:].astype(np.float64)
    across, down = tile.scale
    covariance = np.linalg.inv([[a / across**2, b / (across * down)], [b / (across * down), c / down**2]])
    sizes, axes = np.linalg.eigh(covariance)
    half = np.maximum(np.sqrt(np.maximum(sizes, 0)) * 2, 3)
    x, y = tile.place(ellipse[None, :2].astype(np.float64))[0]
    unit = 1 << _SHIFT
    centre = (round((x + offset) * unit), round(y * unit))
    angle = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))
    radii = (round(half[1] * unit), round(half[0] * unit))
    cv2.ellipse(canvas, centre, radii, angle, 0, 360, tuple(colour), 1, cv2.LINE_AA, _SHIFT)
    return centre


def _draw_region(canvas: NDArray[np.uint8], tile: _Tile, offset: int, region: Sequence[Sequence[float]]) -> None:
    """Draw where the query's box lies in the photo."""
    points = tile.place(np.array(region))
    part = canvas[: tile.pixels.shape[0], offset:]
    drawn = np.ascontiguousarray(part)
    cv2.polylines(drawn, [np.rint(points * (1 << _SHIFT)).astype(np.int32)], True, _BOX, 2, cv2.LINE_AA, _SHIFT)
    part[:] = drawn


def _caption(pixels: NDArray[np.uint8], text: str, options: PictureOptions) -> NDArray[np.uint8]:
    strip = np.full((options.caption, pixels.shape[1], 3), _BACKGROUND, np.uint8)
    # The font knows ASCII alone.
    plain = text.encode("ascii", "replace").decode()
    cv2.putText(strip, plain, (0, options.caption - 9), cv2.FONT_HERSHEY_SIMPLEX, 0.5, _INK, 1, cv2.LINE_AA)
    return np.concatenate([strip, pixels])
