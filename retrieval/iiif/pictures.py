"""Requests to the Image API for a picture of the needed size; invalid values from the host are left out."""

import io
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from index.errors import CairnError

MOST_TILES, MOST_PIXELS = 1_000, 50_000_000
"""Most tiles of a picture, and its most pixels."""

_LARGEST_SIDE = 1_000_000  # pixels
_LARGEST_TILE = 4_096
_QUALITY = 95


class NotIiifError(CairnError):
    """Fetched content is not valid IIIF."""


class Tile(NamedTuple):
    """A tile of a picture."""

    target: str  # the part of its address after that of the picture
    x: int  # in the assembled picture
    y: int
    width: int
    height: int


@dataclass(frozen=True)
class TiledPicture:
    """A picture assembled from tiles."""

    width: int
    height: int
    tiles: tuple[Tile, ...]

    def join(self, fetch: Callable[[str], bytes]) -> bytes:
        """Fetch and assemble all tiles, as a JPEG in sRGB; raises NotIiifError if one is not a picture of its size."""
        import numpy as np
        from PIL import Image

        from retrieval.photos.decoding import decode_content
        from retrieval.photos.options import ImageOptions

        whole = np.zeros((self.height, self.width, 3), np.uint8)
        for tile in self.tiles:
            content = fetch(tile.target)
            try:
                limits = ImageOptions(max_side=0, max_pixels=(tile.width + 1) * (tile.height + 1))
                part = decode_content(content, limits)
            except CairnError as error:
                raise NotIiifError("a tile cannot be used: {error}", error=error) from None
            if part.remarks.missing or part.remarks.rough:
                raise NotIiifError("a tile cannot be used: the file is truncated")
            if max(abs(part.width - tile.width), abs(part.height - tile.height)) > 1:  # as servers round
                raise NotIiifError("a tile has another size than its info.json says")
            pixels = part.pixels
            if (part.width, part.height) != (tile.width, tile.height):
                pixels = np.asarray(Image.fromarray(pixels).resize((tile.width, tile.height)))
            whole[tile.y : tile.y + tile.height, tile.x : tile.x + tile.width] = pixels
        file = io.BytesIO()
        Image.fromarray(whole).save(file, "JPEG", quality=_QUALITY, subsampling=0)
        return file.getvalue()


def picture_requests(info: Any, wanted: Callable[[int, int], int], version: int = 0) -> list[str | TiledPicture]:
    """Choose requests for a picture, the best first: the part after its address (region, size, rotation, quality and
    format), or that of each tile. `wanted` maps its width and height, in pixels, to the needed longer side. Of the
    prepared sizes of a server the smallest is chosen that is large enough and at most twice as large as needed; else
    the exact size, within the server's limits. If that is too small, or more than twice as large, tiles are better.
    Raises NotIiifError if `info.json` is not valid.
    """
    if not isinstance(info, dict):
        raise NotIiifError("its info.json is no information of a picture")
    width, height = side_of(info.get("width")), side_of(info.get("height"))
    if not width or not height:
        raise NotIiifError("its info.json says no width and height")
    version = image_version(info) or version or 2
    longer = max(width, height)
    needed = min(longer, wanted(width, height))
    target, given = _whole(info, width, height, needed, version)
    tiled = _tiled(info, width, height, needed, version)
    if tiled is None:
        return [target]
    is_small = given < min(needed, max(tiled.width, tiled.height)) - 1
    return [tiled, target] if is_small or given > 2 * needed else [target, tiled]


def _whole(info: Mapping[str, Any], width: int, height: int, needed: int, version: int) -> tuple[str, float]:
    """The requested size of a whole picture, as the part after its address, and its longer side."""
    name = "native.jpg" if version == 1 else "default.jpg"
    longer = max(width, height)
    largest = min(_limits(info, width, height))
    scale = min(largest, needed / longer)
    sizes = sorted(
        (w, h)
        for one in as_list(info.get("sizes"))[:1000]
        if isinstance(one, dict) and (w := side_of(one.get("width"))) and (h := side_of(one.get("height")))
    )
    sizes = [one for one in sizes if max(one) <= largest * longer + 1]
    scales = _scales(info, version)
    enough = next((one for one in sizes if max(one) >= math.floor(scale * longer)), None)
    if enough is None or (scales and max(enough) > 2 * scale * longer):
        enough = sizes[-1] if sizes and scale < 1 and not scales else None
    if enough is not None:
        size, given = f"{enough[0]},{enough[1]}" if version == 3 else f"{enough[0]},", float(max(enough))
    elif scale >= 1 or not scales:
        size, given = "max" if version == 3 else "full", largest * longer
    else:
        size, given = f"{max(1, math.floor(width * scale + 1e-6))},", scale * longer
    return f"full/{size}/0/{name}", given


