from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from index.errors import CairnError
from retrieval.library.parts.images import as_colour, as_image, as_photo, read_image
from retrieval.photos.decoding import read_colour, read_photo
from retrieval.photos.options import ImageOptions

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(40, 50), (40, 50, 3), (40, 50, 4)])
def test_an_array_is_taken_as_the_file_of_its_pixels(shape: tuple[int, ...], tmp_path: Path) -> None:
    pixels = RNG.integers(0, 256, shape, dtype=np.uint8)
    path = tmp_path / "photo.png"
    Image.fromarray(pixels).save(path)
    whole, small = (ImageOptions(max_side=side) for side in (0, 30))
    assert np.array_equal(as_image(pixels), read_photo(path, whole).grey)
    reduced = as_photo(pixels, small)
    assert np.array_equal(reduced.grey, read_photo(path, small).grey)
    assert (reduced.width, reduced.height, reduced.grey.shape) == (50, 40, (24, 30))


def test_sixteen_bits_are_taken_as_a_file_has_them(tmp_path: Path) -> None:
    pixels = RNG.integers(0, 65536, (20, 30), dtype=np.uint16)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    expected = read_photo(tmp_path / "photo.png").grey
    assert np.array_equal(as_image(pixels), expected)
    assert np.array_equal(as_image(pixels.astype(">u2")), expected)
    assert np.allclose(as_image(np.stack([pixels] * 3, axis=2)), expected, atol=1e-3)


def test_colours_become_luma_and_transparency_white() -> None:
    assert as_image(np.array([[[255, 0, 0]], [[0, 255, 0]], [[0, 0, 255]]], np.uint8))[:, 0].tolist() == pytest.approx(
        [76.245, 149.685, 29.07]
    )
    assert as_image(np.array([[[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.25]]]))[
        0
    ].tolist() == pytest.approx([29.07, 255, 191.25], abs=1e-3)


@given(arrays(np.uint8, st.tuples(st.integers(1, 5), st.integers(1, 5), st.just(3))), st.sampled_from("efd"))
def test_floats_are_parts_of_white(pixels: np.ndarray, kind: str) -> None:
    exact = as_image(pixels)
    for shape in (pixels, pixels[:, :, :1], pixels[:, :, 0]):
        found = as_image((shape / 255).astype(kind))
        assert found.dtype == np.float32 and found.shape == shape.shape[:2]
        assert 0 <= found.min() <= found.max() <= 255
        expected = exact if shape.shape == pixels.shape else as_image(shape)
        assert np.allclose(found, expected, atol=0.2 if kind == "e" else 1e-3)


def test_what_resampling_overshoots_is_cut_off() -> None:
    assert as_image(np.array([[-1e-5, 1 + 1e-5]])).tolist() == [[0, 255]]


def test_palettes_are_looked_up() -> None:
    image = Image.fromarray(RNG.integers(0, 256, (9, 9, 3), dtype=np.uint8)).convert("P")
    assert np.array_equal(as_image(image), as_image(np.asarray(image.convert("RGB"))))


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (np.zeros((0, 5), np.uint8), "no pixels"),
        (np.zeros((5, 0, 3), np.uint8), "no pixels"),
        (np.zeros(5, np.uint8), "(5,)"),
        (np.zeros((3, 5, 5), np.uint8), "channels last"),
        (np.zeros((5, 5, 2), np.uint8), "shape"),
        (np.zeros((2, 5, 5, 3), np.uint8), "one image at a time"),
        (np.zeros((5, 5), np.int64), "int64"),
        (np.zeros((5, 5), bool), "bool"),
        (np.zeros((5, 5), complex), "complex"),
        (np.array([["a", "b"]]), "<U1"),
        (np.array([[None]]), "object"),
        (np.full((5, 5), 200.0), "divide it"),
        (np.full((5, 5), -0.1), "divide it"),
        (np.array([[0.5, np.nan]]), "not finite"),
        (np.array([[0.5, np.inf]]), "not finite"),
        ([[1, 2], [3]], "shape"),
        ("photo.jpg", "shape"),
        (None, "shape"),
        (Image.new("L", (0, 4)), "no pixels"),
    ],
)
def test_what_is_no_image_is_refused(image: object, why: str) -> None:
    with pytest.raises(CairnError) as refused:
        as_image(image)  # type: ignore[arg-type]
    assert why in str(refused.value) and str(refused.value).endswith(".")


def test_a_photo_is_read_as_indexing_reads_it(tmp_path: Path) -> None:
    pixels = RNG.integers(0, 256, (40, 50, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    assert np.array_equal(read_image(str(tmp_path / "photo.png")), pixels)
    assert np.array_equal(
        read_image(tmp_path / "photo.png", 20), read_colour(tmp_path / "photo.png", ImageOptions(max_side=20))
    )
    (tmp_path / "broken.jpg").write_bytes(b"no photo")
    for wrong in ("broken.jpg", "gone.jpg", "."):
        with pytest.raises(CairnError, match=r"cannot be used: .*\.$"):
            read_image(tmp_path / wrong)
    with pytest.raises(CairnError):
        read_image(tmp_path / "photo.png", -1)


def test_a_picture_to_show_has_its_colours() -> None:
    pixels = RNG.integers(0, 256, (40, 50, 3), dtype=np.uint8)
    assert np.array_equal(as_colour(pixels), pixels)
    assert np.array_equal(as_colour(pixels / 255), pixels)
    assert np.array_equal(as_colour(pixels[:, :, :1]), np.repeat(pixels[:, :, :1], 3, axis=2))
    assert np.array_equal(as_colour(pixels.astype(np.uint16) * 257), pixels)
    assert np.array_equal(as_colour(Image.fromarray(pixels)), pixels)
    assert as_colour(pixels, 25).shape == (20, 25, 3)
    assert as_colour(np.zeros((2, 2, 4), np.uint8)).min() == 255
    with pytest.raises(CairnError):
        as_colour(np.full((2, 2), 7.0))
