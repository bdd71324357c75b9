import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image, ImageFile

from index.errors import CairnError
from retrieval.photos import decoder
from retrieval.photos.apart import decoding_here
from retrieval.photos.decoding import Photo, read_colour, read_photo
from retrieval.photos.listing import list_photos
from retrieval.photos.options import ImageOptions
from tests.support.hostile import UNREADABLE, encode, photo, png, write_hostile_folder
from tests.support.paths import ROOT

WHOLE = ImageOptions(max_side=0)
REC_601 = np.array([0.299, 0.587, 0.114])
# How each EXIF orientation is stored, as an operation on the upright image: the inverse of what a viewer does.
STORED_AS = {
    1: lambda a: a,
    2: np.fliplr,
    3: lambda a: np.rot90(a, 2),
    4: np.flipud,
    5: lambda a: np.swapaxes(a, 0, 1),
    6: lambda a: np.rot90(a, 1),
    7: lambda a: np.swapaxes(np.rot90(a, 2), 0, 1),
    8: lambda a: np.rot90(a, -1),
}


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def luma(rgb: np.ndarray) -> np.ndarray:
    return np.asarray(rgb, np.float64) @ REC_601


def lossless(rgb: np.ndarray, folder: Path) -> Path:
    return write(folder, "lossless.png", encode(Image.fromarray(np.ascontiguousarray(rgb)), "PNG"))


# ---------------------------------------------------------------------------------------------- orientation, geometry


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", ["PNG", "TIFF", "WEBP", "JPEG"])
def test_every_exif_orientation_comes_out_upright(tmp_path: Path, format: str, orientation: int) -> None:
    upright = np.asarray(photo(size=(96, 64)))
    stored = Image.fromarray(np.ascontiguousarray(STORED_AS[orientation](upright)))
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if format == "WEBP" else {"quality": 98, "subsampling": 0} if format == "JPEG" else {}
    path = write(tmp_path, "turned", encode(stored, format, exif=exif, **options))

    read = read_photo(path)

    assert (read.width, read.height) == (96, 64)
    assert read.grey.flags.c_contiguous and read.grey.dtype == np.float32
    tolerance = 6 if format == "JPEG" else 0.01
    assert np.abs(read.grey - luma(upright)).max() < tolerance
    assert np.abs(read_colour(path).astype(float) - upright).max() <= (25 if format == "JPEG" else 0)


def test_upright_size_and_reduction_of_a_turned_photo(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    path = write(tmp_path, "turned.jpg", encode(photo(size=(400, 300)), "JPEG", exif=exif))
    read = read_photo(path, ImageOptions(max_side=100))
    assert (read.width, read.height) == (300, 400)
    assert read.grey.shape == (100, 75)


@pytest.mark.parametrize("exif", [b"Exif\0\0II*\0\xff\xff\xff\x7f", b"Exif\0\0nonsense", b"Exif\0\0"])
def test_broken_exif_counts_as_none(tmp_path: Path, exif: bytes) -> None:
    path = write(tmp_path, "a.jpg", encode(photo(size=(40, 30)), "JPEG", exif=exif))
    assert read_photo(path).grey.shape == (30, 40)


@given(
    points=hnp.arrays(np.float64, st.tuples(st.integers(0, 8), st.just(2)), elements=st.floats(-1e4, 1e4)),
    original=st.tuples(st.integers(1, 20000), st.integers(1, 20000)),
    working=st.tuples(st.integers(1, 64), st.integers(1, 64)),
)
def test_points_go_to_the_original_and_back(
    points: np.ndarray, original: tuple[int, int], working: tuple[int, int]
) -> None:
    read = Photo(np.zeros(working[::-1], np.float32), *original)
    np.testing.assert_allclose(read.to_working(read.to_original(points)), points, atol=1e-6)
    # The outer edges of the corner pixels coincide, and so do the middles.
    corners = np.array([[-0.5, -0.5], [working[0] - 0.5, working[1] - 0.5]])
    np.testing.assert_allclose(
        read.to_original(corners), [[-0.5, -0.5], [original[0] - 0.5, original[1] - 0.5]], rtol=1e-9
    )


def test_points_keep_their_precision_and_their_array() -> None:
    read = Photo(np.zeros((10, 20), np.float32), 40, 20)
    points = np.array([[3, 4]], np.int32)
    assert read.to_original(points).dtype == np.float32
    np.testing.assert_array_equal(read.to_original(points), [[6.5, 8.5]])
    np.testing.assert_array_equal(points, [[3, 4]])


@pytest.mark.parametrize("format", ["PNG", "JPEG"])
@pytest.mark.parametrize("size", [(1000, 700), (1003, 701), (2311, 1533), (4001, 203)])
def test_a_spot_is_found_where_the_geometry_says(tmp_path: Path, format: str, size: tuple[int, int]) -> None:
    """The reduction shifts nothing, odd sizes and decoder scaling included: a blob's centroid maps back exactly."""
    width, height = size
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    centre = np.array([width - 60.3, height - 55.6])
    blob = 250 * np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / (2 * 12**2))
    path = write(tmp_path, "spot", encode(Image.fromarray(blob.astype(np.uint8)), format))
    read = read_photo(path, ImageOptions(max_side=300))
    weights = np.where(read.grey > 20, read.grey, 0).astype(np.float64)
    rows, columns = np.mgrid[: weights.shape[0], : weights.shape[1]]
    centroid = np.array([[(weights * columns).sum(), (weights * rows).sum()]]) / weights.sum()
    np.testing.assert_allclose(centroid[0], read.to_working(centre[None])[0], atol=0.05)


