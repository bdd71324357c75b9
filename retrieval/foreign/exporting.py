"""Photos, features and matches for structure from motion: lists of pairs, hloc's HDF5 file, COLMAP's database."""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.arrays import save_bytes, temporary_path
from index.errors import CairnError
from index.extras import require_h5py
from index.text import shown

_ORIGIN = 0.5  # coordinate of the centre of the top-left pixel in COLMAP
_PAIRS = 2_147_483_647  # a pair's id is that of its first image times this, plus that of its second
_SIMPLE_RADIAL = 2  # COLMAP's camera model: focal length, centre, one coefficient of distortion
_FOCAL = 1.2  # default focal length in units of the longer side, as in COLMAP
_UNCALIBRATED, _PLANAR_OR_PANORAMIC = 3, 6  # COLMAP's configurations of two views
_BYTES = 128  # entries of a descriptor that COLMAP compares

# The documented tables of COLMAP 3: later versions extend them when they open the file.
_SCHEMA = """
CREATE TABLE cameras (camera_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, model INTEGER NOT NULL,
    width INTEGER NOT NULL, height INTEGER NOT NULL, params BLOB, prior_focal_length INTEGER NOT NULL);
CREATE TABLE images (image_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT NOT NULL UNIQUE,
    camera_id INTEGER NOT NULL, prior_qw REAL, prior_qx REAL, prior_qy REAL, prior_qz REAL,
    prior_tx REAL, prior_ty REAL, prior_tz REAL,
    CONSTRAINT image_id_check CHECK(image_id >= 0 and image_id < 2147483647),
    FOREIGN KEY(camera_id) REFERENCES cameras(camera_id));
CREATE UNIQUE INDEX index_name ON images(name);
CREATE TABLE keypoints (image_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL, data BLOB,
    FOREIGN KEY(image_id) REFERENCES images(image_id) ON DELETE CASCADE);
CREATE TABLE descriptors (image_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL,
    data BLOB, FOREIGN KEY(image_id) REFERENCES images(image_id) ON DELETE CASCADE);
CREATE TABLE matches (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL, data BLOB);
CREATE TABLE two_view_geometries (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL,
    data BLOB, config INTEGER NOT NULL, F BLOB, E BLOB, H BLOB, qvec BLOB, tvec BLOB);
"""


@dataclass(frozen=True)
class ExportedPhoto:
    """A photo as stored, ignoring the orientation in EXIF, and its features."""

    name: str  # path within the folder of photos, with slashes
    # pixels
    width: int
    height: int
    keypoints: NDArray[np.float32]  # (N, 2) float32: the centre of the top-left pixel at (0, 0)
    # (N, 2, 2) float32: maps from the unit circle to the regions; None if only places are known
    linear: NDArray[np.float32] | None
    descriptors: NDArray[np.floating] | None  # (N, D): None if not stored


@dataclass(frozen=True)
class ExportedPair:
    """Two photos that are matched."""

    # their names
    first: str
    second: str
    # (K, 2) int32: tentative matches: row of the keypoints of the first, row of those of the second
    matches: NDArray[np.int32]
    inliers: NDArray[np.int32]  # (M, 2) int32: those that agree with the geometry; empty without one
    # (3, 3) float64: for pixels of the two stored photos, the centre of the top-left one at (0, 0); a homography only
    # if a plane or a rotation of the camera explains the inliers
    fundamental: NDArray[np.float64] | None = None
    homography: NDArray[np.float64] | None = None


def write_pairs(path: Path, pairs: Iterable[tuple[str, str]]) -> None:
    """Write pairs of names, two a line, as hloc and COLMAP's lists of matches have them."""
    lines = []
    for pair in pairs:
        for name in pair:
            if len(name.split()) != 1 or name.split()[0] != name:
                raise CairnError(
                    "{name} has a space in its name, which a list of pairs cannot hold: rename it, or write {--h5} or "
                    "{--colmap} in its place.",
                    name=shown(name),
                )
        lines.append(" ".join(pair) + "\n")
    check_file(path)
    save_bytes(path, "".join(lines).encode("utf-8", "surrogateescape"))


