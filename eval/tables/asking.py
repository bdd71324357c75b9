"""One query for many engines: its views are made once, and each search is charged for those it uses."""

import time
from collections.abc import Sequence

from retrieval.search.answers import QueryImage, make_query
from retrieval.search.searcher import RankedAnswer, Searcher
from retrieval.search.views import PlacedViews, View


class ChargedViews(PlacedViews):
    """The views of a query, with processor seconds by turn, and those owed for views made by another search."""

    def __init__(self, views: Sequence[View], costs: dict[float, float]) -> None:
        self.owed = 0.0
        self._views = views
        self._costs = costs
        self._seen: set[int] = set()

    def __len__(self) -> int:
        return len(self._views)

    def made(self, place: int) -> View:
        """As `PlacedViews.made`; charged on first use."""
        start = time.process_time()
        view = self._views[place]
        spent = time.process_time() - start
        if view.turn not in self._costs:
            self._costs[view.turn] = spent
        elif place not in self._seen:
            self.owed += self._costs[view.turn]
        self._seen.add(place)
        return view

    def complete(self, place: int) -> bool:
        """As `PlacedViews.complete`; each search does it for itself."""
        return isinstance(self._views, PlacedViews) and self._views.complete(place)


class SharedQuery:
    """A query for several engines that need the same views."""

    def __init__(self, searcher: Searcher, image: QueryImage) -> None:
        start = time.process_time()
        self._query = make_query(searcher, image)
        self._upright = time.process_time() - start
        self._costs: dict[float, float] = {}

    def search(self, searcher: Searcher) -> tuple[RankedAnswer, float]:
        """Search for it; return the answer, and the processor seconds of the query alone."""
        query = self._query.tried_at(searcher.options.turns)
        views = ChargedViews(query.views, self._costs)
        start = time.process_time()
        answer = searcher.search(views, region=query.region)
        return answer, self._upright + time.process_time() - start + views.owed