@pytest.mark.parametrize("factor", [1.3, 2.0, 3.1, 4.0, 9.0])
def test_reduction_is_anti_aliased(tmp_path: Path, factor: float) -> None:
    """Stripes finer than the working pixels come out grey; without a filter they come back as coarse ones."""
    width = 900
    x = np.arange(width)
    stripes = np.broadcast_to(np.where(x % 2 == 0, 0, 255).astype(np.uint8), (90, width))
    path = write(tmp_path, "stripes.png", encode(Image.fromarray(np.ascontiguousarray(stripes)), "PNG"))
    read = read_photo(path, ImageOptions(max_side=int(width / factor)))
    inside = read.grey[:, 4:-4]
    assert inside.std() < 0.15 * stripes.std()
    assert abs(inside.mean() - stripes.mean()) < 1


def test_decoder_scaling_stays_close_to_a_full_decode(tmp_path: Path) -> None:
    big = photo("retina", (1400, 1000))
    path = write(tmp_path, "a.jpg", encode(big, "JPEG", quality=95))
    for side in (350, 400, 690, 700, 1000):
        read = read_photo(path, ImageOptions(max_side=side))
        decoded = luma(np.asarray(Image.open(path).convert("RGB"))).astype(np.float32)
        full = cv2.resize(decoded, read.grey.shape[::-1], interpolation=cv2.INTER_AREA)
        assert np.sqrt(np.mean((read.grey - full) ** 2)) < 1.5


def test_a_photo_is_never_enlarged_and_one_side_is_never_lost(tmp_path: Path) -> None:
    assert read_photo(write(tmp_path, "a.png", encode(photo(size=(30, 20)), "PNG"))).grey.shape == (20, 30)
    thin = write(tmp_path, "b.png", encode(Image.new("L", (1, 20000), 77), "PNG"))
    read = read_photo(thin)
    assert read.grey.shape == (1024, 1) and (read.width, read.height) == (1, 20000)
    np.testing.assert_allclose(read.grey, 77, atol=1e-3)


# ------------------------------------------------------------------------------------------------------------- pixels


def test_grey_is_unrounded_rec_601_luma(tmp_path: Path) -> None:
    rgb = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    read = read_photo(lossless(rgb, tmp_path))
    np.testing.assert_allclose(read.grey, luma(rgb), atol=1e-3)


