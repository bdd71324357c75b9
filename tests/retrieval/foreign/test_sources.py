"""The same features from every format that is read, and one sentence for all that is wrong with them."""

import contextlib
import os
import pickle
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.errors import CairnError
from retrieval.foreign.contract import (
    AFFINE,
    ELLIPSES,
    ORIENTED,
    POINTS,
    SCALES,
    Entry,
    FeaturesNeeded,
    names_of,
)
from retrieval.foreign.opening import open_features, roots_of
from retrieval.regions.geometry import ellipses_of_shapes
from tests.support.feature_files import KEYPOINTS, LINEAR, RNG, ROWS, D, N, write_colmap, write_hloc, write_npz

PHOTO = Path("/photos/a/1.jpg")


def read(path: Path, names: tuple[str, ...] = ("photos/a/1.jpg", "a/1.jpg")) -> Entry:
    return open_features(path).entry(PHOTO, names)


def test_all_formats_give_the_same_features(tmp_path: Path) -> None:
    lafs = np.concatenate([LINEAR, KEYPOINTS[:, :2, None]], axis=2)
    frames = np.column_stack([KEYPOINTS[:, :2], LINEAR.reshape(N, 4)])
    given: dict[str, tuple[str, Entry]] = {
        "npz": (ORIENTED, read(write_npz(tmp_path, keypoints=KEYPOINTS, descriptors=ROWS.T))),
        "lafs": (AFFINE, read(write_npz(tmp_path, lafs=lafs[None], descriptors=ROWS[None]))),
        "frames": (AFFINE, read(write_npz(tmp_path, frames=frames, descriptors=ROWS))),
        "ellipses": (
            ELLIPSES,
            read(write_npz(tmp_path, frames=ellipses_of_shapes(KEYPOINTS[:, :2], LINEAR), descriptors=ROWS)),
        ),
        "hloc": (
            ORIENTED,
            read(
                write_hloc(
                    tmp_path,
                    keypoints=KEYPOINTS[:, :2],
                    scales=KEYPOINTS[:, 2],
                    oris=np.rad2deg(KEYPOINTS[:, 3]),
                    descriptors=ROWS.T,
                    scores=np.ones(N, np.float16),
                    image_size=np.array([64, 64]),
                )
            ),
        ),
        # COLMAP's top-left pixel has its centre at (0.5, 0.5).
        "colmap": (ORIENTED, read(write_colmap(tmp_path, KEYPOINTS + np.array([0.5, 0.5, 0, 0]), ROWS))),
    }
    for name, (geometry, entry) in given.items():
        assert entry.geometry == geometry, name
        np.testing.assert_allclose(entry.centres, KEYPOINTS[:, :2], atol=1e-5)
        assert np.array_equal(entry.descriptors, ROWS), name
        if name == "ellipses":  # which do not tell the turn
            np.testing.assert_allclose(
                entry.linear @ entry.linear.transpose(0, 2, 1), LINEAR @ LINEAR.transpose(0, 2, 1), rtol=1e-4, atol=1e-4
            )
        else:
            np.testing.assert_allclose(entry.linear, LINEAR, atol=1e-4)
    assert given["hloc"][1].size == given["colmap"][1].size == (64, 64)
    assert {name for name, (_, entry) in given.items() if entry.is_as_stored} == {"hloc", "colmap"}
    (tmp_path / "database.db").unlink()
    entry = read(write_colmap(tmp_path, frames + np.array([0.5, 0.5, 0, 0, 0, 0]), ROWS))
    assert entry.geometry == AFFINE and entry.is_as_stored
    np.testing.assert_allclose(entry.linear, LINEAR, atol=1e-4)
    assert read(write_npz(tmp_path, keypoints=KEYPOINTS[:, :2], descriptors=ROWS)).geometry == POINTS
    assert read(write_npz(tmp_path, keypoints=KEYPOINTS[:, :3], descriptors=ROWS)).geometry == SCALES
    square = np.arange(N * N, dtype=np.float32).reshape(N, N)
    assert np.array_equal(read(write_npz(tmp_path, keypoints=KEYPOINTS, descriptors=square)).descriptors, square)
    (tmp_path / "feats.h5").unlink()
    assert np.array_equal(
        read(write_hloc(tmp_path, keypoints=KEYPOINTS[:, :2], descriptors=square)).descriptors, square.T
    )
    for name in ("keypoints", "frames", "lafs"):  # an image that shows nothing
        for shape in ((0,), (0, 0), (0, 2), (0, 2, 3)):
            arrays = {name: np.zeros(shape), "descriptors": np.zeros((0, 8))}
            assert len(read(write_npz(tmp_path, **arrays))) == 0


