"""The hard version of landmarks: boxes shrink about their centres, and the answers stay."""

import pytest

from learning.labels.ground_truth import Query
from scripts.hard_landmarks import shrunk

WHOLE = Query("tower_1", "tower", (10.0, 20.0, 110.0, 60.0), frozenset({"a"}), frozenset({"b"}), frozenset({"tower"}))


def test_boxes_shrink_about_their_centres() -> None:
    half = shrunk(WHOLE, 0.5)
    assert half.box == (35.0, 30.0, 85.0, 50.0)
    assert (half.name, half.stem, half.good, half.ok, half.junk) == ("tower_1", "tower", {"a"}, {"b"}, {"tower"})


@pytest.mark.parametrize("part", [0.1, 0.25, 1.0])
def test_sides_are_that_part_of_what_they_were(part: float) -> None:
    x0, y0, x1, y1 = shrunk(WHOLE, part).box
    assert (x1 - x0, y1 - y0) == pytest.approx((part * 100, part * 40))
    assert ((x0 + x1) / 2, (y0 + y1) / 2) == pytest.approx((60, 40))
