"""Clusters hold together what sees each other, and one wrong edge joins nothing."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.groups.clustering import cluster

Links = dict[tuple[int, int], float]


def clique(nodes: range, strength: float = 50.0) -> Links:
    return dict.fromkeys(itertools.combinations(nodes, 2), strength)


def test_photos_that_all_see_each_other_are_a_cluster() -> None:
    assert cluster(clique(range(7))) == [set(range(7))]


@pytest.mark.parametrize("sizes", [(2, 2), (2, 9), (5, 5), (36, 10)])
@pytest.mark.parametrize("strength", [20.0, 1000.0])
def test_one_wrong_edge_joins_no_albums(sizes: tuple[int, int], strength: float) -> None:
    one, other = range(sizes[0]), range(sizes[0], sum(sizes))
    links = {**clique(one), **clique(other), (0, sizes[0]): strength}
    assert {frozenset(found) for found in cluster(links)} == {frozenset(one), frozenset(other)}


def test_several_photos_that_are_wrongly_linked_with_one_do_not_join_its_album() -> None:
    # A photo of a fence is linked with three of another album, which has ten.
    links = {**clique(range(10)), **clique(range(10, 20)), **{(0, other): 30.0 for other in (10, 11, 12)}}
    assert len(cluster(links)) == 2


def test_a_walk_around_a_building_is_one_album() -> None:
    # Each photo sees the three before and the three after it.
    links = {(one, other): 60.0 - 10 * (other - one) for one in range(40) for other in range(one + 1, min(one + 4, 40))}
    assert cluster(links) == [set(range(40))]


def test_a_photo_joins_by_two_edges_and_two_photos_are_a_pair_by_one() -> None:
    assert cluster({**clique(range(4)), (3, 9): 20.0, (20, 21): 25.0}) == [{0, 1, 2, 3}, {20, 21}]
    assert cluster({**clique(range(4)), (2, 9): 20.0, (3, 9): 20.0}) == [{0, 1, 2, 3, 9}]
    assert cluster({}) == []


def test_a_photo_of_two_paintings_does_not_make_one_album_of_theirs() -> None:
    # 0 to 2 show one painting, 10 to 12 another, 5 both.
    links = {**clique(range(3)), **clique(range(10, 13))}
    links.update(((one, 5) if one < 5 else (5, one), 80.0) for one in (0, 1, 2, 10, 11, 12))
    found = cluster(links)
    assert len(found) == 2 and {frozenset(one - {5}) for one in found} == {
        frozenset(range(3)),
        frozenset(range(10, 13)),
    }


@settings(deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 15), st.integers(0, 15)).filter(lambda pair: pair[0] < pair[1]),
        st.integers(20, 24).map(float),
        max_size=40,
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_edges_makes_no_difference(links: Links, random: "np.random.Generator") -> None:
    items = list(links.items())
    random.shuffle(items)  # type: ignore[arg-type]
    found = cluster(links)
    assert cluster(dict(items)) == found
    nodes = [node for one in found for node in one]
    assert len(nodes) == len(set(nodes)) and all(len(one) > 1 for one in found)
    assert found == sorted(found, key=lambda one: (-len(one), min(one)))
