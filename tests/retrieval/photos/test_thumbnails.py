"""Thumbnails: what the decoder shows, made once, and made again where what was kept is damaged."""

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data

from index.errors import CairnError
from retrieval.photos.decoding import read_colour
from retrieval.photos.options import ImageOptions
from retrieval.photos.thumbnails import SIZES, thumbnail, thumbnail_file


def write_photo(path: Path, orientation: int = 1, quality: int = 95) -> str:
    """Write a photo of 600×400 stored pixels; give its SHA-256."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(data.coffee()).save(path, "JPEG", quality=quality, exif=exif)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def decode(made: bytes) -> np.ndarray:
    image = Image.open(io.BytesIO(made))
    assert image.format == "JPEG"
    return np.asarray(image.convert("RGB")).astype(float)


def files(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_a_thumbnail_shows_the_upright_photo(tmp_path: Path, size: int, orientation: int) -> None:
    sha256 = write_photo(tmp_path / "photo.jpg", orientation)
    shown = decode(thumbnail(tmp_path / "photo.jpg", sha256, size, tmp_path / "cache"))
    upright = np.rot90(data.coffee(), {1: 0, 3: 2, 6: 3}[orientation])
    assert max(shown.shape) == size and np.argmax(shown.shape[:2]) == np.argmax(upright.shape[:2])
    expected = np.asarray(
        Image.fromarray(np.ascontiguousarray(upright)).resize(shown.shape[1::-1], Image.Resampling.BOX)
    )
    assert abs(shown - expected).mean() < 6
    assert files(tmp_path / "cache") == [tmp_path / "cache" / "thumbnails" / sha256[:2] / f"{sha256}-{size}.jpg"]


def test_a_small_photo_is_not_enlarged(tmp_path: Path) -> None:
    Image.fromarray(data.coffee()[:30, :40]).save(tmp_path / "small.png")
    assert decode(thumbnail(tmp_path / "small.png", None, 256, tmp_path)).shape == (30, 40, 3)


def test_what_is_kept_is_used_until_it_is_damaged(tmp_path: Path) -> None:
    photo, cache = tmp_path / "photo.jpg", tmp_path / "cache"
    sha256 = write_photo(photo)
    made = thumbnail(photo, sha256, 128, cache)
    (kept,) = files(cache)
    assert kept == thumbnail_file(sha256, 128, cache) and kept.read_bytes() == made
    for damage in (made[:-100], b"", b"<html>", made[100:], made + b"\0"):
        kept.write_bytes(damage)
        assert thumbnail(photo, sha256, 128, cache) == made
        assert kept.read_bytes() == made and files(cache) == [kept]
    photo.unlink()
    assert thumbnail(photo, sha256, 128, cache) == made
    kept.unlink()
    with pytest.raises(CairnError, match=r"photo\.jpg cannot be shown: the file does not exist\. .*\.$"):
        thumbnail(photo, sha256, 128, cache)


def test_a_file_that_is_not_what_was_indexed_is_not_shown(tmp_path: Path) -> None:
    photo, cache = tmp_path / "photo.jpg", tmp_path / "cache"
    sha256 = write_photo(photo)
    before = thumbnail(photo, sha256, 128, cache)
    Image.fromarray(data.astronaut()).save(photo)
    assert thumbnail(photo, sha256, 128, cache) == before  # kept
    for known in (sha256, "", "0" * 64):
        with pytest.raises(
            CairnError, match=r"photo\.jpg cannot be shown: its file has changed since it was indexed\."
        ):
            thumbnail(photo, known, 256, cache)
    assert decode(thumbnail(photo, None, 256, cache)).shape[:2] == (256, 256)
    assert files(cache) == [thumbnail_file(sha256, 128, cache)]


def test_a_damaged_photo_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    photo, cache = tmp_path / "photo.jpg", tmp_path / "cache"
    write_photo(photo)
    photo.write_bytes(photo.read_bytes()[:2000])
    sha256 = hashlib.sha256(photo.read_bytes()).hexdigest()
    with pytest.raises(CairnError, match=r"photo\.jpg cannot be shown: "):
        thumbnail(photo, sha256, 256, cache)
    assert files(cache) == []


def test_a_cache_that_cannot_be_written_is_no_reason_not_to_show_a_photo(tmp_path: Path) -> None:
    sha256 = write_photo(tmp_path / "photo.jpg")
    (tmp_path / "cache").write_text("a file where the folder would be")
    made = thumbnail(tmp_path / "photo.jpg", sha256, 128, tmp_path / "cache")
    assert made == thumbnail(tmp_path / "photo.jpg", None, 128, tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_sizes_and_hashes_that_are_none_are_refused(tmp_path: Path) -> None:
    sha256 = write_photo(tmp_path / "photo.jpg")
    with pytest.raises(CairnError, match="128, 256 or 512 pixels, not 100"):
        thumbnail(tmp_path / "photo.jpg", sha256, 100, tmp_path)
    for bad in ("../../etc/passwd", sha256[:-1], sha256.upper() + "/", f"{sha256}\n", "g" * 64):
        with pytest.raises(ValueError, match="SHA-256"):
            thumbnail(tmp_path / "photo.jpg", bad, 128, tmp_path)


def test_the_one_decoder_makes_the_pixels(tmp_path: Path) -> None:
    photo = tmp_path / "photo.jpg"
    write_photo(photo, 8)
    shown = decode(thumbnail(photo, None, 256, tmp_path))
    assert shown.shape == read_colour(photo, ImageOptions(max_side=256)).shape == (256, 171, 3)
