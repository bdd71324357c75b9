"""The route of the objects of a photo: no search is made, and what is told stays in the photo."""

import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from retrieval.catalogue.link_store import begin_links, keep_links
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.groups.links import Link, encode_links
from retrieval.web.app import create_app
from tests.conftest import Indexed
from tests.support.live import ask
from tests.support.patience import patience

MANY = 100_000


@pytest.fixture
def folder(indexed: Indexed, tmp_path: Path) -> Path:
    shutil.copytree(indexed.folder, tmp_path / "copy.cairn")
    return tmp_path / "copy.cairn"


def test_objects_are_told_once_photos_were_grouped(folder: Path) -> None:
    app = create_app(folder)
    with Collection.open(folder) as collection:
        first, second, *_ = collection.catalogue.read(all_indexed)
        assert ask(app, f"/api/photos/{first.number}/objects").json() == {"grouped": False, "objects": []}
        # All of the second photo, half as large, in the middle of the first.
        link = Link(second.number, first.number, 33, (0.5, 0.0, 0.2, 0.0, 0.5, 0.1))
        collection.catalogue.write(begin_links, "kind")
        collection.catalogue.write(keep_links, "kind", {second.number: encode_links([link]), first.number: b""})
    (folder / "groups.json").write_text("{}")
    told = ask(app, f"/api/photos/{first.number}/objects").json()
    (found,) = told["objects"]
    assert told["grouped"] and found["photos"] == [second.number] and found["inliers"] == 33 and not found["whole"]
    assert first.width and first.height and second.width and second.height
    own, theirs = max(first.width, first.height), max(second.width, second.height)
    x0, y0 = 0.2 * own - 0.5, 0.1 * own - 0.5
    x1 = min(x0 + 0.5 * own * second.width / theirs, first.width - 0.5)
    y1 = min(y0 + 0.5 * own * second.height / theirs, first.height - 0.5)
    for corner, expected in zip(found["region"], [[x0, y0], [x1, y0], [x1, y1], [x0, y1]], strict=True):
        assert corner == pytest.approx(expected, abs=0.02)
    assert ask(app, "/api/photos/123456/objects").status_code == 404
    assert ask(app, "/api/photos/x/objects").status_code == 404


@pytest.mark.slow
def test_they_are_told_quickly_of_many_linked_photos(folder: Path) -> None:
    """Two million links of 100,000 photos: no answer reads them all."""
    with Collection.open(folder) as collection:
        numbers = [row.number for row in collection.catalogue.read(all_indexed)]
        maps = (0.5, 0.0, 0.2, 0.0, 0.5, 0.1)
        rng = np.random.default_rng(0)
        others = {number: rng.integers(10**6, 10**6 + MANY, 20).tolist() for number in range(10**6, 10**6 + MANY)}
        others |= dict.fromkeys(numbers, numbers)
        links = {
            number: encode_links([Link(number, found, 30, maps) for found in some]) for number, some in others.items()
        }
        collection.catalogue.write(begin_links, "kind")
        collection.catalogue.write(keep_links, "kind", links)
    (folder / "groups.json").write_text("{}")
    app = create_app(folder)
    times = []
    for _ in range(6):
        began = time.perf_counter()
        assert ask(app, f"/api/photos/{numbers[0]}/objects").status_code == 200
        times.append(time.perf_counter() - began)
    print(times)
    assert max(times[1:]) < patience(0.1), times
