"""Tiny sets in the layouts of the published ones, including file names, prefixes and odd files, with drawn photos."""

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from learning.patches.phototour import write_bitmaps, write_info

OXFORD = (
    *("all_souls", "ashmolean", "balliol", "bodleian", "christ_church", "cornmarket", "hertford", "keble"),
    *("magdalen", "pitt_rivers", "radcliffe_camera"),
)
PARIS = (
    *("defense", "eiffel", "invalides", "louvre", "moulinrouge", "museedorsay", "notredame", "pantheon"),
    *("pompidou", "sacrecoeur", "triomphe"),
)
VIEWS = 9  # photos of a landmark
QUERIES = 5  # of a landmark
SIDE = 240  # pixels of a photo
_BOX = (30, 30, 210, 210)


def write_all(root: Path) -> None:
    """Write PhotoTour, Oxford5K, Paris6K, Flickr100K, and Revisited with its distractors below a folder."""
    for number, name in enumerate(("liberty", "notredame", "yosemite")):
        write_phototour(root / "phototour" / name, number)
    write_phototour(root / "phototour" / "liberty_harris", 3)
    write_oxford(root / "oxford5k")
    write_paris(root / "paris6k")
    write_flickr(root / "flickr100k")
    (root / "revisitop1m" / "jpg").mkdir(parents=True)
    for number in range(3):
        cv2.imwrite(str(root / "revisitop1m" / "jpg" / f"{number}.jpg"), views(800 + number)[0])
    write_revisited(root)


def write_phototour(folder: Path, seed: int, points: int = 128, views: int = 4) -> None:
    """Write labelled patches: some views of each point, slightly different in position, light and noise."""
    folder.mkdir(parents=True)
    generator = np.random.default_rng(seed)
    patches = np.empty((points * views, 64, 64), np.uint8)
    for point in range(points):
        picture = texture(generator, 96)
        for view in range(views):
            angle, scale = generator.normal(0, 6), 1 + generator.normal(0, 0.05)
            turn = cv2.getRotationMatrix2D((48.0, 48.0), float(angle), float(scale))
            turn[:, 2] += generator.normal(0, 1.5, 2)
            seen = cv2.warpAffine(picture, turn, (96, 96), borderMode=cv2.BORDER_REFLECT)[16:80, 16:80]
            light = generator.uniform(0.7, 1.2) * seen + generator.normal(0, 5) + generator.normal(0, 6, seen.shape)
            patches[point * views + view] = np.clip(light, 0, 255)
    write_bitmaps(folder, patches)
    of = np.repeat(np.arange(points), views)
    write_info(folder, of, np.tile(np.arange(views), points))
    half = points // 2
    # The published sets draw training and test pairs from the same patches.
    _write_pairs(folder / "m50_500000_500000_0.txt", of, generator, points * 3)
    _write_pairs(folder / "m50_200000_200000_0.txt", of, generator, points)
    _write_pairs(folder / "m50_100000_100000_0.txt", of, generator, half * 3)


def _write_pairs(path: Path, of: NDArray[np.int64], generator: np.random.Generator, number: int) -> None:
    """Write equally many matches and others: patch, point, 0, patch, point, 0, 0."""
    rows: list[tuple[int, int]] = []
    while len(rows) < number:
        one, other = generator.integers(len(of), size=2)
        if one != other and of[one] == of[other]:
            rows.append((int(one), int(other)))
    while len(rows) < 2 * number:
        one, other = generator.integers(len(of), size=2)
        if of[one] != of[other]:
            rows.append((int(one), int(other)))
    lines = [f"{one} {of[one]} 0 {other} {of[other]} 0 0" for one, other in rows]
    path.write_text("\n".join(lines) + "\n")


def write_oxford(folder: Path) -> None:
    """Write Oxford5K: photos in one folder, ground truth with the prefix ``oxc1_`` in queries."""
    photos, ground_truth = folder / "oxbuild_images", folder / "gt_files_170407"
    photos.mkdir(parents=True)
    ground_truth.mkdir()
    for number, name in enumerate(OXFORD):
        stems = [f"{name}_{13 + view:06d}" for view in range(VIEWS)]
        for stem, view in zip(stems, views(100 + number), strict=True):
            cv2.imwrite(str(photos / f"{stem}.jpg"), view)
        _write_queries(ground_truth, name, stems, "oxc1_")
    for number in range(8):
        cv2.imwrite(str(photos / f"oxford_{number:06d}.jpg"), views(500 + number)[0])
    cv2.imwrite(str(photos / "oxford_000099.jpg"), np.full((SIDE, SIDE), 128, np.uint8))  # it has no feature


