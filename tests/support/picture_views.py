"""Views of photographs that fill the frame, so that no two share a background."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image
from skimage import data

from tests.support.made_once import made_once

SIZE = (400, 300)
LINKED = {"astronaut": 3, "chelsea": 2, "coffee": 2, "rocket": 1}
COPIES = {"astronaut_copy.png": "astronaut_0.png", "chelsea_small.jpg": "chelsea_0.png"}
"""One is the same file under another name, the other is smaller and compressed."""


def write_views(folder: Path, views: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Write views of pictures of scikit-image as OBJECT_0.png, OBJECT_1.png, ….

    Returns
    -------
    dict of str to ndarray
        By file name: affine map (2, 3) from the picture's pixels to the view's.
    """
    maps = {}
    for name, count in views.items():
        picture = cv2.resize(getattr(data, name)(), (500, 400), interpolation=cv2.INTER_AREA)
        for view in range(count):
            angle, scale = np.radians(4 * view), 1 + 0.12 * view
            turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            shift = np.array(SIZE) / 2 - turn @ (250 + 6 * view, 200)
            matrix = np.column_stack([turn, shift])
            photo = cv2.warpAffine(picture, matrix, SIZE, flags=cv2.INTER_AREA)
            Image.fromarray(photo).save(folder / f"{name}_{view}.png", compress_level=1)
            maps[f"{name}_{view}.png"] = matrix
    return maps


@pytest.fixture(scope="session")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of views of `LINKED` and of `COPIES`, next to the folder `photos`: a copy for each process, which
    nobody may change."""
    made = made_once(tmp_path_factory, "linked", _make_linked)
    folder = tmp_path_factory.mktemp("linked")
    (folder / "photos").symlink_to(made.parent / "photos")
    return Path(shutil.copytree(made, folder / made.name))


def _make_linked(folder: Path) -> Path:
    from retrieval.collection.collection import Collection
    from retrieval.collection.options import CollectionOptions
    from retrieval.indexing.adding import index_photos

    photos = folder / "photos"
    photos.mkdir()
    write_views(photos, LINKED)
    shutil.copy(photos / "astronaut_0.png", photos / "astronaut_copy.png")
    Image.open(photos / "chelsea_0.png").resize((280, 210)).save(photos / "chelsea_small.jpg", quality=75)
    with Collection.create(folder / "linked.cairn", CollectionOptions(signature="none")) as collection:
        report = index_photos(collection, [photos])
    assert (report.added, report.failed) == (10, [])
    return folder / "linked.cairn"
