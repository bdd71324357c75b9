"""Steps: their keys, and numbers at a smaller scale."""

import pytest

from eval.reproduce.steps import Data, Here, Made, Scale, Step
from index.errors import CairnError

LEARN = Step("learn", ("learn", "descriptor", Data("liberty"), "--out", Here("d.npz")), 2.0)
TEST = Step("test", ("evaluate", "patches", Data("notredame"), "--descriptor", Made(LEARN, "d.npz")), 0.5)
OTHER = Step("test", ("evaluate", "patches", Data("yosemite"), "--descriptor", Made(LEARN, "d.npz")), 0.5)


def test_a_step_is_known_by_its_command_and_by_what_it_builds_on() -> None:
    same = Step("another title", LEARN.arguments, 9.0)
    changed = Step("learn", (*LEARN.arguments, "--seed", "1"))
    assert same == LEARN
    assert len({LEARN, same, changed}) == 2
    on_changed = Step("test", (*TEST.arguments[:-1], Made(changed, "d.npz")))
    assert len({LEARN.key, TEST.key, OTHER.key, changed.key, on_changed.key}) == 5


@pytest.mark.parametrize("share", [0, -1, 1.5, float("nan")])
def test_a_scale_is_a_share(share: float) -> None:
    with pytest.raises(CairnError, match="above 0 and not above 1"):
        Scale(share)


def test_counts_follow_the_scale_but_not_below_the_least() -> None:
    assert (Scale().count(500, 10), Scale(0.1).count(500, 10), Scale(0.001).count(500, 10)) == ("500", "50", "10")
    assert Scale(0.001).count(5, 10) == "5"
