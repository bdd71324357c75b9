"""Tiny sets in the layouts of Oxford5K, Paris6K, Flickr100K and Revisited Oxford, with their peculiarities."""

import pickle
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from eval.sets.layouts import CORRUPT_PARIS

SIDE = 128
BOX = (20.0, 20.0, 100.0, 100.0)  # where the object is in the first photo of each
SHIFTS = ((0, 0), (4, -3), (-6, 5), (9, 8))  # of the object in each of its photos, pixels
OXFORD = ("all_souls", "keble")
PARIS = ("defense", "eiffel")


@dataclass(frozen=True)
class FakeSets:
    """Paths of the sets."""

    root: Path

    @property
    def oxford_images(self) -> Path:
        """Photos of Oxford5K."""
        return self.root / "oxford5k" / "oxbuild_images"

    @property
    def flickr(self) -> Path:
        """Photos of Flickr100K."""
        return self.root / "flickr100k" / "oxc1_100k"


def texture(seed: int, side: int = SIDE) -> NDArray[np.uint8]:
    """Blobs of several sizes."""
    rng = np.random.default_rng(seed)
    noise = sum(
        size * cv2.GaussianBlur(rng.standard_normal((side, side)).astype(np.float32), (0, 0), size) for size in (2, 4)
    )
    low, high = np.percentile(noise, (1, 99))
    return np.clip(255 * (noise - low) / (high - low), 0, 255).astype(np.uint8)


def write_photo(path: Path, image: NDArray[np.uint8]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), image, [cv2.IMWRITE_JPEG_QUALITY, 95])


def write_object(folder: Path, name: str, seed: int) -> None:
    """Four photos of one object, each at another position before another background."""
    there = texture(seed, 80)
    for number, (right, down) in enumerate(SHIFTS, start=1):
        image = texture(1000 + 10 * seed + number) // 3
        image[20 + down : 100 + down, 20 + right : 100 + right] = there
        write_photo(folder / f"{name}_{number:06}.jpg", image)


def write_truth(folder: Path, objects: tuple[str, ...], prefix: str, photo: str) -> None:
    """Two queries an object: a whole box, and the left half of it."""
    folder.mkdir(parents=True, exist_ok=True)
    x0, y0, x1, y1 = BOX
    for name in objects:
        stems = [f"{photo}{name}_{number:06}" for number in range(1, 5)]
        for number, right in ((1, x1), (2, (x0 + x1) / 2)):
            query = folder / f"{name}_{number}"
            Path(f"{query}_query.txt").write_text(f"{prefix}{stems[0]} {x0} {y0} {right} {y1}\n")
            Path(f"{query}_good.txt").write_text(f"{stems[0]}\n{stems[1]}\n")
            Path(f"{query}_ok.txt").write_text(f"{stems[2]}\n")
            Path(f"{query}_junk.txt").write_text(f"{stems[3]}\n")


def write_sets(root: Path) -> FakeSets:
    """Write all of them."""
    sets = FakeSets(root)
    for seed, name in enumerate(OXFORD):
        write_object(sets.oxford_images, name, seed)
    for number in range(4):
        write_photo(sets.oxford_images / f"oxford_{number:06}.jpg", texture(100 + number))
    write_photo(sets.oxford_images / "oxford_flat.jpg", np.full((SIDE, SIDE), 128, np.uint8))  # without features
    write_truth(root / "oxford5k" / "gt_files_170407", OXFORD, "oxc1_", "")

    paris = root / "paris6k" / "paris"
    for seed, name in enumerate(PARIS, start=10):
        write_object(paris / name, f"paris_{name}", seed)
    for name in CORRUPT_PARIS:
        folder = paris / name.split("_")[1]
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"\xff\xd8\xff" + bytes(20))
    write_truth(root / "paris6k" / "paris_120310", PARIS, "", "paris_")

    # Duplicate stems, and one named in Oxford5K's ground truth.
    for number, name in enumerate(("1/100", "1/101", "2/100", "2/all_souls_000002")):
        write_photo(sets.flickr / f"{name}.jpg", texture(200 + number))

    database = [f"{name}_{number:06}" for name in OXFORD for number in range(2, 5)] + ["oxford_000000", "oxford_000001"]
    entries = [
        {"bbx": list(BOX), "easy": [0], "hard": [1], "junk": [2]},
        {"bbx": list(BOX), "easy": [], "hard": [3, 4], "junk": np.array([5])},
    ]
    content = {"gnd": entries, "imlist": database, "qimlist": [f"{name}_000001" for name in OXFORD]}
    (root / "roxford5k").mkdir()
    (root / "roxford5k" / "gnd_roxford5k.pkl").write_bytes(pickle.dumps(content, 2))
    return sets