def test_jpeg_luma_equals_that_of_the_colours(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jpg", encode(photo(), "JPEG", quality=90))
    difference = read_photo(path).grey - luma(np.asarray(Image.open(path)))
    assert np.abs(difference).mean() < 0.6


@pytest.mark.parametrize("max_side", [0, 61])
@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_sixteen_bits_equal_eight(tmp_path: Path, format: str, max_side: int) -> None:
    options = ImageOptions(max_side=max_side)
    eight = np.asarray(photo().convert("L"))
    deep = Image.fromarray(eight.astype(np.uint16) * 257)
    a = read_photo(write(tmp_path, "8", encode(Image.fromarray(eight), format)), options).grey
    b = read_photo(write(tmp_path, "16", encode(deep, format)), options).grey
    assert np.abs(a - b).max() < 1
    colour = read_colour(tmp_path / "16", options)
    assert colour.dtype == np.uint8 and np.abs(colour[..., 1] - a).max() < 1.1


def test_sixteen_bit_colour_big_endian_and_white_is_zero(tmp_path: Path) -> None:
    eight = np.asarray(photo(size=(40, 30)))
    for name in ("deep.png", "deep.tif"):
        _, encoded = cv2.imencode(name[4:], cv2.cvtColor(eight.astype(np.uint16) * 257, cv2.COLOR_RGB2BGR))
        assert np.abs(read_photo(write(tmp_path, name, encoded.tobytes())).grey - luma(eight)).max() < 1
    grey = np.asarray(photo(size=(40, 30)).convert("L"))
    big_endian = Image.frombytes("I;16B", (40, 30), (grey.astype(">u2") * 257).tobytes())
    assert np.abs(read_photo(write(tmp_path, "b.tif", encode(big_endian, "TIFF"))).grey - grey).max() < 1
    negative = encode(Image.fromarray((255 - grey).astype(np.uint16) * 257), "TIFF", tiffinfo={262: 0})
    assert np.abs(read_photo(write(tmp_path, "w.tif", negative)).grey - grey).max() < 1


@pytest.mark.parametrize("highest", [1.0, 255.0, 65535.0])
def test_floating_point_ranges(tmp_path: Path, highest: float) -> None:
    ramp = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    read = read_photo(write(tmp_path, "f.tif", encode(Image.fromarray(ramp * highest), "TIFF")))
    np.testing.assert_allclose(read.grey, ramp * 255, atol=0.01)


def test_floating_point_holes_and_extremes_stay_finite(tmp_path: Path) -> None:
    values = np.array([[np.nan, np.inf, -np.inf], [3e38, -3e38, 0], [1, 2, 3]], np.float32)
    read = read_photo(write(tmp_path, "f.tif", encode(Image.fromarray(values), "TIFF")))
    assert np.isfinite(read.grey).all() and read.grey.min() >= 0 and read.grey.max() <= 255


def test_cmyk_is_near_its_rgb(tmp_path: Path) -> None:
    rgb = photo("coffee")
    for name, format in (("a.jpg", "JPEG"), ("a.tif", "TIFF")):
        path = write(tmp_path, name, encode(rgb.convert("CMYK"), format))
        assert np.abs(read_photo(path).grey - luma(np.asarray(rgb))).mean() < 3


def test_alpha_is_laid_over_white(tmp_path: Path) -> None:
    rgb = np.asarray(photo(size=(64, 48)))
    alpha = np.tile(np.linspace(0, 255, 64).astype(np.uint8), (48, 1))
    expected = luma(rgb) * (alpha / 255.0) + 255 * (1 - alpha / 255.0)
    path = write(tmp_path, "a.png", encode(Image.fromarray(np.dstack([rgb, alpha])), "PNG"))
    np.testing.assert_allclose(read_photo(path).grey, expected, atol=1)
    assert (read_colour(path)[:, 0] == 255).all()
    grey_alpha = Image.merge("LA", [Image.fromarray(rgb[..., 1].copy()), Image.fromarray(alpha)])
    expected = rgb[..., 1] * (alpha / 255.0) + 255 * (1 - alpha / 255.0)
    np.testing.assert_allclose(read_photo(write(tmp_path, "b.png", encode(grey_alpha, "PNG"))).grey, expected, atol=1)


def test_a_palette_with_transparency_and_one_bit(tmp_path: Path) -> None:
    indexed = Image.new("P", (4, 1))
    indexed.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255])
    indexed.putdata([0, 1, 2, 3])
    path = write(tmp_path, "p.png", encode(indexed, "PNG", transparency=bytes([255, 0, 255, 255])))
    np.testing.assert_array_equal(read_colour(path)[0], [[0, 0, 0], [255, 255, 255], [0, 255, 0], [0, 0, 255]])
    bits = np.random.default_rng(0).random((8, 16)) < 0.5
    read = read_photo(write(tmp_path, "b.tif", encode(Image.fromarray(bits), "TIFF", compression="group4")))
    np.testing.assert_array_equal(read.grey, bits * 255.0)


@pytest.mark.parametrize("format", ["GIF", "WEBP", "TIFF", "PNG", "MPO"])
def test_the_first_frame_of_several(tmp_path: Path, format: str) -> None:
    first, second = Image.new("RGB", (16, 12), (200, 200, 200)), Image.new("RGB", (16, 12), (10, 10, 10))
    path = write(tmp_path, "frames", encode(first, format, save_all=True, append_images=[second]))
    assert np.abs(read_photo(path).grey - 200).max() < 3


