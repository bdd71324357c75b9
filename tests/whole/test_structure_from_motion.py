"""COLMAP reads what `cairn pairs --colmap` writes, and reconstructs from it what exact cameras saw."""

from pathlib import Path

import numpy as np
import pytest

import cairn as library
from tests.support.points_seen import see_points

pytestmark = pytest.mark.slow


def test_colmap_reconstructs_a_scene_from_the_pairs(tmp_path: Path) -> None:
    """By fewer pairs than all, each object by itself, with cameras where they were."""
    pycolmap = pytest.importorskip("pycolmap")
    seen = see_points(tmp_path, views=(8, 6), points=400)
    with library.create(
        tmp_path / "seen.cairn", features=seen.features, photos=seen.photos, words=100, keep_descriptors=True
    ) as collection:
        collection.add(seen.photos, workers=1)
        pairs = collection.pairs(verified=True, workers=1)
        assert len(pairs) < 14 * 13 / 2
        database = pairs.save_colmap(tmp_path / "database.db")
    options = pycolmap.IncrementalPipelineOptions()
    options.num_threads, options.min_model_size = 1, 3
    (tmp_path / "maps").mkdir()
    maps = pycolmap.incremental_mapping(database, seen.photos, tmp_path / "maps", options)
    images = [[image for image in one.images.values() if image.has_pose] for one in maps.values()]
    assert sorted(len(some) for some in images) == [6, 8]
    for some in images:
        assert len({image.name[0] for image in some}) == 1
        found = np.array([image.projection_center() for image in some])
        true = np.array([np.linalg.svd(seen.cameras[image.name])[2][-1] for image in some])
        true = true[:, :3] / true[:, 3:]
        # Up to a similarity, the cameras stand where they stood.
        found, true = found - found.mean(axis=0), true - true.mean(axis=0)
        left, _, right = np.linalg.svd(found.T @ true)
        turned = found @ left @ np.diag([1, 1, np.linalg.det(left @ right)]) @ right
        scale = (turned * true).sum() / (turned**2).sum()
        assert np.abs(turned * scale - true).max() < 0.02 * np.abs(true).max()