def check_file(path: Path, new: bool = False) -> None:
    """Raise CairnError if a file cannot be written, or exists and must be new; call it before the work."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise CairnError("{path} is a folder, or in a folder that does not exist: choose another file.", path=path)
    if new and path.exists():
        raise CairnError("{path} already exists: remove it first, or choose another file.", path=path)


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A temporary file next to a path, which replaces it when completely written."""
    check_file(path, new=True)
    temporary = temporary_path(path)
    try:
        yield temporary
        temporary.replace(path)
    except (OSError, UnicodeEncodeError) as error:  # the disk, or a name that is no text
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CairnError("{path} cannot be written ({reason}).", path=path, reason=reason) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_hloc(path: Path, photos: Iterable[ExportedPhoto], pairs: Iterable[ExportedPair]) -> None:
    """Write features and matches into one HDF5 file in hloc's layout, which accepts it for both.

    A photo is the group of its name, with ``keypoints`` (N, 2), ``image_size`` and optionally ``descriptors`` (D, N); a
    pair is the group ``FIRST/SECOND``, slashes in names written as ``-``, with ``matches0`` (N,) int32, the keypoint of
    the second for each of the first or -1, and ``matching_scores0`` (N,) float16: 1 for a match that agrees with the
    geometry, 0.5 for another, 0 for none.
    """
    require_h5py()
    import h5py

    sizes = {}
    with _whole(path) as temporary, h5py.File(temporary, "w", libver="latest") as file:
        for photo in photos:
            group = file.require_group(photo.name)
            group["keypoints"] = photo.keypoints
            group["image_size"] = np.array([photo.width, photo.height])
            if photo.descriptors is not None:
                group["descriptors"] = photo.descriptors.T
            sizes[photo.name] = len(photo.keypoints)
        for pair in pairs:
            group = file.require_group(f"{pair.first.replace('/', '-')}/{pair.second.replace('/', '-')}")
            matches, scores = np.full(sizes[pair.first], -1, np.int32), np.zeros(sizes[pair.first], np.float16)
            for some, score in ((pair.matches, 0.5), (pair.inliers, 1.0)):
                matches[some[:, 0]], scores[some[:, 0]] = some[:, 1], score
            group["matches0"], group["matching_scores0"] = matches, scores


def write_colmap(path: Path, photos: Iterable[ExportedPhoto], pairs: Iterable[ExportedPair]) -> None:
    """Write a database for COLMAP's mapper. Each photo has its own camera (simple radial, with a guessed focal length),
    and keypoints with their shapes; descriptors are written if they have 128 entries, as COLMAP compares no others.
    Pairs have their matches, and with enough inliers their geometry.
    """
    with _whole(path) as temporary, contextlib.closing(sqlite3.connect(temporary)) as database, database:
        database.executescript(_SCHEMA)
        ids: dict[str, int] = {}
        for number, photo in enumerate(photos, 1):
            ids[photo.name] = number
            _write_photo(database, number, photo)
        for pair in pairs:
            _write_pair(database, ids[pair.first], ids[pair.second], pair)


def _write_photo(database: sqlite3.Connection, number: int, photo: ExportedPhoto) -> None:
    camera = np.array([_FOCAL * max(photo.width, photo.height), photo.width / 2, photo.height / 2, 0.0])
    database.execute(
        "INSERT INTO cameras VALUES (?, ?, ?, ?, ?, 0)",
        (number, _SIMPLE_RADIAL, photo.width, photo.height, camera.tobytes()),
    )
    database.execute("INSERT INTO images (image_id, name, camera_id) VALUES (?, ?, ?)", (number, photo.name, number))
    columns = [photo.keypoints.astype(np.float64) + _ORIGIN]
    if photo.linear is not None:
        columns.append(photo.linear.reshape(-1, 4).astype(np.float64))
    _write_array(database, "keypoints", number, np.concatenate(columns, axis=1).astype("<f4"))
    rows = as_bytes(photo.descriptors)
    if rows is not None:
        _write_array(database, "descriptors", number, rows)


def as_bytes(rows: NDArray[np.floating] | None) -> NDArray[np.uint8] | None:
    """Descriptors (N, 128) uint8 in COLMAP's form, unit ones times 512; None if it cannot compare them."""
    if rows is None or rows.shape[1] != _BYTES or not len(rows) or rows.min() < 0:
        return None
    scale = 1.0 if rows.max() > 1 else 512.0
    scaled: NDArray[np.float32] = np.rint(rows.astype(np.float32) * scale)
    return scaled.clip(0, 255).astype(np.uint8)


def _write_pair(database: sqlite3.Connection, first: int, second: int, pair: ExportedPair) -> None:
    # The image of the smaller number comes first in COLMAP; the other way round, everything is turned about.
    turned = first > second
    number = min(first, second) * _PAIRS + max(first, second)
    matches, inliers = ((some[:, ::-1] if turned else some).astype("<u4") for some in (pair.matches, pair.inliers))
    _write_array(database, "matches", number, np.ascontiguousarray(matches))
    if pair.fundamental is None:
        return
    shift = np.array([[1, 0, _ORIGIN], [0, 1, _ORIGIN], [0, 0, 1]])
    back = np.linalg.inv(shift)
    fundamental: NDArray[np.floating] = back.T @ pair.fundamental @ back
    plane: NDArray[np.floating] | None = shift @ pair.homography @ back if pair.homography is not None else None
    if turned:
        fundamental, plane = fundamental.T, np.linalg.inv(plane) if plane is not None else None
    database.execute(
        "INSERT INTO two_view_geometries (pair_id, rows, cols, data, config, F, H) VALUES (?, ?, 2, ?, ?, ?, ?)",
        (
            number,
            len(inliers),
            np.ascontiguousarray(inliers).tobytes(),
            _UNCALIBRATED if plane is None else _PLANAR_OR_PANORAMIC,
            _matrix(fundamental),
            _matrix(plane) if plane is not None else None,
        ),
    )


def _matrix(values: NDArray[np.floating]) -> bytes:
    """A matrix (3, 3) by rows, float64."""
    return np.ascontiguousarray(values, "<f8").tobytes()


def _write_array(database: sqlite3.Connection, table: str, number: int, array: NDArray[np.generic]) -> None:
    database.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", (number, *array.shape, array.tobytes()))
