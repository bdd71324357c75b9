"""Tracks through several photos, compared with a point-by-point search."""

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from learning.judge.strict_links import StrictLinks
from learning.judge.tracks import Tracks

# Places are few, so that points meet; on a grid whose steps are wide enough to be apart.
POINT = st.tuples(st.integers(0, 3), st.integers(0, 3))
LINKS = st.dictionaries(
    st.tuples(st.integers(1, 5), st.integers(1, 5)).filter(lambda pair: pair[0] < pair[1]),
    st.lists(st.tuples(POINT, POINT), max_size=6),
    max_size=6,
)


def links_of(matches: dict[tuple[int, int], list[tuple[tuple[int, int], tuple[int, int]]]]) -> StrictLinks:
    inliers = {pair: np.array(points, np.float32).reshape(-1, 2, 2) / 4 for pair, points in matches.items()}
    return StrictLinks(inliers, frozenset())


@given(LINKS)
def test_tracks_are_what_following_each_point_gives(
    matches: dict[tuple[int, int], list[tuple[tuple[int, int], tuple[int, int]]]],
) -> None:
    beside = defaultdict(set)
    for (one, other), points in matches.items():
        for first, second in points:
            beside[one, first].add((other, second))
            beside[other, second].add((one, first))
    expected = set()
    for start in beside:
        reached, todo = {start}, [start]
        while todo:
            new = beside[todo.pop()] - reached
            reached |= new
            todo += new
        if len({photo for photo, _ in reached}) == len(reached):  # no two places of one photo
            expected.add(frozenset(reached))
    tracks = Tracks(links_of(matches))
    found = defaultdict(set)
    for photo in range(1, 6):
        for track, place in zip(*tracks.of(photo), strict=True):
            x, y = np.rint(4 * place).astype(int).tolist()
            found[int(track)].add((photo, (x, y)))
    assert {frozenset(points) for points in found.values()} == expected
    for photo in range(1, 6):
        own = tracks.of(photo)[0]
        shared = {
            other: sum({photo, other} <= {number for number, _ in track} for track in expected) for other in range(1, 6)
        }
        assert tracks.shared(own, range(1, 6)) == shared


def test_regions_of_several_sizes_at_one_place_are_one_point() -> None:
    near = np.array([[[0.5, 0.5], [0.2, 0.2]], [[0.5, 0.5001], [0.2, 0.205]]], np.float32)
    tracks = Tracks(StrictLinks({(1, 2): near}, frozenset()))
    assert len(set(tracks.of(1)[0].tolist())) == 1
    assert tracks.shared(tracks.of(1)[0], [1, 2, 3]) == {1: 1, 2: 1, 3: 0}


def test_no_links_have_no_tracks() -> None:
    tracks = Tracks(StrictLinks({}, frozenset()))
    assert not len(tracks.of(1)[0]) and tracks.shared(tracks.of(1)[0], [2]) == {2: 0}