def write_paris(folder: Path) -> None:
    """Write Paris6K: a folder for each landmark, and two of the known corrupt files."""
    ground_truth = folder / "paris_120310"
    ground_truth.mkdir(parents=True)
    for number, name in enumerate(PARIS):
        photos = folder / "paris" / name
        photos.mkdir(parents=True)
        stems = [f"paris_{name}_{13 + view:06d}" for view in range(VIEWS)]
        for stem, view in zip(stems, views(200 + number), strict=True):
            cv2.imwrite(str(photos / f"{stem}.jpg"), view)
        _write_queries(ground_truth, name, stems, "")
    for name in ("louvre_000136", "pantheon_000284"):
        (folder / "paris" / name.partition("_")[0] / f"paris_{name}.jpg").write_bytes(b"no photo")


def write_flickr(folder: Path) -> None:
    """Write Flickr100K: a folder for each tag; with a duplicate name, and a name of Oxford5K."""
    for tag, names in (
        ("abbey", ("000001", "000002", "all_souls_000013")),
        ("zoo", ("000001", "000003")),
    ):
        (folder / "oxc1_100k" / tag).mkdir(parents=True)
        for number, name in enumerate(names):
            photo = views(900 + 10 * len(tag) + number)[0]
            cv2.imwrite(str(folder / "oxc1_100k" / tag / f"{name}.jpg"), photo)


def write_revisited(root: Path) -> None:
    """Write the ground truth of Revisited: pickled lists of numbers of photos, as it was published."""
    for name, landmarks, prefix in (("roxford5k", OXFORD, ""), ("rparis6k", PARIS, "paris_")):
        photos = [f"{prefix}{one}_{13 + view:06d}" for one in landmarks for view in range(1, VIEWS)]
        queries = [f"{prefix}{one}_{13:06d}" for one in landmarks]
        found: list[dict[str, Any]] = []
        for number in range(len(landmarks)):
            own = [number * (VIEWS - 1) + view for view in range(VIEWS - 1)]
            found.append({"bbx": list(map(float, _BOX)), "easy": own[:4], "hard": own[4:7], "junk": own[7:]})
        folder = root / name
        folder.mkdir(parents=True)
        contents = {"gnd": found, "imlist": photos, "qimlist": queries}
        (folder / f"gnd_{name}.pkl").write_bytes(pickle.dumps(contents, protocol=2))


def _write_queries(folder: Path, name: str, stems: Sequence[str], prefix: str) -> None:
    """Write the queries of a landmark: all of its photos except the last are good or ok."""
    for number, stem in enumerate(stems[:QUERIES], start=1):
        query = folder / f"{name}_{number}"
        box = " ".join(f"{value:.1f}" for value in _BOX)
        Path(f"{query}_query.txt").write_text(f"{prefix}{stem} {box}\n")
        Path(f"{query}_good.txt").write_text("".join(f"{one}\n" for one in stems[:6]))
        Path(f"{query}_ok.txt").write_text("".join(f"{one}\n" for one in stems[6:8]))
        Path(f"{query}_junk.txt").write_text(f"{stems[8]}\n")


def views(seed: int) -> list[NDArray[np.uint8]]:
    """Draw photos of one flat object: a texture, seen from several sides before different backgrounds."""
    generator = np.random.default_rng(seed)
    picture = texture(generator, SIDE)
    corners = np.float32([[20, 20], [SIDE - 20, 20], [SIDE - 20, SIDE - 20], [20, SIDE - 20]])
    found = []
    for view in range(VIEWS):
        moved = corners + (generator.normal(0, 5, (4, 2)) if view else 0)
        into = cv2.getPerspectiveTransform(
            np.float32([[0, 0], [SIDE, 0], [SIDE, SIDE], [0, SIDE]]), moved.astype(np.float32)
        )
        photo = texture(generator, SIDE)
        drawn = cv2.warpPerspective(picture, into, (SIDE, SIDE))
        inside = cv2.warpPerspective(np.full((SIDE, SIDE), 255, np.uint8), into, (SIDE, SIDE)) > 0
        photo[inside] = drawn[inside]
        found.append(np.clip(generator.uniform(0.8, 1.1) * photo, 0, 255).astype(np.uint8))
    return found


def texture(generator: np.random.Generator, side: int) -> NDArray[np.uint8]:
    """Draw blobs of several sizes."""
    picture = np.zeros((side, side), np.float32)
    for sigma in (2.0, 4.0, 8.0):
        noise = cv2.GaussianBlur(generator.normal(size=(side, side)).astype(np.float32), (0, 0), sigma)
        picture += noise / noise.std()
    return np.clip(128 + 45 * picture, 0, 255).astype(np.uint8)
