"""The file of mined matches: round trips, and refusal of damage."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import CairnError
from learning.mining.matches import PATCH, ArrayWriter, MinedMatches, write_mined
from learning.mining.validation_split import split_image_pairs
from tests.support.learning.mined_files import Arrays, write


def example() -> Arrays:
    """Two image pairs of three photos: of the first pair features 0 and 2 are matched, of the second feature 1."""
    rng = np.random.default_rng(0)
    return {
        "names": np.array(["castle", "tower", "gate"]),
        "pairs": np.array([[0, 1], [2, 1]], np.int32),
        "homographies": rng.normal(size=(2, 3, 3)),
        "inliers": np.array([50, 70], np.int32),
        "patches": rng.integers(0, 256, (9, PATCH, PATCH), np.uint8),
        "photos": np.array([0, 0, 0, 1, 1, 1, 1, 1, 2], np.int32),
        "ellipses": rng.uniform(1, 2, (9, 5)).astype(np.float32),
        "reference": np.array([0, 2, 8], np.int32),
        "pair": np.array([0, 0, 1], np.int32),
        "positive_starts": np.array([0, 2, 3, 4]),
        "positives": np.array([3, 5, 4, 7], np.int32),
        "ambiguous_starts": np.array([0, 1, 1, 3]),
        "ambiguous": np.array([4, 3, 6], np.int32),
        "target_starts": np.array([0, 5, 10]),
        "targets": np.array([3, 4, 5, 6, 7] * 2, np.int32),
    }


def test_what_is_written_is_read(tmp_path: Path) -> None:
    arrays = example()
    mined = MinedMatches.open(write(tmp_path / "a.npz", arrays))
    assert isinstance(mined.patches, np.memmap)
    assert not mined.patches.flags.writeable
    read = {"positives": "positive_patches", "ambiguous": "ambiguous_patches", "targets": "target_patches"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(getattr(mined, read.get(name, name)), array)
    assert mined.features == 3
    assert [mined.positives(x).tolist() for x in range(3)] == [[3, 5], [4], [7]]
    assert [mined.ambiguous(x).tolist() for x in range(3)] == [[4], [], [3, 6]]
    assert [mined.negatives(x).tolist() for x in range(3)] == [[6, 7], [3, 5, 6, 7], [4, 5]]
    assert [list(mined.of_pair(pair)) for pair in range(2)] == [[0, 1], [2]]
    assert mined.meta["source"] == "example"
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:  # other programs can read it as an .npz, too
        np.testing.assert_array_equal(archive["patches"], arrays["patches"])


def test_the_same_arrays_are_the_same_file_however_they_come(tmp_path: Path) -> None:
    one, two = write(tmp_path / "1.npz", example(), 1), write(tmp_path / "2.npz", example(), 3)
    assert one.read_bytes() == two.read_bytes()
    changed = example()
    changed["patches"][4, 3, 2] ^= 1
    prints = {MinedMatches.open(path).fingerprint for path in (one, two, write(tmp_path / "3.npz", changed))}
    assert len(prints) == 2


def test_an_unfinished_file_is_never_there(tmp_path: Path) -> None:
    before = write(tmp_path / "a.npz", example()).read_bytes()
    arrays = example()
    with pytest.raises(ValueError, match="rows"):
        write_mined(tmp_path / "a.npz", [ArrayWriter("pairs", (3, 2), [arrays["pairs"]])], {})
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]
    assert (tmp_path / "a.npz").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pairs", np.array([[0, 1], [2, 3]], np.int32)),
        ("pairs", np.array([[0, 1], [2, -1]], np.int32)),
        ("pairs", np.array([[0, 1], [2, 1]], np.int64)),
        ("homographies", np.full((2, 3, 3), np.nan)),
        ("homographies", np.zeros((3, 3, 3))),
        ("inliers", np.zeros(2)),
        ("patches", np.zeros((9, PATCH, PATCH), np.float32)),
        ("patches", np.zeros((9, 30, 30), np.uint8)),
        ("patches", np.zeros((8, PATCH, PATCH), np.uint8)),
        ("photos", np.full(9, 3, np.int32)),
        ("ellipses", np.full((9, 5), np.inf, np.float32)),
        ("reference", np.array([0, 2, 9], np.int32)),
        ("pair", np.array([0, 1, 0], np.int32)),
        ("pair", np.array([0, 0, 2], np.int32)),
        ("positive_starts", np.array([0, 2, 2, 4])),  # a feature without a positive
        ("positive_starts", np.array([0, 3, 2, 4])),
        ("positive_starts", np.array([0, 2, 3, 5])),
        ("positives", np.array([5, 3, 4, 7], np.int32)),
        ("positives", np.array([3, 3, 4, 7], np.int32)),
        ("ambiguous", np.array([4, 3, 9], np.int32)),
        ("target_starts", np.array([0, 10])),
        ("names", np.arange(3)),
        ("names", np.array([1, "two", None], object)),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(tmp_path: Path, name: str, value: np.ndarray) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("meta.json", json.dumps({"format": 1}))
        for each, array in (example() | {name: value}).items():
            file = io.BytesIO()
            np.lib.format.write_array(file, array, allow_pickle=True)
            archive.writestr(f"{each}.npy", file.getvalue())
    with pytest.raises(CairnError, match="damaged"):
        MinedMatches.open(path)


def _packed(path: Path) -> None:
    np.savez_compressed(path, **example())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("meta.json", json.dumps({"format": 1}))


def _later(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("meta.json", json.dumps({"format": 2}))


DAMAGE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda path: path.unlink(), "There is no file"),
    "empty": (lambda path: path.write_bytes(b""), "damaged"),
    "text": (lambda path: path.write_text("not a zip"), "damaged"),
    "another npz": (lambda path: np.savez(path, patches=np.zeros(3)), "damaged"),
    "packed": (_packed, "damaged"),
    "of a later format": (_later, "update"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "not a regular file"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_no_file_of_matches_is_refused(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / "a.npz", example())
    damage, sentence = DAMAGE[kind]
    damage(path)
    with pytest.raises(CairnError, match=sentence):
        MinedMatches.open(path)


@pytest.mark.slow
@given(st.data())
def test_no_damage_goes_unnoticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """A file that is cut short or has a wrong byte is refused, or still has the same contents."""
    folder = tmp_path_factory.mktemp("damage")
    contents = bytearray(write(folder / "a.npz", example()).read_bytes())
    whole = MinedMatches.open(folder / "a.npz")
    place = data.draw(st.integers(0, len(contents) - 1))
    if data.draw(st.booleans()):
        contents = contents[:place]
    else:
        contents[place] ^= 1 << data.draw(st.integers(0, 7))
    (folder / "b.npz").write_bytes(contents)
    try:
        mined = MinedMatches.open(folder / "b.npz")
    except CairnError:
        return
    np.testing.assert_array_equal(mined.patches, whole.patches)
    np.testing.assert_array_equal(mined.positive_patches, whole.positive_patches)
    assert [mined.negatives(x).tolist() for x in range(3)] == [whole.negatives(x).tolist() for x in range(3)]


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.integers(2, 40), st.floats(0.05, 0.6))
def test_every_image_pair_is_on_one_side(seed: int, photos: int, number: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    pairs = np.unique(np.sort(rng.integers(0, photos, (number, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    if len(pairs) < 2:
        return
    sizes = rng.integers(1, 100, len(pairs))
    train, held_out = split_image_pairs(pairs, sizes, share, np.random.default_rng(1))
    assert sorted([*train, *held_out]) == list(range(len(pairs)))
    assert len(train) and len(held_out)
    again = split_image_pairs(pairs, sizes, share, np.random.default_rng(1))
    assert [part.tolist() for part in again] == [train.tolist(), held_out.tolist()]


def test_groups_of_photos_are_not_divided_where_there_are_many() -> None:
    # Twenty places, each seen in four photos by all of their six pairs.
    place = np.array([[i, j] for i in range(4) for j in range(i)])
    pairs = np.concatenate([place + 4 * number for number in range(20)])
    for seed in range(5):
        train, held_out = split_image_pairs(pairs, np.ones(len(pairs)), 0.2, np.random.default_rng(seed))
        assert not set(pairs[train].ravel()) & set(pairs[held_out].ravel())
        assert len(held_out) == 24


def test_one_group_is_divided_so_that_few_photos_serve_both_sides() -> None:
    chain = np.column_stack([np.arange(50), np.arange(1, 51)])
    train, held_out = split_image_pairs(chain, np.ones(50), 0.2, np.random.default_rng(0))
    assert len(held_out) == 10
    assert np.ptp(held_out) == 9  # one stretch of it, which shares the photos at its two ends
    assert len(set(chain[train].ravel()) & set(chain[held_out].ravel())) <= 2


def test_a_single_image_pair_cannot_be_divided() -> None:
    with pytest.raises(CairnError, match="1 was mined"):
        split_image_pairs(np.array([[0, 1]]), np.ones(1), 0.2, np.random.default_rng(0))
