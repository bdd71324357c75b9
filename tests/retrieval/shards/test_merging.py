"""What parts say of their scores, put together, is what one would say of all."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from retrieval.search.probability import background
from retrieval.search.scoreboard import Candidates, _lowest
from retrieval.shards.merging import (
    count_high,
    count_low,
    median,
    merge_candidates,
    merge_counted,
    merge_lowest,
    middle,
)

SCORES = hnp.arrays(
    np.float32,
    st.integers(0, 40),
    elements=st.sampled_from([0.0, 0.25, 0.25 + 2**-24, 3.0]) | st.floats(0, 2.0**90, width=32, allow_subnormal=False),
)
PARTS = st.lists(SCORES, min_size=1, max_size=5)


@given(PARTS)
def test_the_median_of_all_parts_is_exact(parts: list[np.ndarray]) -> None:
    places = middle(merge_counted([count_high(part) for part in parts]))
    high = {one for one, _ in places}
    low = {one: merge_counted([count_low(part, one) for part in parts]) for one in high}
    assert median(places, low) == background(np.concatenate(parts))


@given(PARTS, st.integers(0, 30))
def test_the_lowest_of_all_parts_are_the_lowest(parts: list[np.ndarray], most: int) -> None:
    scores = np.concatenate(parts)
    numbers = np.arange(len(scores), dtype=np.uint32) + 5
    owners = np.random.default_rng(most).integers(0, 3, len(scores))
    several = []
    for owner in range(3):
        own = np.flatnonzero(owners == owner)
        some = own[_lowest(scores[own], most)]
        several.append(Candidates(numbers[some], scores[None, some]))
    expected = np.sort(np.lexsort((numbers, scores))[:most])
    assert merge_lowest(several, most) == numbers[expected].tolist()


def test_candidates_come_by_number() -> None:
    one = Candidates(np.array([2, 9], np.uint32), np.array([[0.5, 0.1], [0, 1]], np.float32))
    other = Candidates(np.array([4], np.uint32), np.array([[0.3], [0.2]], np.float32))
    merged = merge_candidates([one, other], 2)
    assert merged.numbers.tolist() == [2, 4, 9]
    np.testing.assert_array_equal(merged.table, np.array([[0.5, 0.3, 0.1], [0, 0.2, 1]], np.float32))
    assert merge_candidates([], 2).table.shape == (2, 0)
