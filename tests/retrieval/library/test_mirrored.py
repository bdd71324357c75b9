"""Mirror images: found where they are asked for, with the map, the region and what matches in pixels of the photo."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import cairn
from index.errors import CairnError
from tests.conftest import Indexed

NAME = "coffee_001.jpg"


@pytest.fixture
def mirrored(indexed: Indexed, tmp_path: Path) -> Path:
    with Image.open(indexed.photos / NAME) as image:
        image.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(tmp_path / "mirrored.png")
    return tmp_path / "mirrored.png"


def test_mirror_images_are_found_where_they_are_asked_for(indexed: Indexed, mirrored: Path) -> None:
    with cairn.open(indexed.folder) as collection:
        assert NAME not in {one.name for one in collection.search(mirrored, turns=1).found}
        answer = collection.search(mirrored, turns=1, mirrored=True)
        found = next(one for one in answer.found if one.name == NAME)
        assert found.mirrored and found.query_index == 0 and len(answer.queries) == 1
        assert found.width is not None and found.height is not None
        flip = np.array([[-1, 0, found.width - 1], [0, 1, 0], [0, 0, 1]])
        assert found.homography is not None
        corners = np.array([[0, 0, 1], [found.width, 0, 1], [0, found.height, 1], [found.width, found.height, 1]])
        places, expected = corners @ found.homography.T, corners @ flip.T
        np.testing.assert_allclose(places[:, :2] / places[:, 2:], expected[:, :2], atol=0.01 * found.width)
        # Upright and mirrored photos are found together.
        both = collection.search(NAME, turns=1, mirrored=True)
        assert [one.mirrored for one in both.found] == [False] * len(both.found) and both[0].name == NAME


def test_what_matches_a_box_in_a_mirror_image_lies_in_it_and_where_the_map_says(
    indexed: Indexed, mirrored: Path
) -> None:
    with cairn.open(indexed.folder) as collection:
        photo = collection.photo(NAME)
        x0, y0, x1, y1 = indexed.boxes["coffee_001"]
        width = int(photo.width or 0)
        box = (width - 1 - x1, y0, width - 1 - x0, y1)
        match = collection.match(mirrored, NAME, box, mirrored=True)
        assert match.found and match.homography is not None and match.query.box == pytest.approx(box, abs=1)
        here, there = match.query_ellipses.astype(float), match.photo_ellipses.astype(float)
        assert (here[:, 0] >= box[0] - 1).all() and (here[:, 0] <= box[2] + 1).all()
        np.testing.assert_allclose(here[:, 0], width - 1 - there[:, 0], atol=3)
        np.testing.assert_allclose(here[:, 1], there[:, 1], atol=3)
        agrees = np.sign(here[:, 3]) == -np.sign(there[:, 3])
        assert agrees[np.abs(there[:, 3]) > np.quantile(np.abs(there[:, 3]), 0.75)].mean() > 0.9
        region = np.array(match.region)
        assert region.min(axis=0) == pytest.approx([x0, y0], abs=8)
        assert region.max(axis=0) == pytest.approx([x1, y1], abs=8)
        assert not collection.match(mirrored, NAME, box).found


def test_all_of_several_and_a_file_that_is_away_are_refused(indexed: Indexed, mirrored: Path) -> None:
    with cairn.open(indexed.folder) as collection, pytest.raises(CairnError, match="any of several"):
        collection.search([mirrored, NAME], match_all=True, mirrored=True)
