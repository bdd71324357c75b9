"""Small files that ask a decoder for far more work than their pixels do."""

import io
import os
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from index.errors import CairnError
from retrieval.photos.decoding import read_photo
from retrieval.photos.listing import PHOTO_SUFFIXES
from retrieval.photos.options import ImageOptions
from retrieval.photos.work import SCANS, PhotoTooLarge, check_parts, check_strips
from tests.support.heavy_photos import chunk, chunked_png, progressive, sequential, shared_strips
from tests.support.hostile import encode, photo

SIZE = (600, 400)
LARGEST = ImageOptions(max_pixels=SIZE[0] * SIZE[1])  # that a photo of this size has just


def _read(folder: Path, content: bytes, options: ImageOptions = LARGEST) -> np.ndarray:
    path = folder / "photo"
    path.write_bytes(content)
    return read_photo(path, options).grey


@pytest.mark.parametrize(
    "content",
    [
        progressive(SIZE, 1000),
        progressive(SIZE, SCANS - 9),
        sequential(SIZE, 1000),
        # What hides scans from those who look for the end of the file, or for its size, by bytes alone.
        progressive(SIZE, 400, between=b"\xff\xfe\0\4\xff\xd9"),
        progressive(SIZE, 1000)[:-2] + b"\xff\xc2\0\x0b\x08\0\1\0\1\1\1\x11\0" + b"\xff\xd9",
        progressive(SIZE, 1000, between=b"\xff\xd0\xff\xff"),
        progressive(SIZE, 1000)[:-2],
    ],
    ids=["progressive", "one too many", "sequential", "hidden end", "second size", "restarts", "cut off"],
)
def test_a_jpeg_with_too_many_scans_is_refused_before_it_is_decoded(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(PhotoTooLarge, match=r"has \d+ scans of 600x400 pixels, which is more than the limit"):
        _read(tmp_path, content)


def test_scans_are_counted_by_their_pixels(tmp_path: Path) -> None:
    """A small photo may have as many as anybody likes, and a large one as many as any encoder writes."""
    assert _read(tmp_path, progressive(SIZE, 300), ImageOptions()).shape == SIZE[::-1]
    assert _read(tmp_path, progressive(SIZE, SCANS - 10)).shape == SIZE[::-1]


def test_what_follows_a_jpeg_is_not_counted(tmp_path: Path) -> None:
    """Cameras append other photos and films."""
    rest = np.random.default_rng(0).bytes(200_000) + b"\xff\xda" * 1000
    for options in ({}, {"progressive": True}):
        content = encode(photo(size=SIZE), "JPEG", **options)
        assert (_read(tmp_path, content + rest) == _read(tmp_path, content)).all()
    several = {"save_all": True, "append_images": [photo("coffee", SIZE)] * 30, "progressive": True}
    _read(tmp_path, encode(photo(size=SIZE), "MPO", **several))


@pytest.mark.parametrize(
    "content",
    [
        chunked_png(before=chunk(b"IDAT") * 20_000),
        chunked_png(after=chunk(b"IDAT") * 20_000),
        chunked_png(before=chunk(b"teXt", b"a") * 20_000),
        chunked_png(before=chunk(b"tEXt", b"a\0b") * 20_000),
        chunked_png(after=chunk(b"fdAT", bytes(4)) * 20_000),
        (jpeg := encode(photo(size=SIZE), "JPEG"))[:2] + b"\xff\xe5\0\2" * 20_000 + jpeg[2:],
    ],
    ids=["empty pixels", "pixels at the end", "unknown", "texts", "frames", "JPEG"],
)
def test_a_file_in_far_too_many_parts_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CairnError, match=r"the file is in more than \d+ parts"):
        _read(tmp_path, content)


def test_pixels_in_small_parts_are_read(tmp_path: Path) -> None:
    """Encoders write 8 kB at once, some 1 kB."""
    whole = encode(Image.fromarray(np.random.default_rng(0).integers(0, 256, (1000, 1200, 3), np.uint8)), "PNG")
    start = whole.index(b"IDAT") - 4
    length = int.from_bytes(whole[start : start + 4], "big")
    assert length > 60_000
    pixels = b"".join(whole[place + 8 : place + 8 + size] for place, size in _chunks(whole, b"IDAT"))
    parts = b"".join(chunk(b"IDAT", pixels[place : place + 1024]) for place in range(0, len(pixels), 1024))
    content = whole[:start] + parts + chunk(b"IEND")
    assert (_read(tmp_path, content, ImageOptions()) == _read(tmp_path, whole, ImageOptions())).all()


def _chunks(content: bytes, kind: bytes) -> list[tuple[int, int]]:
    found, place = [], 8
    while place < len(content):
        size = int.from_bytes(content[place : place + 4], "big")
        if content[place + 4 : place + 8] == kind:
            found.append((place, size))
        place += size + 12
    return found


def test_strips_of_a_tiff_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CairnError, match="its strips share the same bytes"):
        _read(tmp_path, shared_strips())
    # Some programs write one strip for all that are empty.
    assert _read(tmp_path, shared_strips(strip=zlib.compress(bytes(64)))).shape == (1024, 33)


def test_scans_within_a_tiff_are_counted() -> None:
    strip = progressive((64, 1), 1000)
    content = io.BytesIO(shared_strips(compression=7, strip=strip, rows=2))
    length = 2 * len(content.getvalue())  # as if each strip had its own
    with Image.open(content) as image:
        check_strips(content, length, image.tag_v2, image.size, 64_000)
        with pytest.raises(PhotoTooLarge, match="1010 scans of 64x2 pixels"):
            check_strips(content, length, image.tag_v2, image.size, 64)


@pytest.mark.photos
@pytest.mark.skipif("CAIRN_DATASETS" not in os.environ, reason="needs CAIRN_DATASETS")
def test_no_real_photo_is_refused() -> None:
    """As if each were the largest that may be read."""
    looked_at = 0
    for folder, _, names in os.walk(os.environ["CAIRN_DATASETS"], followlinks=True):
        for path in (Path(folder, name) for name in names):
            if path.suffix.lower() not in PHOTO_SUFFIXES:
                continue
            with path.open("rb") as file:
                length = path.stat().st_size
                try:
                    image = Image.open(file)
                except OSError:
                    continue  # some sets have damaged ones
                pixels = image.width * image.height
                check_parts(file, length, pixels)
                check_strips(file, length, getattr(image, "tag_v2", {}), image.size, pixels)
                looked_at += 1
    assert looked_at
