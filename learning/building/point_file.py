"""Labelled patches around given keypoints with known correspondences."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from index.archive import open_archive
from index.errors import CairnError
from index.progress import Progress
from learning.building.correspondence import Detections, near_pairs
from learning.building.detections import cut, keypoint_frames, keypoint_space, read_full
from learning.building.labelled import Labelled
from learning.building.options import MatchRule
from retrieval.photos.listing import PHOTO_SUFFIXES

_LARGEST_FILE = 1 << 31  # bytes, of the file and of its unpacked contents


@dataclass(frozen=True)
class PointFile:
    """Keypoints of photos, and the 3-D points that they show."""

    names: list[str]  # stems of the photos
    photos: NDArray[np.int64]  # (N,) int64, number of each keypoint's photo
    detections: Detections  # N, in pixels of their photos
    points: NDArray[np.int64]  # (N,) int64
    pairs: NDArray[np.int64]  # (M, 2) int64, numbers of keypoints that match


def read_points(path: Path, min_angle: float = 0.0) -> PointFile:
    """Read a file of correspondences, without pairs of a smaller angle than `min_angle` degrees."""
    names = ("names", "image", "x", "y", "size", "angle", "point", "pairs") + (("pair_angle",) if min_angle > 0 else ())
    try:
        with open_archive(Path(path), _LARGEST_FILE) as archive:
            missing = [name for name in names if f"{name}.npy" not in archive.names]
            arrays = {name: archive.array(name) for name in names if name not in missing}
    except FileNotFoundError:
        raise CairnError(f"There is no file {path}: check the name.") from None
    except CairnError:
        raise
    except Exception as error:  # a damaged archive can fail in any way
        raise CairnError(f"{path} is damaged, or is no .npz file of plain arrays.") from error
    if missing:
        raise CairnError(f"{path} has no array {missing[0]!r}: it needs {', '.join(names)}.")

    number, wanted = arrays["image"].size, arrays["pairs"].size // 2
    shapes: dict[str, tuple[int, ...]] = {name: (number,) for name in ("image", "x", "y", "size", "angle", "point")}
    shapes |= {"pairs": (wanted, 2), "pair_angle": (wanted,), "names": (arrays["names"].size,)}
    for name, array in arrays.items():
        right = array.dtype.kind in ("U" if name == "names" else "iuf")
        if array.shape != shapes[name] or not right:
            raise CairnError(f"{path} is damaged: {name!r} should hold numbers in the shape {shapes[name]}.")
    photos, points, pairs = (arrays[name].astype(np.int64) for name in ("image", "point", "pairs"))
    _check_range(path, "image", photos, len(arrays["names"]))
    _check_range(path, "pairs", pairs, number)
    x, y, size, angle = (arrays[name].astype(np.float64) for name in ("x", "y", "size", "angle"))
    if not (np.isfinite(x + y + size + angle).all() and (size > 0).all()):
        raise CairnError(f"{path} is damaged: positions, sizes and angles should be finite, and sizes positive.")
    if points.min(initial=0) < 0 or (points[pairs[:, 0]] != points[pairs[:, 1]]).any():
        raise CairnError(f"{path} is damaged: the two keypoints of a pair should be of the same point, from 0 on.")
    if min_angle > 0:
        pairs = pairs[arrays["pair_angle"] >= min_angle]
    detections = Detections(np.stack([x, y], axis=1), keypoint_frames(size, angle))
    return PointFile([str(name) for name in arrays["names"]], photos, detections, points, pairs)


def _check_range(path: Path, name: str, numbers: NDArray[np.int64], limit: int) -> None:
    if numbers.min(initial=0) < 0 or numbers.max(initial=-1) >= limit:
        raise CairnError(f"{path} is damaged: {name!r} should hold numbers from 0 to {limit - 1}.")


def label_points(
    file: PointFile, folder: Path, pattern: str, rule: MatchRule, pixels: BinaryIO, progress: Progress
) -> Labelled:
    """Cut the patches of keypoints that are in a pair, write them to `pixels`, and label them by their points.

    Matches are the given pairs. Non-matches are pairs of different points, unless their keypoints are within twice the
    rule's tolerances in some photo.
    """
    wanted = [number for number, name in enumerate(file.names) if fnmatchcase(name, pattern)]
    if not wanted:
        raise CairnError(f"No photo has a name like {pattern!r}; the file's are {', '.join(file.names[:3])}, ….")
    paths = _find_photos(folder, [file.names[number] for number in wanted])
    in_use = np.isin(file.photos, wanted)
    pairs = file.pairs[in_use[file.pairs].all(axis=1)]
    paired = np.zeros(len(file.points), bool)
    paired[pairs] = True

    used: list[NDArray[np.int64]] = []
    close: list[NDArray[np.int64]] = []
    for number, path in zip(wanted, paths, strict=True):
        photo = read_full(path)
        here = np.flatnonzero(file.photos == number)
        a, b = near_pairs(file.detections.take(here), file.detections.take(here), rule)
        close.append(np.stack([here[a], here[b]], axis=1))
        here = here[paired[here]]
        inside_rows, patches = cut(photo, keypoint_space(photo), file.detections.take(here))
        pixels.write(patches.tobytes())
        used.append(here[inside_rows])
        progress("detect", len(used), len(wanted))

    rows = np.concatenate(used)
    place = np.full(len(file.points), -1)
    place[rows] = np.arange(len(rows))
    matches = place[pairs]
    points = file.points[rows]
    # A pair of points as one number, for lookups; a point is near itself.
    distinct, short = np.unique(file.points, return_inverse=True)
    near = short[np.concatenate(close)]
    near_codes = np.unique(near[:, 0] * len(distinct) + near[:, 1])
    short = short[rows]
    return Labelled(
        points,
        np.repeat(np.arange(len(used)), [len(one) for one in used]),
        np.zeros(len(rows), np.int64),
        file.detections.take(rows),
        matches[(matches >= 0).all(axis=1)],
        lambda first, second: ~np.isin(short[first] * len(distinct) + short[second], near_codes),
        len(wanted),
        int(in_use.sum()) - len(rows),
    )


def _find_photos(folder: Path, names: list[str]) -> list[Path]:
    if not Path(folder).is_dir():
        raise CairnError("There is no folder {folder}: name the folder of the photos with {--photos}.", folder=folder)
    there = {path.stem: path for path in sorted(Path(folder).iterdir()) if path.suffix.lower() in PHOTO_SUFFIXES}
    for name in names:
        if name not in there:
            raise CairnError(f"{folder} has no photo {name}: it needs all that the correspondences name.")
    return [there[name] for name in names]
