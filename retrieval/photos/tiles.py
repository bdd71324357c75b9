"""Tiles of photos: every part of a photo at every scale, from small JPEGs that are cut once and cached."""

import contextlib
import io
import re
import zipfile
from collections.abc import Container
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from index.arrays import save_bytes
from index.files.reading import IrregularFile, open_regular
from index.files.rights import make_folders
from retrieval.photos.decoding import read_colour
from retrieval.photos.listing import TILES
from retrieval.photos.options import ImageOptions
from retrieval.photos.thumbnails import encode_jpeg, refuse_other_content

SIDE = 512
"""Width and height of a tile, pixels; those at the right and the bottom may be smaller."""

LARGEST = 250_000_000
"""Pixels of a photo that is cut into tiles, unless photos with more may be read."""

KEPT_BYTES = 2 << 30
"""That the tiles in a cache may take: those of the photos that were cut first are removed."""

QUALITY = 85
_MOST_BYTES = 1 << 22  # of a tile
_NAME = re.compile(r"([0-9a-f]{64})\.zip")
_DAMAGED = (OSError, IrregularFile, zipfile.BadZipFile, KeyError, ValueError, EOFError, NotImplementedError)

Box = tuple[float, float, float, float]


def level_sizes(width: int, height: int) -> list[tuple[int, int]]:
    """Widths and heights of a photo at each level: full size at level 0, halved from one to the next, down to one tile.

    >>> level_sizes(1300, 700)
    [(1300, 700), (650, 350), (325, 175)]
    """
    sizes = [(width, height)]
    while max(sizes[-1]) > SIDE:
        width, height = sizes[-1]
        sizes.append((-(-width // 2), -(-height // 2)))
    return sizes


def tiles_file(sha256: str, cache: Path) -> Path:
    """Path of the tiles of a photo; raises ValueError if the hash is malformed, as it might lead out of the cache."""
    name = f"{sha256}.zip"
    if not _NAME.fullmatch(name):
        raise ValueError(f"{sha256!r} is no SHA-256")
    return Path(cache) / TILES / name


def kept_tile(sha256: str | None, cache: Path, level: int, column: int, row: int) -> bytes | None:
    """Return an undamaged cached tile, without a decoder; None without one, or without a hash."""
    if sha256:
        with contextlib.suppress(*_DAMAGED), open_regular(tiles_file(sha256, cache)) as file:
            return _read_tile(zipfile.ZipFile(file), level, column, row)
    return None


def tiles_are_whole(path: Path) -> bool:
    """Whether a file of tiles is undamaged."""
    with contextlib.suppress(*_DAMAGED), open_regular(path) as file, zipfile.ZipFile(file) as kept:
        return all(map(_is_stored, kept.infolist())) and kept.testzip() is None
    return False


def read_part(
    path: Path, sha256: str | None, cache: Path, level: int, box: Box, size: tuple[int, int], max_pixels: int
) -> NDArray[np.uint8]:
    """A part of an upright photo in some size, (height, width, 3) uint8, from `tiles/<sha256>.zip` of the cache.

    The photo is cut into tiles if that has not been done, or each time if the cache cannot be written. A file of other
    content is refused. The box (left, top, right, bottom) is in pixels of a level of `level_sizes`; no pixels of lower
    levels are shown. The size is at most that of the box.
    """
    if sha256:
        with contextlib.suppress(*_DAMAGED), open_regular(tiles_file(sha256, cache)) as file:
            return _assemble(zipfile.ZipFile(file), level, box, size)
    refuse_other_content(path, sha256)
    made = cut_tiles(read_colour(path, ImageOptions(max_side=0, max_pixels=max_pixels)))
    if sha256:
        # A full disk or a cache that may not be written is no reason not to show the photo.
        with contextlib.suppress(OSError):
            _, mode = make_folders(Path(cache), TILES)
            save_bytes(tiles_file(sha256, cache), made, mode=mode)
            _bound(Path(cache))
    return _assemble(zipfile.ZipFile(io.BytesIO(made)), level, box, size)


def cut_tiles(picture: NDArray[np.uint8]) -> bytes:
    """Cut a picture (H, W, 3) into tiles at all levels: a ZIP archive of ``<level>/<column>_<row>.jpg``."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for level, (width, height) in enumerate(level_sizes(picture.shape[1], picture.shape[0])):
            if level:
                picture = _halved(picture)
            for row in range(-(-height // SIDE)):
                for column in range(-(-width // SIDE)):
                    y, x = SIDE * row, SIDE * column
                    jpeg = io.BytesIO()
                    Image.fromarray(picture[y : y + SIDE, x : x + SIDE]).save(jpeg, "JPEG", quality=QUALITY)
                    archive.writestr(zipfile.ZipInfo(_name(level, column, row)), jpeg.getvalue())  # without the time
    return made.getvalue()


def encode_part(
    part: NDArray[np.uint8], quality: int, *, mirrored: bool, degrees: int, colours: str, format: str
) -> bytes:
    """Encode a part of a photo, (height, width, 3) uint8, mirrored, then rotated clockwise, as in IIIF."""
    turned = np.rot90(part[:, ::-1] if mirrored else part, -degrees // 90)
    picture = Image.fromarray(np.ascontiguousarray(turned))
    if colours != "color":
        picture = picture.convert("L")
    if colours == "bitonal":
        picture = picture.point(lambda value: 255 * (value > 127))
    if format == "jpeg":
        return encode_jpeg(np.asarray(picture), quality)
    file = io.BytesIO()
    picture.save(file, format, quality=quality)
    return file.getvalue()


def forget_tiles(cache: Path, known: Container[str | None]) -> int:
    """Delete the tiles of photos whose hashes are not in `known`; return the number of files."""
    removed = 0
    for path in (Path(cache) / TILES).glob("*.zip"):
        match = _NAME.fullmatch(path.name)
        if match and match[1] not in known and not path.parent.is_symlink():
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def _name(level: int, column: int, row: int) -> str:
    return f"{level}/{column}_{row}.jpg"


def _read_tile(archive: zipfile.ZipFile, level: int, column: int, row: int) -> bytes:
    """Read a tile; raises ValueError if it is compressed, as it might unpack without end: Cairn's tiles are not."""
    kept = archive.getinfo(_name(level, column, row))
    if not _is_stored(kept):
        raise ValueError("it is not what was written")
    return archive.read(kept)


def _is_stored(kept: zipfile.ZipInfo) -> bool:
    return kept.compress_type == zipfile.ZIP_STORED and kept.file_size <= _MOST_BYTES


def _halved(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A picture of half the width and height, rounded up, made a few rows at a time to save memory."""
    height, width = picture.shape[:2]
    halved = np.empty((-(-height // 2), -(-width // 2), 3), np.uint8)
    for top in range(0, height, 2 * SIDE):
        band = Image.fromarray(picture[top : top + 2 * SIDE]).reduce(2)
        halved[top // 2 : top // 2 + SIDE] = np.asarray(band)
    return halved


def _assemble(archive: zipfile.ZipFile, level: int, box: Box, size: tuple[int, int]) -> NDArray[np.uint8]:
    """Put a part of a photo together from the tiles of the highest level that has all the pixels that are wanted."""
    width, height = box[2] - box[0], box[3] - box[1]
    spare = min(width / size[0], height / size[1])
    factor = 1
    names = frozenset(archive.namelist())
    while 2 * factor <= spare and _name(level + 1, 0, 0) in names:
        level, factor = level + 1, 2 * factor
    left, top, right, bottom = (value / factor for value in box)
    columns = range(int(left) // SIDE, int(np.ceil(right / SIDE)))
    rows = range(int(top) // SIDE, int(np.ceil(bottom / SIDE)))
    sheet = Image.new("RGB", (SIDE * len(columns), SIDE * len(rows)))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            with Image.open(io.BytesIO(_read_tile(archive, level, column, row)), formats=("JPEG",)) as one:
                if max(one.size) > SIDE:
                    raise ValueError("it is not what was written")
                sheet.paste(one, (SIDE * j, SIDE * i))
    x, y = SIDE * columns[0], SIDE * rows[0]
    part = sheet.resize(size, Image.Resampling.LANCZOS, (left - x, top - y, right - x, bottom - y))
    return np.asarray(part, np.uint8)


def _bound(cache: Path) -> None:
    """Delete the oldest tiles if all together exceed their limit."""
    with contextlib.suppress(OSError):
        found = sorted(
            ((path.stat().st_mtime_ns, path.stat().st_size, path) for path in (cache / TILES).glob("*.zip")),
            reverse=True,
        )
        total = 0
        for _, size, path in found:
            total += size
            if total > KEPT_BYTES and path != found[0][2]:
                path.unlink(missing_ok=True)