def broken(**instead: Any) -> Callable[[Path], Path]:
    """Writes features of which one array is another, or is not there."""

    def write(folder: Path) -> Path:
        arrays = {"keypoints": KEYPOINTS, "descriptors": ROWS} | instead
        return write_npz(folder, **{name: array for name, array in arrays.items() if array is not None})

    return write


WRONG: dict[str, tuple[Callable[[Path], Path], str]] = {
    "nothing of a place": (broken(keypoints=None), "neither keypoints nor frames nor lafs"),
    "one column": (broken(keypoints=KEYPOINTS[:, :1]), r"shape \(12, 1\)"),
    "flat": (broken(keypoints=KEYPOINTS[:, 0]), "shape"),
    "not finite": (broken(keypoints=np.where(KEYPOINTS > 50, np.nan, KEYPOINTS)), "not finite"),
    "no scale": (broken(keypoints=KEYPOINTS * [1, 1, 0, 1]), "scale that is not more than 0"),
    "vast": (broken(keypoints=KEYPOINTS * [1, 1, 1e200, 1]), "far too small or too large"),
    "tiny": (broken(keypoints=KEYPOINTS * [1, 1, 1e-30, 1]), "far too small or too large"),
    "no region": (broken(frames=np.tile([5.0, 5, 1e-320, 0, 1e300], (N, 1))), "no ellipse|far too small"),
    "a line": (broken(lafs=np.tile(np.array([[1e2, 0, 5], [0, 1e-2, 5]]), (N, 1, 1))), "100 times as long"),
    "degrees": (broken(keypoints=KEYPOINTS * [1, 1, 1, 57.3]), "radians"),
    "no descriptors": (broken(descriptors=None), "no descriptors"),
    "of others": (broken(descriptors=ROWS[1:]), r"shape \(11, 128\) where it has 12 keypoints"),
    "infinite": (broken(descriptors=np.where(ROWS > 250, np.inf, 1.0)), "not finite"),
    "zeros": (broken(descriptors=np.zeros((N, D), np.float32)), "all its descriptors are zeros"),
    "no bits": (broken(descriptors=np.zeros((N, D), bool)), "all its descriptors are zeros"),
    "texts": (broken(descriptors=np.full((N, D), "a")), "no numbers"),
    "objects": (broken(descriptors=np.full((N, D), None)), "cannot be read"),
    "mirrored": (broken(lafs=np.tile(np.array([[1.0, 0, 5], [0, -1, 5]]), (N, 1, 1))), "mirrored"),
    "no ellipse": (broken(frames=np.tile([5.0, 5, 1, 2, 1], (N, 1))), "no ellipse"),
    "scores": (broken(scores=np.ones(3)), "3 scores for 12 keypoints"),
    "size": (broken(image_size=np.array([0, 5])), "image_size"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_features_is_said_in_one_sentence(name: str, tmp_path: Path) -> None:
    write, reason = WRONG[name]
    with pytest.raises(CairnError, match=reason) as caught:
        read(write(tmp_path))
    assert "\n" not in str(caught.value) and "a/1.npz" in str(caught.value)


def test_damaged_files_are_refused_and_nothing_is_unpickled(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "unpickled",))

    folder = write_npz(tmp_path, keypoints=KEYPOINTS, descriptors=ROWS)
    path = folder / "a" / "1.npz"
    for contents in (b"", b"PK", path.read_bytes()[:-40], pickle.dumps(Evil())):
        path.write_bytes(contents)
        with pytest.raises(CairnError, match="damaged"):
            read(folder)
    np.savez(path, keypoints=KEYPOINTS, descriptors=np.array([Evil()], object))
    with zipfile.ZipFile(path) as file:
        assert "descriptors.npy" in file.namelist()
    with pytest.raises(CairnError, match="damaged"):
        read(folder)
    assert not (tmp_path / "unpickled").exists()

    hloc = write_hloc(tmp_path, keypoints=KEYPOINTS[:, :2], descriptors=ROWS.T)
    colmap = write_colmap(tmp_path, KEYPOINTS, ROWS)
    for whole in (hloc, colmap):
        contents = whole.read_bytes()
        read(whole)
        with pytest.raises(CairnError, match="no features of it"):
            read(whole, ("b/1.jpg", "1.jpg"))
        whole.write_bytes(contents[: len(contents) // 3])
        with pytest.raises(CairnError, match="damaged"):
            read(whole)
        for place in range(64, len(contents), len(contents) // 60):  # flipped bytes: refused, or read, and no more
            whole.write_bytes(contents[:place] + bytes([contents[place] ^ 0xFF]) + contents[place + 1 :])
            try:
                read(whole)
            except CairnError as error:
                assert "\n" not in str(error)
    hloc.unlink()
    arrays = {"keypoints": KEYPOINTS[:, :2], "descriptors": ROWS.T, "scales": np.float32(2)}
    with pytest.raises(CairnError, match="one scale"):
        read(write_hloc(tmp_path, **arrays))
    colmap.unlink()
    write_colmap(tmp_path, KEYPOINTS, ROWS)
    with sqlite3.connect(colmap) as database:
        database.execute("UPDATE descriptors SET data = ?", ("a" * (N * D),))  # a text in place of bytes
    with pytest.raises(CairnError, match="damaged"):
        read(colmap)
    other = tmp_path / "notes.txt"
    other.write_text("no features")
    for odd in (other, tmp_path / "nowhere"):
        with pytest.raises(CairnError, match=r"does not contain features|There are no features"):
            open_features(odd)


def test_hdf5_leads_nowhere_else(tmp_path: Path) -> None:
    import h5py

    (tmp_path / "elsewhere").mkdir()
    secret = write_hloc(tmp_path / "elsewhere", keypoints=KEYPOINTS[:, :2], descriptors=ROWS.T)
    path = tmp_path / "feats.h5"
    with h5py.File(path, "w") as file:
        file["linked"] = h5py.ExternalLink(str(secret), "a/1.jpg")
        group = file.create_group("1.jpg")
        group["keypoints"] = KEYPOINTS[:, :2]
        group["descriptors"] = h5py.ExternalLink(str(secret), "a/1.jpg/descriptors")
    for name, reason in (("linked", "no features of it"), ("1.jpg", "no array of numbers")):
        with pytest.raises(CairnError, match=reason):
            read(path, (name,))


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIEW keypoints AS SELECT 1 AS image_id, 1 AS rows, 2 AS cols, zeroblob(8) AS data",
        "CREATE TABLE keypoints (image_id, rows, cols, data BLOB AS (zeroblob(1 << 30)))",
        "CREATE VIRTUAL TABLE keypoints USING fts4(image_id, rows, cols, data)",
    ],
)
def test_colmaps_tables_hold_values_alone(tmp_path: Path, sql: str) -> None:
    path = write_colmap(tmp_path, KEYPOINTS, ROWS)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("DROP TABLE keypoints")
        database.execute(sql)
        database.commit()
    with pytest.raises(CairnError, match="no database of COLMAP's"):
        read(path)


def test_nothing_beside_colmaps_database_is_waited_for(tmp_path: Path) -> None:
    path = write_colmap(tmp_path, KEYPOINTS, ROWS)
    for suffix in ("-journal", "-wal"):
        os.mkfifo(f"{path}{suffix}")
        with pytest.raises(CairnError, match="not a regular file"):
            read(path)
        os.unlink(f"{path}{suffix}")  # noqa: PTH108
    assert read(path)


def test_a_photo_takes_no_other_photos_features(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    (photos / "a").mkdir(parents=True)
    photo = photos / "a" / "1.jpg"
    photo.touch()
    names = list(names_of(photo, [photos.resolve()]))
    assert names[-1] == "a/1.jpg" and names[0].endswith("photos/a/1.jpg") and "1.jpg" not in names
    assert list(names_of(photo, []))[-1] == "1.jpg"
    folder = write_npz(tmp_path, keypoints=KEYPOINTS, descriptors=ROWS)
    source = open_features(folder)
    assert len(source.entry(photo, names)) == N
    for twin in ("1.PNG", "1.png"):  # whose features would be in a/1.npz as well
        (photos / "a" / twin).touch()
        with pytest.raises(CairnError, match=rf"(?i)1\.jpg or of {twin}.*1\.jpg\.npz"):
            source.entry(photo, names)
    assert roots_of([photo, photo, photos / "a", photos]) == [(photos / "a").resolve(), photos.resolve()]
    needed = pickle.loads(pickle.dumps(FeaturesNeeded()))  # as processes send it
    assert type(needed) is FeaturesNeeded and "--features" in str(needed)
    (folder / "a" / "1.npz").rename(folder / "a" / "1.jpg.npz")
    assert len(source.entry(photo, names)) == N
    with pytest.raises(CairnError, match="no features of it"):
        source.entry(photos / "a" / "1.png", ["a/1.png"])


COMPOSED, APART = "Reise/Caf\u00e9.JPG", "Reise/Cafe\u0301.JPG"
WRITERS: dict[str, Callable[[Path, str], Path]] = {
    "npz": lambda folder, name: write_npz(folder, f"{name}.npz", keypoints=KEYPOINTS, descriptors=ROWS),
    "npz without ending": lambda folder, name: write_npz(
        folder, f"{name.rpartition('.')[0]}.npz", keypoints=KEYPOINTS, descriptors=ROWS
    ),
    "hloc": lambda folder, name: write_hloc(folder, name, keypoints=KEYPOINTS[:, :2], descriptors=ROWS.T),
    "colmap": lambda folder, name: write_colmap(folder, KEYPOINTS, ROWS, name),
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    ("stored", "photo"),
    [
        (APART, COMPOSED),
        (COMPOSED, APART),
        ("Reise\\Caf\u00e9.JPG", COMPOSED),
        ("reise\\cafe\u0301.jpg", COMPOSED),
        (COMPOSED, "reise/caf\u00c9.jpg"),
    ],
)
def test_names_are_those_of_photos_however_they_are_written(tmp_path: Path, kind: str, stored: str, photo: str) -> None:
    path = tmp_path / "photos" / photo
    path.parent.mkdir(parents=True)
    path.touch()
    source = open_features(WRITERS[kind](tmp_path, stored))
    assert len(source.entry(path, list(names_of(path, [tmp_path / "photos"])))) == N
    other = path.with_name("other.jpg")
    with pytest.raises(CairnError, match="no features of it"):
        source.entry(other, list(names_of(other, [tmp_path / "photos"])))


@pytest.mark.parametrize("kind", WRITERS)
def test_names_that_differ_in_case_alone_are_taken_by_no_other_photo(tmp_path: Path, kind: str) -> None:
    lower, upper = (tmp_path / "photos" / name / "1.jpg" for name in ("a", "A"))
    for path in (lower, upper):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    if lower.samefile(upper):
        pytest.skip("the file system takes both for one")
    source = open_features(WRITERS[kind](tmp_path, "a/1.jpg"))
    assert len(source.entry(lower, ["a/1.jpg"])) == N
    with pytest.raises(CairnError, match="no features of it"):
        source.entry(upper, ["A/1.jpg"])


@pytest.mark.parametrize("kind", ["npz", "hloc"])
def test_names_that_may_be_either_of_two_are_refused(tmp_path: Path, kind: str) -> None:
    for name in (APART, COMPOSED):
        source = open_features(WRITERS[kind](tmp_path, name))
    with pytest.raises(CairnError, match="may both be its features"):
        source.entry(tmp_path / "photos" / "reise" / "caf\u00e9.jpg", ["reise/caf\u00e9.jpg"])


def test_colmaps_descriptors_are_bytes_or_floats(tmp_path: Path) -> None:
    path = write_colmap(tmp_path, KEYPOINTS, ROWS)

    def store(rows: np.ndarray, columns: int, kind: int | None = None) -> None:
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            if kind is not None:
                with contextlib.suppress(sqlite3.OperationalError):
                    database.execute("ALTER TABLE descriptors ADD COLUMN type INTEGER NOT NULL DEFAULT 0")
                database.execute("UPDATE descriptors SET type = ?", (kind,))
            database.execute("UPDATE descriptors SET cols = ?, data = ?", (columns, rows.tobytes()))

    floats = RNG.normal(size=(N, D)).astype("<f4")
    store(floats, D)  # as other programs fill it
    assert np.array_equal(read(path).descriptors, floats)
    for kind, rows, columns in (
        (0, ROWS, D),
        (-1, ROWS, D),
        (1, floats, 4 * D),
        (2, floats, 4 * D),
        (9, floats, 4 * D),
    ):
        store(rows, columns, kind)
        found = read(path).descriptors
        assert np.array_equal(found, rows) and found.dtype == rows.dtype, kind
    for rows, columns, kind in ((ROWS[:, :127], 127, 1), (floats, D - 1, 1), (floats * np.float32("nan"), 4 * D, 1)):
        store(rows, columns, kind)
        with pytest.raises(CairnError, match=r"damaged|not finite"):
            read(path)
    store(np.zeros_like(ROWS), D, 0)  # as hloc fills it for matches of its own
    with pytest.raises(CairnError, match="all its descriptors are zeros"):
        read(path)
