"""Files as people have them, and what must come of each."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from index.errors import CairnError
from retrieval.photos.apart import decoding_here
from retrieval.photos.decoder import MOST_BLANK
from retrieval.photos.decoding import read_colour, read_photo
from retrieval.photos.options import ImageOptions
from retrieval.photos.remarks import Remarks
from retrieval.photos.thumbnails import thumbnail
from retrieval.photos.work import PhotoTooLarge
from tests.support.hostile import encode, photo
from tests.support.odd_photos import PROFILES, SIZE, Odd, colours, in_profile, line_art, luma, odd_photos, tiff

ODD = odd_photos()


def test_there_are_at_least_eighty() -> None:
    assert len(ODD) >= 80


@pytest.mark.parametrize(("name", "odd"), ODD.items(), ids=ODD)
def test_a_photo_is_read_as_viewers_show_it_or_refused_with_the_reason(tmp_path: Path, name: str, odd: Odd) -> None:
    path = tmp_path / name
    path.write_bytes(odd.content)
    try:
        read = read_photo(path)
    except CairnError as error:
        assert odd.refused and odd.refused in str(error)
        return
    assert not odd.refused
    assert (read.width, read.height) == odd.size
    reported = read.remarks.sentences()
    assert (odd.remark in reported[0]) if odd.remark else not reported
    if odd.shows == "luma":
        assert np.abs(read.grey - luma()).mean() <= odd.tolerance
        assert np.abs(read_colour(path)[:, :, 0] - luma()).mean() <= 1 + odd.tolerance
    elif odd.shows == "photo":
        assert np.abs(read.grey - luma()).mean() <= odd.tolerance
        assert np.abs(read_colour(path).astype(float) - colours()).mean() <= max(6, odd.tolerance)
    else:
        assert read.grey.std() > 5
    with decoding_here():
        np.testing.assert_array_equal(read_photo(path).grey, read.grey)


@pytest.mark.parametrize("name", PROFILES)
def test_pictures_are_in_srgb_and_features_see_the_stored_values(tmp_path: Path, name: str) -> None:
    image = in_profile(PROFILES[name])
    path = tmp_path / "a.png"
    path.write_bytes(encode(image, "PNG", icc_profile=PROFILES[name]))
    stored = np.abs(np.asarray(image).astype(float) - colours()).mean()
    assert stored > 3  # unconverted it is seen to be wrong
    assert np.abs(read_colour(path).astype(float) - colours()).mean() < 1
    np.testing.assert_allclose(read_photo(path).grey, np.asarray(image) @ [0.299, 0.587, 0.114], atol=1e-3)
    shown = np.asarray(Image.open(io.BytesIO(thumbnail(path, None, 512, tmp_path / "cache"))))
    assert np.abs(shown.astype(float) - colours()).mean() < 4


def test_a_turned_photo_of_16_bits_apart_is_upright(tmp_path: Path) -> None:
    stored = np.rot90(colours(), 1).astype(np.uint16) * 257
    samples = np.ascontiguousarray(np.moveaxis(stored, 2, 0))
    path = tmp_path / "a.tif"
    how = {"photometric": "rgb", "planarconfig": "separate"}
    path.write_bytes(tiff(samples, extratags=[(274, "H", 1, 6, True)], **how))
    read = read_photo(path)
    assert (read.width, read.height) == SIZE
    assert np.abs(read.grey - luma()).max() < 1


def test_the_share_of_rows_that_is_missing_is_told(tmp_path: Path) -> None:
    content = encode(photo("chelsea", SIZE), "JPEG", quality=90)
    path = tmp_path / "a.jpg"
    path.write_bytes(content[: len(content) * 9 // 10])
    read = read_photo(path)
    rows = round(read.remarks.missing * SIZE[1])
    assert 0 < rows < 60
    assert np.abs(read.grey[: SIZE[1] - rows] - luma()[: SIZE[1] - rows]).mean() < 4


def test_a_jpeg_is_judged_by_what_its_decoder_holds(tmp_path: Path) -> None:
    """Phones make photos of 200 megapixels; a quarter as wide and high is decoded."""
    baseline, progressive, png = (tmp_path / name for name in ("a.jpg", "b.jpg", "c.png"))
    image = photo(size=(1200, 900))
    baseline.write_bytes(encode(image, "JPEG"))
    progressive.write_bytes(encode(image, "JPEG", progressive=True))
    png.write_bytes(encode(image, "PNG"))
    options = ImageOptions(max_side=150, max_pixels=300 * 225)
    read = read_photo(baseline, options)
    assert (read.width, read.height, read.grey.shape) == (1200, 900, (112, 150))
    for path, how in ((progressive, options), (png, options), (baseline, ImageOptions(0, options.max_pixels))):
        with pytest.raises(PhotoTooLarge, match="1200x900 pixels, which is more than the limit"):
            read_photo(path, how)


def test_lines_that_white_hides_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(encode(line_art(255), "PNG"))
    lines = np.asarray(line_art(255).getchannel("A")).astype(float)
    assert np.abs(read_photo(path).grey - lines).max() < 1
    assert np.abs(read_colour(path)[:, :, 0] - lines).max() < 1


def test_animations_stay_with_their_first_frame_where_no_other_can_be_shown(tmp_path: Path) -> None:
    white, black = Image.new("RGB", SIZE, "white"), Image.new("RGB", SIZE)
    shown = Image.fromarray(colours())
    blank = encode(white, "GIF", save_all=True, append_images=[black])
    late = encode(white, "WEBP", save_all=True, append_images=[black, white] * (MOST_BLANK // 2) + [shown])
    damaged = encode(white, "PNG", save_all=True, append_images=[shown])
    damaged = damaged[: damaged.index(b"fdAT") + 400]
    for name, content in {"blank.gif": blank, "late.webp": late, "damaged.png": damaged}.items():
        (tmp_path / name).write_bytes(content)
        read = read_photo(tmp_path / name)
        assert not read.remarks.blank and read.grey.min() > 250
    (tmp_path / "small.png").write_bytes(encode(white, "PNG", save_all=True, append_images=[shown]))
    frame = ImageOptions(max_pixels=SIZE[0] * SIZE[1] + 1)  # no second one
    assert not read_photo(tmp_path / "small.png", frame).remarks.blank


def test_remarks_are_kept_as_numbers() -> None:
    for reported in (Remarks(0.25, True, 3, True, True, 32), Remarks(text=True), Remarks(blank=1), Remarks()):
        assert Remarks.of_numbers(np.array(reported.numbers(), np.float32).tolist()) == reported
