"""Numbers computed from the output of steps."""

import pytest

from eval.reproduce.measures import (
    DifferenceOfTwo,
    Least,
    Listed,
    Mean,
    MeanOfListed,
    OfLeast,
    PercentAbove,
    PerOne,
    Spread,
    Value,
)
from eval.reproduce.steps import Data, Here, Made, Step
from index.errors import CairnError

LEARN = Step("learn", ("learn", "descriptor", Data("liberty"), "--out", Here("d.npz")), 2.0)
TEST = Step("test", ("evaluate", "patches", Data("notredame"), "--descriptor", Made(LEARN, "d.npz")), 0.5)
OTHER = Step("test", ("evaluate", "patches", Data("yosemite"), "--descriptor", Made(LEARN, "d.npz")), 0.5)


def test_measures_are_taken_from_what_steps_printed() -> None:
    printed = {
        TEST.key: {"fpr95": 0.05, "deep": [{"x": 3}], "none": None, "rows": [{"name": "a_1", "ap": 0.5}]},
        OTHER.key: {"fpr95": 0.1, "rows": []},
    }
    low, high, none = Value(TEST, ("fpr95",), 100), Value(OTHER, ("fpr95",), 100), Value(TEST, ("none",))
    assert low.of(printed) == pytest.approx(5)
    assert Value(TEST, ("deep", 0, "x")).of(printed) == 3
    assert Mean((low, high)).of(printed) == pytest.approx(7.5)
    assert Mean((low, none)).of(printed) is None
    assert Least((high, none, low)).of(printed) == pytest.approx(5)
    assert Spread((low, high)).of(printed) == pytest.approx(5 / 2**0.5)
    assert Spread((low,)).of(printed) is None
    assert PercentAbove(high, low).of(printed) == pytest.approx(100)
    assert PercentAbove(low, none).of(printed) is None
    assert DifferenceOfTwo(high, low, 10).of(printed) == pytest.approx(50)
    assert DifferenceOfTwo(high, none).of(printed) is None
    assert PerOne(high, low).of(printed) == pytest.approx(2)
    assert PerOne(high, none).of(printed) is None
    dims = Value(TEST, ("deep", 0, "x")), high, Value(OTHER, ("fpr95",))
    assert OfLeast((high, none, low), dims).of(printed) == 0.1
    assert OfLeast((none,), (low,)).of(printed) is None
    assert MeanOfListed(TEST, ("rows",), "ap", "a_").of(printed) == 0.5
    assert MeanOfListed(TEST, ("rows",), "ap", "b_").of(printed) is None
    with pytest.raises(CairnError, match=r"nothing called 'deep\.0\.y'"):
        Value(TEST, ("deep", 0, "y")).of(printed)


def test_listed_points_are_those_of_the_right_kind_in_the_order_of_x() -> None:
    rows = [
        {"stage": "pooling", "dim": 64, "test": {"nd": 0.2}},
        {"stage": "pooling", "dim": 32, "test": {"nd": 0.3}},
        {"stage": "projection", "dim": 8, "test": {"nd": 0.4}},
        {"stage": "pooling", "dim": 16, "test": {"nd": None}},
    ]
    listed = Listed(TEST, ("tested",), "dim", "test.nd", 100, (("stage", "pooling"),))
    assert listed.of({TEST.key: {"tested": rows}}) == [(32, pytest.approx(30)), (64, pytest.approx(20))]
    assert Listed(TEST, ("tested",), "", "dim").of({TEST.key: {"tested": rows}}) == [(0, 64), (1, 32), (2, 8), (3, 16)]