def test_heic(tmp_path: Path) -> None:
    pillow_heif = pytest.importorskip("pillow_heif")
    upright = photo(size=(128, 96))
    exif = Image.Exif()
    exif[0x0112] = 6
    stored = upright.transpose(Image.Transpose.ROTATE_90)
    pillow_heif.from_pillow(stored).save(tmp_path / "a.heic", quality=90, exif=exif.tobytes())
    read = read_photo(tmp_path / "a.heic")
    assert (read.width, read.height) == (128, 96)
    assert np.abs(read.grey - luma(np.asarray(upright))).mean() < 4


def test_heic_without_the_extra_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    path = write(tmp_path, "a.heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
    with decoding_here(), pytest.raises(CairnError, match="pip install pillow-heif"):
        read_photo(path)


# ------------------------------------------------------------------------------------------------------ refused files


def test_a_folder_of_hostile_files(tmp_path: Path) -> None:
    expectations = write_hostile_folder(tmp_path)
    outcome = {}
    for root, path in list_photos([tmp_path]):
        assert root == tmp_path
        try:
            read = read_photo(path)
        except CairnError as error:
            outcome[path.name] = False
            reason = str(error)
            assert UNREADABLE[path.name] in reason
            assert str(tmp_path) not in reason and "\n" not in reason
            with pytest.raises(CairnError):
                read_colour(path)
        else:
            outcome[path.name] = True
            assert np.isfinite(read.grey).all() and max(read.grey.shape) <= 1024
            colour = read_colour(path)
            assert colour.shape == (*read.grey.shape, 3) and colour.dtype == np.uint8
    assert outcome == expectations


def test_the_pixel_limit_is_checked_before_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "a.png", encode(photo(size=(40, 30)), "PNG"))
    assert read_photo(path, ImageOptions(max_pixels=1200)).width == 40

    def decoded(self: ImageFile.ImageFile) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(ImageFile.ImageFile, "load", decoded)
    with decoding_here(), pytest.raises(CairnError, match="40x30 pixels, which is more than the limit of 1199 pixels"):
        read_photo(path, ImageOptions(max_pixels=1199))


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory peak of a process")
def test_claimed_sizes_cost_no_memory(tmp_path: Path) -> None:
    write_hostile_folder(tmp_path)
    script = """
        import resource, sys
        from pathlib import Path
        from index.errors import CairnError
        from retrieval.photos.apart import decoding_here
        from retrieval.photos.decoding import read_photo
        decoding_here().__enter__()
        for name in ("one-pixel.png", "cmyk.jpg", "animated.webp"):
            read_photo(Path(sys.argv[1]) / name)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for name in ("huge.png", "huge.webp", "text-bomb.png"):
            try:
                read_photo(Path(sys.argv[1]) / name)
                sys.exit("read")
            except CairnError:
                pass
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    root = ROOT
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)], cwd=root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 50_000  # kB; decoding would take millions


def test_a_tiff_with_a_tile_beyond_the_limit(tmp_path: Path) -> None:
    """Only what the buffer would take counts, whatever orientation the tags claim."""
    content = encode(Image.new("L", (50, 40)), "TIFF", tiffinfo={274: 6})
    with pytest.raises(CairnError, match=r"(40x50|50x40) pixels, which is more"):
        read_photo(write(tmp_path, "a.tif", content), ImageOptions(max_pixels=1999))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.mkdir(), "a folder"),
        (lambda path: os.mkfifo(path), "not a regular file"),
        (lambda path: path.symlink_to(path), "link"),
        (lambda path: path.write_bytes(png(0, 5)), "damaged|no pixels|not a photo"),
        (lambda path: path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"), "not a photo"),
    ],
)
def test_what_is_not_a_photo_says_so(tmp_path: Path, make: object, reason: str) -> None:
    path = tmp_path / "a.jpg"
    make(path)  # type: ignore[operator]
    with pytest.raises(CairnError, match=reason):
        read_photo(path)


def test_names_that_are_no_names() -> None:
    for name in ("a\0b.jpg", "x" * 5000):
        with pytest.raises(CairnError, match="name"):
            read_photo(Path(name))
        with pytest.raises(CairnError, match="name"):
            list_photos([Path(name)])


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemoryError(), "not enough memory"),
        (OSError(errno.EIO, "Input/output error", "/secret/place"), "input/output error"),
        (RecursionError("too\ndeep"), r"damaged \(too deep\)"),
        (SyntaxError(), "damaged$"),
    ],
)
def test_every_kind_of_failure_becomes_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(decoder, "_open", fail)
    path = write(tmp_path, "a.jpg", b"x")
    with decoding_here(), pytest.raises(CairnError, match=reason) as caught:
        read_photo(path)
    assert "secret" not in str(caught.value)


SMALL = {
    format: encode(photo(size=(24, 18)), format, **options)
    for format, options in [
        ("JPEG", {}),
        ("PNG", {}),
        ("TIFF", {}),
        ("WEBP", {}),
        ("GIF", {}),
        ("BMP", {}),
        ("MPO", {"save_all": True, "append_images": [photo(size=(24, 18))]}),
    ]
} | {"TIFF-LZW": encode(photo(size=(24, 18)), "TIFF", compression="tiff_lzw")}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(SMALL)),
    edits=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=6)), max_size=6),
    keep=st.one_of(st.just(1.0), st.floats(0, 1)),
)
@example(name="JPEG", edits=[], keep=0.999)
def test_damaged_files_only_ever_raise_a_cairn_error(
    tmp_path: Path, name: str, edits: list[tuple[float, bytes]], keep: float
) -> None:
    content = bytearray(SMALL[name])
    for position, replacement in edits:
        start = int(position**2 * len(content))  # headers are where the traps are
        content[start : start + len(replacement)] = replacement
    path = write(tmp_path, "fuzzed", bytes(content[: int(keep * len(content))]))
    try:
        with decoding_here():
            read = read_photo(path, ImageOptions(max_pixels=1_000_000))
    except CairnError as error:
        assert str(error) and "\n" not in str(error) and str(tmp_path) not in str(error)
    else:
        assert np.isfinite(read.grey).all() and read.grey.dtype == np.float32


# ------------------------------------------------------------------------------------------------------------ listing


def test_listing_is_by_extension_in_a_fixed_order(tmp_path: Path) -> None:
    for name in (
        "b.JPG",
        "a.png",
        "sub/c.Tiff",
        "sub/.hidden.jpg",
        ".git/d.jpg",
        "notes.txt",
        "sub.jpg/e.webp",
        "f.heic",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    listed = list_photos([tmp_path])
    assert {root for root, _ in listed} == {tmp_path}
    assert [path.relative_to(tmp_path).as_posix() for _, path in listed] == [
        "a.png",
        "b.JPG",
        "f.heic",
        "sub/c.Tiff",
        "sub.jpg/e.webp",
    ]


def test_explicit_files_are_taken_as_they_are_and_once(tmp_path: Path) -> None:
    notes, shot = write(tmp_path, "notes.txt", b"x"), write(tmp_path, "shot.jpg", b"x")
    assert list_photos([notes, tmp_path, notes]) == [(tmp_path, notes), (tmp_path, shot)]
    with pytest.raises(CairnError, match=r"no file or folder '.*gone'"):
        list_photos([tmp_path, tmp_path / "gone"])


def test_links_are_followed_once_and_loops_end(tmp_path: Path) -> None:
    album = tmp_path / "album"
    (album / "z").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    write(album / "z", "real.jpg", b"x")
    write(outside, "far.jpg", b"x")
    (album / "a").symlink_to(album / "z")
    (album / "z" / "up").symlink_to(album)
    (album / "b.jpg").symlink_to(album / "z" / "real.jpg")
    (album / "c").symlink_to(outside)
    (album / "broken.jpg").symlink_to(tmp_path / "nowhere.jpg")
    assert [path.relative_to(album).as_posix() for _, path in list_photos([album])] == [
        "broken.jpg",
        "c/far.jpg",
        "z/real.jpg",
    ]


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read everything")
def test_a_locked_folder_is_not_lost(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0)
    try:
        assert list_photos([tmp_path]) == [(tmp_path, locked)]
        with pytest.raises(CairnError, match="permission"):
            read_photo(locked)
    finally:
        locked.chmod(0o700)


def test_options_that_mean_nothing_are_refused() -> None:
    for options in ({"max_side": -1}, {"max_pixels": 0}):
        with pytest.raises(CairnError):
            ImageOptions(**options)


def test_the_same_file_gives_the_same_pixels(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jpg", encode(photo(), "JPEG"))
    options = ImageOptions(max_side=101)
    np.testing.assert_array_equal(read_photo(path, options).grey, read_photo(path, options).grey)
