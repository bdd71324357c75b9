"""Costs of a search for a query shared with others."""

from pathlib import Path

import numpy as np
import pytest

from eval.tables import asking
from eval.tables.asking import ChargedViews
from index.hamming.voting import SignedFeatures
from retrieval.regions.geometry import Frames
from retrieval.search.query import TURNED_REGIONS, Query
from retrieval.search.views import LazyViews, View

TURNS = 4


class Clock:
    """Processor time in which describing takes a second a feature."""

    def __init__(self) -> None:
        self.now = 0.0
        self.described: list[tuple[float, int]] = []

    def describe(self, turn: float) -> View:
        """A view with all useful features."""
        most = TURNED_REGIONS
        self.now += most
        self.described.append((turn, most))
        words = np.arange(most, dtype=np.int32)
        frames = Frames(np.zeros((most, 2)), np.zeros((most, 2, 2)))
        signed = SignedFeatures(words[:, None], np.zeros((most, 1, 8), np.uint8))
        return View(turn, frames, np.zeros((most, 0), np.float16), words, words, None, signed)

    def query(self) -> Query:
        """A query that takes 1,000 seconds to make."""
        self.now += 1000
        turns = 2 * np.pi * np.arange(TURNS) / TURNS
        views = LazyViews(self.describe(0.0), turns, lambda some, full=False: [self.describe(turn) for turn in some])
        return Query(Path("photo.jpg"), 100, 100, None, views)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(asking.time, "process_time", lambda: clock.now)
    return clock


def test_every_search_pays_for_turns_what_it_would_pay_alone(clock: Clock) -> None:
    """Whether first or not, and for repeated use of a turn."""
    query, costs = clock.query(), dict[float, float]()
    for looks in ((1,), (2, 1, 1), (2,), ()):
        views, start = ChargedViews(query.views, costs), clock.now
        for turn in looks:
            assert len(views[turn].words) == TURNED_REGIONS
        assert clock.now - start + views.owed == TURNED_REGIONS * len(set(looks))
    assert [turn for turn, _ in clock.described if turn] == [np.pi / 2, np.pi]
