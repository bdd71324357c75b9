"""Tiles: a photo at every scale and in every part, cut once, made again where what was kept is damaged."""

import hashlib
import io
import itertools
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data

from index.errors import CairnError
from retrieval.photos import tiles
from retrieval.photos.decoding import read_colour
from retrieval.photos.options import ImageOptions
from retrieval.photos.tiles import (
    LARGEST,
    SIDE,
    cut_tiles,
    forget_tiles,
    kept_tile,
    level_sizes,
    read_part,
    tiles_are_whole,
    tiles_file,
)

WIDTH, HEIGHT = 1301, 703


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A photo whose sides are odd at each level."""
    path = tmp_path / "photo.jpg"
    Image.fromarray(data.coffee()).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC).save(path, quality=95)
    return path


def content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def part(photo: Path, cache: Path, box: tiles.Box, size: tuple[int, int], level: int = 0) -> np.ndarray:
    return read_part(photo, content(photo), cache, level, box, size, LARGEST).astype(float)


def test_levels_end_in_one_tile() -> None:
    assert level_sizes(WIDTH, HEIGHT) == [(1301, 703), (651, 352), (326, 176)]
    assert level_sizes(SIDE, 3) == [(SIDE, 3)]
    for width, height in itertools.product((1, 511, 512, 513, 20_001), repeat=2):
        sizes = level_sizes(width, height)
        assert max(sizes[-1]) <= SIDE
        assert all(one == (-(-width // 2**k), -(-height // 2**k)) for k, one in enumerate(sizes))


@pytest.mark.parametrize(
    ("box", "size"),
    [
        ((0, 0, 512, 512), (512, 512)),
        ((1024, 512, WIDTH, HEIGHT), (277, 191)),
        ((300, 200, 1100, 700), (800, 500)),
        ((300.5, 200.25, 1100.5, 700.75), (250, 150)),
        ((0, 0, WIDTH, HEIGHT), (326, 176)),
        ((0, 0, WIDTH, HEIGHT), (65, 35)),
        ((700, 0, 701, HEIGHT), (1, 700)),
    ],
)
def test_a_part_shows_what_the_photo_shows_there(
    photo: Path, tmp_path: Path, box: tiles.Box, size: tuple[int, int]
) -> None:
    whole = Image.fromarray(read_colour(photo, ImageOptions(max_side=0)))
    expected = np.asarray(whole.resize(size, Image.Resampling.LANCZOS, box), float)
    found = part(photo, tmp_path / "cache", box, size)
    assert found.shape == expected.shape
    assert abs(found - expected).mean() < 4


def test_all_tiles_of_all_levels_join_without_a_seam(photo: Path) -> None:
    picture = read_colour(photo, ImageOptions(max_side=0))
    with zipfile.ZipFile(io.BytesIO(cut_tiles(picture))) as archive:
        for level, (width, height) in enumerate(level_sizes(WIDTH, HEIGHT)):
            sheet = Image.new("RGB", (width, height))
            for name in (one for one in archive.namelist() if one.startswith(f"{level}/")):
                column, row = map(int, name.removesuffix(".jpg").partition("/")[2].split("_"))
                tile = Image.open(io.BytesIO(archive.read(name)))
                right, bottom = SIDE * column + tile.width, SIDE * row + tile.height
                assert (tile.width == SIDE or right == width) and (tile.height == SIDE or bottom == height)
                sheet.paste(tile, (SIDE * column, SIDE * row))
            step = 2**level
            edges = [(0, step * height - HEIGHT), (0, step * width - WIDTH), (0, 0)]
            blocks = np.pad(picture.astype(float), edges, "edge").reshape(height, step, width, step, 3)
            assert abs(np.asarray(sheet, float) - blocks.mean((1, 3))).mean() < 5  # of JPEGs of half as many colours


def test_nothing_is_decoded_twice(photo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, known = tmp_path / "cache", content(photo)
    first = part(photo, cache, (0, 0, 512, 512), (512, 512))
    monkeypatch.setattr(tiles, "read_colour", None)
    assert (part(photo, cache, (0, 0, 512, 512), (512, 512)) == first).all()
    kept = kept_tile(known, cache, 0, 0, 0)
    assert kept is not None and (np.asarray(Image.open(io.BytesIO(kept)), float) == first).all()
    assert kept_tile(known, cache, 0, 9, 9) is None and kept_tile(None, cache, 0, 0, 0) is None
    assert tiles_are_whole(tiles_file(known, cache))


@pytest.mark.parametrize("damage", ["cut", "changed", "packed", "text", "folder"])
def test_what_is_damaged_is_made_again(photo: Path, tmp_path: Path, damage: str) -> None:
    cache, known = tmp_path / "cache", content(photo)
    first = part(photo, cache, (0, 0, 512, 512), (512, 512))
    kept = tiles_file(known, cache)
    whole = kept.read_bytes()
    kept.unlink()
    if damage == "folder":
        kept.mkdir()
    else:
        changed = whole[:5000] + bytes(64) + whole[5064:]
        packed = io.BytesIO()  # what would take far more memory than the file has bytes
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("0/0_0.jpg", bytes(50_000_000))
        damaged = {
            "cut": whole[: len(whole) // 2],
            "changed": changed,
            "packed": packed.getvalue(),
            "text": b"no tiles",
        }
        kept.write_bytes(damaged[damage])
    assert not tiles_are_whole(kept) and kept_tile(known, cache, 0, 0, 0) is None
    assert (part(photo, cache, (0, 0, 512, 512), (512, 512)) == first).all()
    assert damage == "folder" or kept.read_bytes() == whole


def test_another_file_in_its_place_is_not_shown(photo: Path, tmp_path: Path) -> None:
    known = content(photo)
    Image.fromarray(data.astronaut()).save(photo)
    with pytest.raises(CairnError, match="its file has changed since it was indexed"):
        read_part(photo, known, tmp_path / "cache", 0, (0, 0, 9, 9), (9, 9), LARGEST)
    with pytest.raises(CairnError, match="its file has changed since it was indexed"):
        read_part(photo, None, tmp_path / "cache", 0, (0, 0, 9, 9), (9, 9), LARGEST)
    assert not (tmp_path / "cache").exists()


def test_a_photo_is_refused_that_is_too_large(photo: Path, tmp_path: Path) -> None:
    with pytest.raises(CairnError, match="more than the limit"):
        read_part(photo, content(photo), tmp_path / "cache", 0, (0, 0, 9, 9), (9, 9), 1000)


def test_a_cache_that_cannot_be_written_is_done_without(photo: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    assert part(photo, tmp_path / "cache", (0, 0, 512, 512), (512, 512)).shape == (512, 512, 3)


def test_kept_tiles_are_bounded_and_forgotten(photo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, first = tmp_path / "cache", content(photo)
    part(photo, cache, (0, 0, 9, 9), (9, 9))
    kept = tiles_file(first, cache)
    os.utime(kept, (0, 0))
    other = tmp_path / "other.jpg"
    Image.fromarray(data.astronaut()).save(other)
    monkeypatch.setattr(tiles, "KEPT_BYTES", kept.stat().st_size)
    part(other, cache, (0, 0, 9, 9), (9, 9))
    assert [path.name for path in (cache / "tiles").iterdir()] == [f"{content(other)}.zip"]
    (cache / "tiles" / "notes.zip").write_text("of somebody")
    assert forget_tiles(cache, {content(other)}) == 0
    assert forget_tiles(cache, {first}) == 1
    assert [path.name for path in (cache / "tiles").iterdir()] == ["notes.zip"]


def test_a_hash_leads_nowhere_else(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no SHA-256"):
        tiles_file("../../etc/passwd", tmp_path)
    assert kept_tile("../../etc/passwd", tmp_path, 0, 0, 0) is None
