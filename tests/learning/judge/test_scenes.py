"""Scenes of strict links, and their queries."""

import numpy as np
import pytest

from learning.judge.scenes import PARTS, BoxQuery, QueryOptions, Scenes, find_scenes, in_pixels, inside
from learning.judge.strict_links import StrictLinks
from retrieval.catalogue.schema import ImageRow
from retrieval.search.query import shrunk_box

SIDE = 1000


def rows(count: int) -> list[ImageRow]:
    return [
        ImageRow(number=number, path=f"/{number}.jpg", width=SIDE, height=SIDE // 2, features=9, position=0)
        for number in range(1, count + 1)
    ]


def spread(x0: float, y0: float, x1: float, y1: float, count: int = 400) -> np.ndarray:
    """Inliers (N, 2, 2) evenly in a box of the first photo, and in the same of the second."""
    side = round(count**0.5)
    x, y = np.meshgrid(np.linspace(x0, x1, side), np.linspace(y0, y1, side))
    points = np.column_stack([x.ravel(), y.ravel()]).astype(np.float32)
    return np.stack([points, points], axis=1)


def of(queries: list[BoxQuery], photo: int, part: float) -> BoxQuery:
    (found,) = (query for query in queries if (query.photo, query.part) == (photo, part))
    return found


def test_boxes_are_where_links_agree_and_their_middles() -> None:
    #  1 ═ 2    the others are alone
    links = StrictLinks({(1, 2): spread(0.2, 0.1, 0.6, 0.4)}, frozenset())
    scenes = find_scenes(links, rows(4), QueryOptions())
    assert scenes.members == [{1, 2}]
    assert [(query.photo, query.part) for query in scenes.queries] == [(1, 1.0), (1, 0.5), (2, 1.0), (2, 0.5)]
    whole, middle = of(scenes.queries, 1, 1.0), of(scenes.queries, 1, 0.5)
    # 5 to 95 percent of 400 pixels and of 300, from the pixels' centres.
    assert whole.box == pytest.approx((219.5, 114.5, 579.5, 384.5), abs=0.5)
    assert middle.box == pytest.approx((309.5, 182, 489.5, 317), abs=0.5)
    assert all(query.positives == {2} and query.ignored == {1} for query in (whole, middle))


def test_photos_are_to_be_found_where_their_links_cover_the_box() -> None:
    # 2 shares the left of photo 1 and 3 its right: its middle is in neither.
    links = StrictLinks({(1, 2): spread(0, 0, 0.24, 0.5), (1, 3): spread(0.76, 0, 1, 0.5)}, frozenset({(3, 4), (4, 5)}))
    queries = find_scenes(links, rows(6), QueryOptions()).queries
    assert [(query.photo, query.part) for query in queries] == [
        (1, 1.0),
        *((n, part) for n in (2, 3) for part in PARTS[:2]),  # the third is too small
    ]
    assert of(queries, 1, 1.0).positives == {2, 3}
    # 2 and 3 are of one scene, without a direct link; 4 may show it; 5 may only show the same as 4.
    assert of(queries, 2, 1.0).positives == {1} and of(queries, 2, 1.0).ignored == {2, 3, 4}
    assert of(queries, 3, 0.5).positives == {1} and of(queries, 3, 0.5).ignored == {2, 3, 4}


def test_what_is_too_small_or_hardly_covered_is_not_asked_for() -> None:
    small = StrictLinks({(1, 2): spread(0.2, 0.2, 0.25, 0.25)}, frozenset())
    assert not find_scenes(small, rows(2), QueryOptions()).queries
    assert find_scenes(small, rows(2), QueryOptions(smallest=0.01)).queries
    few = StrictLinks({(1, 2): spread(0.2, 0.1, 0.6, 0.4, 36)}, frozenset())
    assert {query.part for query in find_scenes(few, rows(2), QueryOptions(inside=10)).queries} == {1.0}


def test_so_many_photos_of_a_scene_are_asked_with_always_the_same() -> None:
    links = StrictLinks({(1, other): spread(0, 0, 1, 0.5) for other in range(2, 9)}, frozenset())
    options = QueryOptions(photos=3)
    scenes = find_scenes(links, rows(9), options)
    assert scenes == find_scenes(links, rows(9), options)
    assert len({query.photo for query in scenes.queries}) == 3
    assert all(query.positives | query.ignored == scenes.members[0] for query in scenes.queries)


def test_scenes_with_a_photo_that_was_learnt_from_are_not_held_out() -> None:
    links = StrictLinks({(1, 2): spread(0, 0, 1, 0.5), (3, 4): spread(0, 0, 1, 0.5)}, frozenset({(2, 3)}))
    scenes = find_scenes(links, rows(5), QueryOptions())
    assert {query.scene for query in scenes.held_out([])} == {1, 3}
    assert {query.scene for query in scenes.held_out([4, 5])} == {1}
    assert scenes.held_out([1, 4]) == [] == Scenes([], []).held_out([1])


def test_boxes_are_counted_and_measured() -> None:
    assert shrunk_box((0, 0, 4, 2), 0.5) == (1, 0.5, 3, 1.5)
    assert inside(np.array([[0.1, 0.1], [0.5, 0.5], [0.9, 0.5]]), (0.1, 0.1, 0.5, 0.5)).tolist() == [True, True, False]
    assert in_pixels((0, 0, 1, 0.5), 100) == (-0.5, -0.5, 99.5, 49.5)


def test_photos_are_to_be_found_that_only_a_third_photo_leads_to() -> None:
    # 1 ═ 2 ═ 3: the same points in all of them, and nothing matches 1 with 3.
    points = spread(0.2, 0.1, 0.6, 0.4)
    links = StrictLinks({(1, 2): points, (2, 3): points}, frozenset({(1, 3)}))
    for query in find_scenes(links, rows(3), QueryOptions()).queries:
        assert query.positives == {1, 2, 3} - {query.photo} and query.ignored == {query.photo}
    # Points of another part of photo 2 lead nowhere.
    links = StrictLinks({(1, 2): points, (2, 3): spread(0.7, 0.1, 0.95, 0.4)}, frozenset())
    assert of(find_scenes(links, rows(3), QueryOptions()).queries, 1, 1.0).positives == {2}