def _limits(info: Mapping[str, Any], width: int, height: int) -> Iterator[float]:
    """Largest scales within the limits of a server."""
    yield 1.0
    for one in (info, *(one for one in as_list(info.get("profile")) if isinstance(one, dict))):
        if most := side_of(one.get("maxWidth")):
            yield most / width
            yield (side_of(one.get("maxHeight")) or most) / height
        elif high := side_of(one.get("maxHeight")):
            yield high / height
        area = one.get("maxArea")
        if isinstance(area, int) and 0 < area < _LARGEST_SIDE**2:
            yield math.sqrt(area / (width * height))


def _tiled(info: Mapping[str, Any], width: int, height: int, needed: int, version: int) -> TiledPicture | None:
    """The tiles of the smallest scale that is large enough, else of the largest; None without tiles."""
    kinds = [(one.get("width"), one.get("height"), one.get("scaleFactors")) for one in _dicts(info.get("tiles"))]
    kinds.append((info.get("tile_width"), info.get("tile_height"), info.get("scale_factors")))  # version 1
    known = [
        (factor, w, side_of(high) or w)
        for wide, high, factors in kinds
        if (w := min(side_of(wide), _LARGEST_TILE + 1)) <= _LARGEST_TILE and w
        for factor in as_list(factors)[:100]
        if isinstance(factor, int) and 0 < factor <= _LARGEST_SIDE
    ]
    longer = max(width, height)

    def order(one: tuple[int, int, int]) -> tuple[bool, int]:
        is_enough = -(-longer // one[0]) >= needed
        return not is_enough, -one[0] if is_enough else one[0]

    for factor, w, h in sorted(known, key=order):
        across, down = -(-width // factor), -(-height // factor)
        if h <= _LARGEST_TILE and across * down <= MOST_PIXELS and -(-across // w) * -(-down // h) <= MOST_TILES:
            return TiledPicture(across, down, tuple(_tiles(width, height, factor, (w, h), version)))
    return None


def _tiles(width: int, height: int, factor: int, size: tuple[int, int], version: int) -> Iterator[Tile]:
    """Tiles of a picture, in the one form that servers of prepared tiles have (Image API 3.0, section 4.7)."""
    name = "native.jpg" if version == 1 else "default.jpg"
    across, down = size[0] * factor, size[1] * factor
    for y in range(0, height, down):
        for x in range(0, width, across):
            w, h = min(across, width - x), min(down, height - y)
            region = "full" if (w, h) == (width, height) else f"{x},{y},{w},{h}"
            tile = Tile("", x // factor, y // factor, -(-w // factor), -(-h // factor))
            whole = "max" if version == 3 else "full"
            wanted = f"{tile.width},{tile.height}" if version == 3 else f"{tile.width},"
            wanted = whole if region == "full" and factor == 1 else wanted
            yield tile._replace(target=f"{region}/{wanted}/0/{name}")


def _scales(info: Mapping[str, Any], version: int) -> bool:
    """Whether a server gives pictures of any width."""
    texts = [one for one in as_list(info.get("profile")) if isinstance(one, str)]
    features: list[Any] = [*as_list(info.get("extraFeatures")), *as_list(info.get("supports"))]
    for one in _dicts(info.get("profile")):
        features += as_list(one.get("supports"))
    is_fixed = any("level0" in one for one in texts) or (version == 3 and not texts)
    return not is_fixed or "sizeByW" in features


def image_version(found: Mapping[str, Any]) -> int:
    """Version of the Image API of an `info.json`; 0 if unclear."""
    types = " ".join(str(found.get(key))[:500] for key in ("type", "@type", "@context", "profile"))
    known = re.search(r"(?:image/|ImageService|image-api/)([123])\b", types)
    if known:
        return int(known[1])
    return 1 if "library.stanford.edu" in types else 3 if found.get("profile") in ("level0", "level1", "level2") else 0


def as_list(found: Any) -> list[Any]:
    """Values as a list, in any notation."""
    return found if isinstance(found, list) else [] if found is None else [found]


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in as_list(value)[:100] if isinstance(one, dict)]


def side_of(found: Any) -> int:
    """A number of pixels; 0 if it is not valid."""
    return int(found) if isinstance(found, int | float) and 0 < found <= _LARGEST_SIDE else 0
