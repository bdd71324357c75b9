"""What photos borrow: what maps into them, what they lack, and what most neighbours agree on first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.groups.borrowing import BorrowOptions, Located, borrow

SIZE = (1.0, 0.75)
ALL = BorrowOptions(share=100.0)


def located(*features: tuple[int, float, float]) -> Located:
    rows = np.array(features, float).reshape(-1, 3)
    return Located(rows[:, 0].astype(np.int32), rows[:, 1:])


def test_only_what_lies_strictly_inside_is_borrowed() -> None:
    lent = located((1, 0.5, 0.5), (2, 0.0, 0.5), (3, 0.5, 0.75), (4, -0.1, 0.2), (5, 0.99, 0.01), (6, 1.0, 0.1))
    assert [rows.tolist() for rows in borrow(located((9, 0.5, 0.5)), [lent], SIZE, ALL)] == [[0, 4]]


def test_what_a_photo_has_at_the_same_place_is_not_borrowed() -> None:
    own = located((1, 0.5, 0.5), (2, 0.2, 0.2))
    lent = located((1, 0.51, 0.5), (1, 0.55, 0.5), (2, 0.5, 0.5), (2, 0.21, 0.21))
    assert [rows.tolist() for rows in borrow(own, [lent], SIZE, ALL)] == [[1, 2]]


def test_what_several_have_is_borrowed_once_of_the_best() -> None:
    neighbours = [
        located((1, 0.5, 0.5)),
        located((1, 0.51, 0.5), (2, 0.5, 0.5)),
        located((2, 0.5, 0.51), (1, 0.9, 0.1)),
    ]
    assert [rows.tolist() for rows in borrow(located((9, 0, 0)), neighbours, SIZE, ALL)] == [[0], [1], [1]]


def test_what_most_agree_on_comes_first_where_there_is_little_room() -> None:
    neighbours = [
        located((1, 0.1, 0.1), (2, 0.2, 0.2), (3, 0.3, 0.3)),
        located((3, 0.3, 0.31), (2, 0.2, 0.21)),
        located((3, 0.31, 0.3)),
    ]
    own = located(*((9, 0.01 * k, 0.7) for k in range(4)))
    chosen = [borrow(own, neighbours, SIZE, BorrowOptions(share=share)) for share in (0.25, 0.5, 0.75)]
    assert [[rows.tolist() for rows in one] for one in chosen] == [[[2], [], []], [[1, 2], [], []], [[0, 1, 2], [], []]]


@pytest.mark.parametrize("neighbours", [[], [located()], [located((1, 0.5, 0.5)), located()]])
def test_nothing_may_be_there(neighbours: list[Located]) -> None:
    assert [rows.tolist() for rows in borrow(located(), neighbours, SIZE, ALL)] == [[] for _ in neighbours]


features = st.lists(st.tuples(st.integers(0, 3), st.floats(-0.2, 1.2), st.floats(-0.2, 1.2)), max_size=25)


@given(own=features, lent=st.lists(features, max_size=4), share=st.sampled_from([0.3, 100.0]))
def test_a_plain_loop_agrees(
    own: list[tuple[int, float, float]], lent: list[list[tuple[int, float, float]]], share: float
) -> None:
    """Nothing outside, nothing twice, most support first, and no more than there is room for."""
    options = BorrowOptions(share=share)

    def near(one: tuple[int, float, float], other: tuple[int, float, float]) -> bool:
        return one[0] == other[0] and float(np.hypot(one[1] - other[1], one[2] - other[2])) < options.tolerance

    there = [
        [
            (k, one)
            for k, one in enumerate(some)
            if 0 < one[1] < SIZE[0] and 0 < one[2] < SIZE[1] and not any(near(one, mine) for mine in own)
        ]
        for some in lent
    ]
    wanted = []
    for which, some in enumerate(there):
        for k, one in some:
            agreeing = [
                other for other in range(len(lent)) if other != which and any(near(one, x) for _, x in there[other])
            ]
            if not any(other < which for other in agreeing):
                wanted.append((-len(agreeing), which, k))
    room = int(share * len(own))
    expected = sorted(wanted)[:room]
    found = borrow(located(*own), [located(*some) for some in lent], SIZE, options)
    assert [rows.tolist() for rows in found] == [
        sorted(k for _, which, k in expected if which == number) for number in range(len(lent))
    ]
