"""What a search is charged for of a query that others search for, too."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from eval.tables import asking
from eval.tables.asking import ChargedViews, Glances
from index.hamming.voting import SignedFeatures
from retrieval.regions.geometry import Frames
from retrieval.search.query import TURNED_REGIONS, Query
from retrieval.search.views import LazyViews, View, glance

TURNS = 4


class Clock:
    """Processor time in which describing takes a second a feature."""

    def __init__(self) -> None:
        self.now = 0.0
        self.described: list[tuple[float, int]] = []

    def describe(self, turn: float, wanted: int | None) -> View:
        """A view with so many features, or all that are worth it."""
        most = TURNED_REGIONS if wanted is None else wanted
        self.now += most
        self.described.append((turn, most))
        words = np.arange(most, dtype=np.int32)
        frames = Frames(np.zeros((most, 2)), np.zeros((most, 2, 2)))
        signed = SignedFeatures(words[:, None], np.zeros((most, 1, 8), np.uint8))
        return View(turn, frames, np.zeros((most, 0), np.float16), words, words, None, signed)

    def query(self) -> Query:
        """A query that takes 1,000 seconds to be made."""
        self.now += 1000
        views = LazyViews(self.describe(0.0, 0), 2 * np.pi * np.arange(TURNS) / TURNS, self.describe)
        return Query(Path("photo.jpg"), 100, 100, None, views)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(asking.time, "process_time", lambda: clock.now)
    return clock


def charged(views: ChargedViews, clock: Clock, glances: Sequence[int], looks: Sequence[int]) -> float:
    """What a search pays that glances at some turns with 600 features, and looks at others with all."""
    start = clock.now
    for turn in glances:
        assert len(glance(views, turn, 600).words) == 600
    for turn in looks:
        assert len(views[turn].words) == TURNED_REGIONS
    return clock.now - start + views.owed


def test_every_search_pays_for_glances_what_it_would_pay_alone(clock: Clock) -> None:
    """Be it the first or not, and though another has described all features at the turn."""
    query, costs, shared = clock.query(), dict[float, float](), Glances(clock.query)
    for glances, looks in (((), (1,)), ((1, 2, 3), (2,)), ((1, 2, 3), (2,)), ((3,), ())):
        paid = charged(ChargedViews(query.views, costs, shared), clock, glances, looks)
        assert paid == 600 * len(glances) + TURNED_REGIONS * len(looks)


def test_a_glance_describes_no_more_than_it_needs(clock: Clock) -> None:
    views = ChargedViews(clock.query().views, {}, Glances(clock.query))
    clock.described.clear()
    charged(views, clock, (1, 2, 3), ())
    assert {most for turn, most in clock.described if turn} == {600}
