"""One query that many engines search for: its views are made once, and each search is charged for those it looks at."""

import time
from collections.abc import Callable, Sequence
from functools import partial

from retrieval.search.answers import Asked, make_query
from retrieval.search.query import Query
from retrieval.search.searcher import Answer, Searcher
from retrieval.search.views import GlancedViews, View, glance


class Glances:
    """Views of a query by some features, which cost what they cost a search that has looked at nothing else yet.

    Parameters
    ----------
    make : callable
        Makes a query of the same photo, which is used for nothing else: of one that was described at a turn already, a
        glance at this or the opposite turn would be had for nothing.
    """

    def __init__(self, make: Callable[[], Query]) -> None:
        self._make = make
        self._query: Query | None = None
        self._found: dict[tuple[float, int], tuple[View, float]] = {}

    def find(self, which: int, turns: int, most: int) -> tuple[View, float]:
        """The view at one of so many turns by so many features at most, and its processor time in seconds."""
        key = which / turns, most
        if key not in self._found:
            if self._query is None:
                self._query = self._make()
                if self._query.source is not None:
                    self._query.source.read()  # which is charged where views with all features are made
            views = self._query.tried_at(turns).views
            start = time.process_time()
            view = glance(views, which, most)
            self._found[key] = view, time.process_time() - start
        return self._found[key]


class ChargedViews(GlancedViews):
    """The views of a query, and what those cost that one search has looked at.

    Parameters
    ----------
    views : sequence of View
        Made when they are first asked for, by whichever search.
    costs : dict of float to float
        Seconds of processor time that the view of a turn took to make; added to.
    glances : Glances
        Of the same query.

    Attributes
    ----------
    owed : float
        Seconds that the views took which this search has looked at, beyond those that it has spent on them itself.
    """

    def __init__(self, views: Sequence[View], costs: dict[float, float], glances: Glances) -> None:
        self.owed = 0.0
        self._views = views
        self._costs = costs
        self._glances = glances
        self._seen: set[int] = set()

    def glance(self, which: int, most: int) -> View:
        """As `GlancedViews.glance`; it is charged whenever it is looked at, as it is not kept."""
        start = time.process_time()
        view, cost = self._glances.find(which, len(self), most)
        self.owed += cost - (time.process_time() - start)
        return view

    def __len__(self) -> int:
        return len(self._views)

    def made(self, place: int) -> View:
        """As `GlancedViews.made`; it is charged the first time."""
        start = time.process_time()
        view = self._views[place]
        spent = time.process_time() - start
        if view.turn not in self._costs:
            self._costs[view.turn] = spent
        elif place not in self._seen:
            self.owed += self._costs[view.turn]
        self._seen.add(place)
        return view


class SharedQuery:
    """A query that several engines search for, which need the same of it.

    Parameters
    ----------
    searcher : Searcher
        One of those that will search for it.
    asked : Asked
        Its photo.
    """

    def __init__(self, searcher: Searcher, asked: Asked) -> None:
        start = time.process_time()
        self._query = make_query(searcher, asked)
        self._upright = time.process_time() - start
        self._costs: dict[float, float] = {}
        self._glances = Glances(partial(make_query, searcher, asked))

    def search(self, searcher: Searcher) -> tuple[Answer, float]:
        """Search for it; give the answer, and the processor time in seconds that the query alone would have taken."""
        query = self._query.tried_at(searcher.options.turns)
        views = ChargedViews(query.views, self._costs, self._glances)
        start = time.process_time()
        answer = searcher.search(views, region=query.region)
        return answer, self._upright + time.process_time() - start + views.owed
