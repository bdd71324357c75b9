"""One query that many engines search for: its views are made once, and each search is charged for those it looks at."""

import time
from collections.abc import Sequence

from retrieval.search.answers import QueryImage, make_query
from retrieval.search.searcher import RankedAnswer, Searcher
from retrieval.search.views import PlacedViews, View


class ChargedViews(PlacedViews):
    """The views of a query, and what those cost that one search has looked at. `costs`: processor seconds of the view
    of a turn, added to; `owed`: seconds of views that this search looked at, and another had made.
    """

    def __init__(self, views: Sequence[View], costs: dict[float, float]) -> None:
        self.owed = 0.0
        self._views = views
        self._costs = costs
        self._seen: set[int] = set()

    def __len__(self) -> int:
        return len(self._views)

    def made(self, place: int) -> View:
        """As `PlacedViews.made`; it is charged the first time."""
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
    """A query that several engines search for, which need the same of it."""

    def __init__(self, searcher: Searcher, asked: QueryImage) -> None:
        start = time.process_time()
        self._query = make_query(searcher, asked)
        self._upright = time.process_time() - start
        self._costs: dict[float, float] = {}

    def search(self, searcher: Searcher) -> tuple[RankedAnswer, float]:
        """Search for it; return the answer, and the processor time in seconds that the query alone would have taken."""
        query = self._query.tried_at(searcher.options.turns)
        views = ChargedViews(query.views, self._costs)
        start = time.process_time()
        answer = searcher.search(views, region=query.region)
        return answer, self._upright + time.process_time() - start + views.owed
