"""Reading and writing the PhotoTour layout."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from index.errors import CairnError
from learning.patches.phototour import PatchSet, bitmap_name, write_bitmaps, write_info, write_interest, write_pairs


def patches_of(number: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (number, 64, 64), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set of 300 patches, three to a point, with a pair file of each split."""
    points = np.arange(300) // 3
    write_bitmaps(tmp_path, patches_of(300))
    write_info(tmp_path, points, np.arange(300) % 5)
    for split in range(3):
        first = np.array([0, 3, 6, 299]) + split * (np.arange(4) < 3)
        write_pairs(tmp_path, split, first, np.array([2, 9, 8, 0]), points)
    return tmp_path


def refused(folder: Path, pairs: str | None = None) -> str:
    """The sentence with which the whole set, or a pair file, is refused."""
    with pytest.raises(CairnError) as error:
        opened = PatchSet.open(folder)
        opened.pairs(pairs)
        opened.read(np.arange(len(opened)))
    return str(error.value)


def test_a_published_set_is_read_as_described(tmp_path: Path) -> None:
    # Written by hand, byte by byte where it matters: a bitmap whose every patch has one grey value, its number.
    tiles = np.arange(256, dtype=np.uint8).reshape(16, 16)
    Image.fromarray(np.kron(tiles, np.ones((64, 64), np.uint8))).save(tmp_path / "patches0000.bmp")
    (tmp_path / "info.txt").write_bytes(b"".join(b"%d 0 \n" % (number // 2) for number in range(200)))
    (tmp_path / "m50_2_2_0.txt").write_text("0 0 0 1 0 0 0\n")
    (tmp_path / "m50_10_10_0.txt").write_text("4 2 0 5 2 0 0 \n17 8 0 199 99 0 0 \n")

    opened = PatchSet.open(tmp_path)
    assert len(opened) == 200
    assert opened.points[:4].tolist() == [0, 0, 1, 1]
    assert opened.pair_files == ["m50_2_2_0.txt", "m50_10_10_0.txt"]
    read = opened.read(np.array([17, 3, 17]))
    assert read.dtype == np.uint8
    assert (read == np.array([17, 3, 17], np.uint8)[:, None, None]).all()
    pairs = opened.pairs()  # the largest
    assert (pairs.first.tolist(), pairs.second.tolist(), pairs.match.tolist()) == ([4, 17], [5, 199], [True, False])
    assert len(opened.pairs("m50_2_2_0.txt")) == len(opened.pairs("train")) - 1 == 1
    with pytest.raises(CairnError, match=r"has no test pairs; it has m50_2_2_0\.txt, m50_10_10_0\.txt"):
        opened.pairs("test")
    with pytest.raises(CairnError, match=r"has no pair file m50_9_9_0\.txt"):
        opened.pairs("m50_9_9_0.txt")


def test_numbers_are_compared_as_numbers(tmp_path: Path) -> None:
    write_bitmaps(tmp_path, patches_of(4))
    write_info(tmp_path, np.zeros(4, int), np.zeros(4, int))
    (tmp_path / "m50_1000_1000_0.txt").write_text("0 0 0 1 0 0 0\n")
    (tmp_path / "m50_500_500_0.txt").write_text("2 0 0 3 0 0 0\n")
    assert PatchSet.open(tmp_path).pairs().first.tolist() == [0]


def test_splits_are_found_by_name(folder: Path) -> None:
    opened = PatchSet.open(folder)
    assert opened.pairs("validation").first.tolist() == [1, 4, 7, 299]
    assert opened.pairs("test").first.tolist() == [2, 5, 8, 299]
    assert opened.pairs("test").match.tolist() == [True, False, True, False]
    assert opened.pairs().first.tolist() == opened.pairs("train").first.tolist() == [0, 3, 6, 299]


@settings(max_examples=15)
@given(number=st.integers(1, 700), seed=st.integers(0, 99), data=st.data())
def test_what_is_written_is_read_back(
    number: int, seed: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("set")
    rng = np.random.default_rng(seed)
    patches, points = patches_of(number, seed), rng.integers(0, 2**40, number)
    order = rng.permutation(number)
    photos = rng.integers(0, 50, number)
    write_bitmaps(folder, patches, order)
    write_info(folder, points, photos)
    write_interest(folder, photos, rng.normal(size=(number, 4)))
    first, second = rng.integers(0, number, (2, 20))
    name = write_pairs(folder, 2, first, second, points)

    opened = PatchSet.open(folder)
    assert (opened.points == points).all() and (opened.photos == photos).all()
    wanted = np.array(data.draw(st.lists(st.integers(0, number - 1), max_size=40)), np.int64)
    assert (opened.read(wanted) == patches[order][wanted]).all()
    pairs = opened.pairs(name)
    assert (pairs.first == first).all() and (pairs.second == second).all()
    assert (pairs.match == (points[first] == points[second])).all()
    assert name == f"m50_{pairs.match.sum()}_{(~pairs.match).sum()}_2.txt"


def test_patches_come_in_the_order_asked_for_across_many_bitmaps(tmp_path: Path) -> None:
    number = 256 * 20  # more bitmaps than are kept
    patches = np.broadcast_to(np.arange(number)[:, None, None] % 251, (number, 64, 64)).astype(np.uint8)
    write_bitmaps(tmp_path, patches)
    write_info(tmp_path, np.arange(number), np.zeros(number, int))
    opened = PatchSet.open(tmp_path)
    order = np.random.default_rng(0).permutation(number)
    assert (opened.read(order)[:, 5, 7] == order % 251).all()
    assert (opened.read(order[:9])[:, 63, 0] == order[:9] % 251).all()
    assert len(opened._bitmaps) <= 16
    with pytest.raises(IndexError, match=f"from 0 to {number - 1}"):
        opened.read(np.array([0, number]))


def test_the_fingerprint_follows_labels_and_pixels(folder: Path) -> None:
    before = PatchSet.open(folder).fingerprint
    assert PatchSet.open(folder).fingerprint == before
    pixels = np.asarray(Image.open(folder / bitmap_name(1))).copy()
    pixels[0, 0] ^= 1
    Image.fromarray(pixels).save(folder / bitmap_name(1))
    changed = PatchSet.open(folder).fingerprint
    assert changed != before
    write_info(folder, np.arange(300), np.zeros(300, int))
    assert PatchSet.open(folder).fingerprint not in (before, changed)


def test_missing_parts_are_named(folder: Path) -> None:
    (folder / "m50_2_2_1.txt").rename(folder / "kept")
    assert "has no validation pairs" in refused(folder, "validation")
    (folder / bitmap_name(1)).unlink()
    assert "patches0001.bmp is missing: info.txt has 300 patches, which fill 2 bitmaps" in refused(folder)
    (folder / "info.txt").unlink()
    assert "it has no info.txt" in refused(folder)
    assert "it has no info.txt" in refused(folder / "nowhere")


def test_a_set_without_pairs_still_opens(folder: Path) -> None:
    for path in folder.glob("m50_*"):
        path.unlink()
    assert len(PatchSet.open(folder)) == 300
    assert "has no pair file" in refused(folder)


@pytest.mark.parametrize(
    ("content", "line"),
    [("0 0\n1 x\n", " in line 2"), ("0 0\n1\n", " in line 2"), ("0 0\n1.5 0\n", " in line 2"), ("é 0\n", " in line 1")],
)
def test_a_damaged_info_is_refused(folder: Path, content: str, line: str) -> None:
    (folder / "info.txt").write_text(content)
    assert f"info.txt is damaged{line}: each line must give a point and a photo" in refused(folder)


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_empty_info_is_refused(folder: Path, content: str) -> None:
    (folder / "info.txt").write_text(content)
    assert "info.txt is empty" in refused(folder)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("0 0 0 300 100 0 0", "names patch 300 in line 2, but info.txt has 300 patches"),
        ("-1 0 0 1 0 0 0", "names patch -1 in line 2"),
        ("0 0 0 3 7 0 0", r"info.txt disagree on the point of patch 3 (line 2)"),
        ("0 0 0 3", "is damaged in line 2: each line must give two patches with their points"),
        ("0 0 0 three 1 0 0", "is damaged in line 2"),
    ],
)
def test_a_damaged_pair_file_is_refused(folder: Path, row: str, reason: str) -> None:
    (folder / "m50_2_2_0.txt").write_text(f"0 0 0 1 0 0 0\n{row}\n")
    assert reason in refused(folder, "train")


def test_damaged_bitmaps_are_refused_when_they_are_read(folder: Path) -> None:
    path = folder / bitmap_name(1)
    whole = path.read_bytes()
    PatchSet.open(folder).read(np.array([299]))
    path.write_bytes(whole[: len(whole) // 2])
    assert "patches0001.bmp is missing, damaged or cut short" in refused(folder)
    path.write_bytes(b"no bitmap")
    assert "patches0001.bmp is missing, damaged or cut short" in refused(folder)
    Image.new("L", (1024, 512)).save(path)
    assert "patches0001.bmp is 1024x512 pixels, but a bitmap of 16 x 16 patches has 1024x1024" in refused(folder)
    # Patches in other bitmaps can still be read.
    assert PatchSet.open(folder).read(np.array([255])).shape == (1, 64, 64)
