"""Files of features of other programs, of each format that is read."""

import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from retrieval.descriptors.foreign import BYTES, ForeignDescriptor
from retrieval.foreign.converting import features_of, placed
from retrieval.foreign.opening import open_features
from retrieval.regions.geometry import rotations
from tests.support.fuzzing import Sample

RNG = np.random.default_rng(5)
N, D = 12, 128
KEYPOINTS = np.column_stack([RNG.uniform(2, 60, (N, 2)), RNG.uniform(1, 9, N), RNG.uniform(-3, 3, N)]).astype(
    np.float32
)
ROWS = RNG.integers(0, 256, (N, D)).astype(np.uint8)
LINEAR = KEYPOINTS[:, 2, None, None] * rotations(KEYPOINTS[:, 3])


def write_npz(folder: Path, name: str = "a/1.npz", **arrays: Any) -> Path:
    path = folder / "features" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)
    return folder / "features"


def write_hloc(folder: Path, name: str = "a/1.jpg", **arrays: Any) -> Path:
    import h5py

    path = folder / "feats.h5"
    with h5py.File(path, "a", libver="latest") as file:
        group = file.create_group(name)
        for key, array in arrays.items():
            group.create_dataset(key, data=array)
    return path


def write_colmap(folder: Path, keypoints: np.ndarray, rows: np.ndarray, name: str = "a/1.jpg") -> Path:
    path = folder / "database.db"
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE cameras (camera_id INTEGER PRIMARY KEY, model INTEGER, width INTEGER, height INTEGER);"
            "CREATE TABLE images (image_id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, camera_id INTEGER NOT NULL);"
            "CREATE TABLE keypoints (image_id INTEGER PRIMARY KEY, rows INTEGER, cols INTEGER, data BLOB);"
            "CREATE TABLE descriptors (image_id INTEGER PRIMARY KEY, rows INTEGER, cols INTEGER, data BLOB);"
            "INSERT INTO cameras VALUES (1, 2, 64, 64);"
        )
        database.execute("INSERT INTO images VALUES (1, ?, 1)", (name,))
        for table, array in (("keypoints", np.float32(keypoints)), ("descriptors", rows)):
            database.execute(f"INSERT INTO {table} VALUES (1, ?, ?, ?)", (*array.shape, array.tobytes()))
    return path


def samples() -> list[Sample]:
    """One file of each format, with the features of a photo."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_npz(folder, keypoints=KEYPOINTS, descriptors=ROWS, image_size=np.array([64, 64]), scores=np.ones(N))
        write_hloc(folder, keypoints=KEYPOINTS[:, :2], descriptors=ROWS.T, scales=KEYPOINTS[:, 2], oris=KEYPOINTS[:, 3])
        write_colmap(folder, KEYPOINTS, ROWS)
        npz = (folder / "features" / "a" / "1.npz").read_bytes()
        return [{"features": npz}, *({"features": (folder / one).read_bytes()} for one in ("feats.h5", "database.db"))]


def read_features(folder: Path) -> None:
    """Read the features of a photo, and assign them to it."""
    path = folder / "features"
    if path.read_bytes()[:2] == b"PK":
        path = path.rename(folder / "features.npz")
    entry = placed(open_features(path).entry(folder / "1.jpg", ["a/1.jpg"]), 64, 64)
    assert len(entry.centres) == len(entry.descriptors) and np.isfinite(entry.centres).all()
    rows = entry.descriptors
    if len(entry) and rows.dtype == np.uint8:
        features = features_of(entry, ForeignDescriptor("net", rows.shape[1], BYTES), entry.geometry, 64, 64)
        assert len(features) == len(entry) and np.isfinite(features.descriptors).all()
