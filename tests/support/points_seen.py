"""3-D points seen by known cameras: blank photos, and an HDF5 file of another program's features."""

from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np
from PIL import Image

SIZE = 640, 480
FOCAL = 600.0
CALIBRATION = np.array([[FOCAL, 0, 319.5], [0, FOCAL, 239.5], [0, 0, 1]])  # pixel centres at integers


@dataclass(frozen=True)
class Seen:
    """Two objects that cameras stand around."""

    photos: Path
    features: Path
    cameras: dict[str, np.ndarray]  # (3, 4), by the photo's name: from space to pixels
    keypoints: dict[str, np.ndarray]  # (N, 2) float32, in pixels of the stored photo
    points: dict[str, np.ndarray] = field(default_factory=dict)  # (N,): number of the point, -1 for a point seen once

    def fundamental(self, one: str, other: str) -> np.ndarray:
        """By the cameras alone (Hartley & Zisserman, equation 9.1)."""
        first, second = self.cameras[one], self.cameras[other]
        centre = np.linalg.svd(first)[2][-1]
        x, y, z = second @ centre
        matrix = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ second @ np.linalg.pinv(first)
        return matrix / np.linalg.norm(matrix)


def see_points(folder: Path, views: tuple[int, ...] = (5, 3), points: int = 220) -> Seen:
    """Make photos of objects: numbers of photos of each, by cameras on an arc."""
    rng = np.random.default_rng(7)
    photos, features = folder / "photos", folder / "features.h5"
    seen = Seen(photos, features, {}, {})
    with h5py.File(features, "w") as file:
        for thing, number in enumerate(views):
            places = rng.uniform(-1, 1, (points, 3)) * (1.2, 0.9, 0.8)
            described = rng.normal(size=(points, 32))
            for view in range(number):
                name = f"{'ab'[thing]}/{view}.png"
                turn = np.deg2rad(9 * (view - number / 2))
                rotation = np.array([[np.cos(turn), 0, -np.sin(turn)], [0, 1, 0], [np.sin(turn), 0, np.cos(turn)]])
                camera = CALIBRATION @ np.column_stack([rotation, [0.03 * view, -0.05 * view, 4.0]])
                shown = np.column_stack([places, np.ones(points)]) @ camera.T
                pixels = shown[:, :2] / shown[:, 2:]
                order = rng.permutation(points)[: points - 10 * view]
                stray = rng.uniform((0, 0), np.subtract(SIZE, 1), (30, 2))
                seen.cameras[name] = camera
                seen.keypoints[name] = np.concatenate([pixels[order], stray]).astype(np.float32)
                seen.points[name] = np.concatenate([order, np.full(30, -1)])
                rows = np.concatenate([described[order], rng.normal(size=(30, 32))])
                rows += rng.normal(scale=0.1, size=rows.shape)
                group = file.create_group(name)
                group["keypoints"] = seen.keypoints[name]
                group["descriptors"] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T.astype(np.float32)
                path = photos / name
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.new("L", SIZE, 10 * view + 100 * thing).save(path)
    return seen
