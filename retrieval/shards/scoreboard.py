"""A scoreboard of photos in shards: holders score and verify, and their results are combined exactly."""

import itertools
import secrets
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from retrieval.matching.verification import Verification
from retrieval.search.options import SearchOptions
from retrieval.search.ranking import Tried
from retrieval.search.scoreboard import Candidates, Rule, Scoreboard, Weights, turned_weights
from retrieval.search.views import View
from retrieval.shards.holder import Call
from retrieval.shards.merging import Counted, median, merge_candidates, merge_counted, merge_lowest, middle
from retrieval.shards.shards import ShardPlacement, Shards

T = TypeVar("T")

MOST = 1_000
"""Photos that are ranked where nobody says how many places are wanted."""
_SERIAL = itertools.count()
_PROCESS = secrets.token_hex(8)


class Remote(Protocol):
    """The interface of the engine of shards that a scoreboard uses."""

    options: SearchOptions
    shards: Shards
    needs_descriptors: bool
    adds_totals: bool
    borrows: bool

    def open(self) -> None:
        """Have all holders open the engine."""

    def borrow_nothing(self) -> None:
        """Let all holders score photos only by their own features."""


class ShardedScoreboard(Scoreboard):
    """Scoreboard of photos in shards. If holders change during a search, the new ones receive all of it again."""

    def __init__(self, engine: Remote, views: int, among: NDArray[np.integer] | None) -> None:
        self._engine, self._shards = engine, engine.shards
        self._number = views
        every = self._shards.epoch.index.image_numbers
        self._among = np.intersect1d(among, every) if among is not None else None
        self._placed: ShardPlacement | None = None  # places of the shards when holders received the search
        self._token = ""  # its name at the holders
        self._looks: list[tuple[list[int], list[int]]] = []  # places and names of the scored views
        self._scored = 0  # number of these that holders know
        self._views: dict[int, View] = {}  # by name
        self._names: dict[int, int] = {}  # of views, by identity: `_views` keeps them alive
        self._sent: dict[str, set[int]] = {}  # names of the views that each holder knows
        self._likely: dict[tuple[bytes, int], Candidates] = {}  # prefetched: the usual next request
        self._counted: dict[bytes, Counted] = {}  # upper bits of all scores, by weights
        self._grounds: dict[bytes, float] = {}

    @property
    def missing(self) -> tuple[int, ...]:
        """Shards without a holder: see `Scoreboard.missing`."""
        return self._placed.missing if self._placed is not None else ()

    def look(self, which: Sequence[int], views: Sequence[View]) -> None:
        """Score with views: see `Scoreboard.look`."""
        self._looks.append((list(which), [self._name(view) for view in views]))
        self._steadily(lambda placed: None)

    def best(self, weights: Weights, top: int | None, also: Iterable[int] = ()) -> Candidates:
        """Return the best photos: see `Scoreboard.best`; if `top` is None, `MOST`."""
        wanted, others = MOST if top is None else top, sorted(also)
        known = self._likely.get((weights.tobytes(), wanted))
        if known is not None and not others:
            return known
        # Ranking needs the background score, so one message requests that, too.
        places = self._unknown(weights)
        high = sorted({one for one, _ in places})
        replies = self._ask_all(
            lambda token: [
                Call("best", (token, weights, wanted, others)),
                *([Call("count_low", (token, weights, high))] if high else []),
            ]
        )
        if high and self._unknown(weights) == places:
            self._grounds[weights.tobytes()] = _median(places, [reply[1] for reply in replies])
        return merge_candidates([reply[0] for reply in replies], self._number)

    def ground(self, weights: Weights) -> float:
        """Return the background: see `Scoreboard.ground`."""
        key = weights.tobytes()
        if key not in self._grounds:
            if key not in self._counted:
                replies = self._ask_all(lambda token: [Call("count_high", (token, weights))])
                self._counted[key] = merge_counted([reply[0] for reply in replies])
            places = self._unknown(weights)
            high = sorted({one for one, _ in places})
            replies = self._ask_all(lambda token: [Call("count_low", (token, weights, high))]) if high else []
            if self._unknown(weights) != places:  # other shards may be missing now
                return self.ground(weights)
            self._grounds[key] = _median(places, [reply[0] for reply in replies])
        return self._grounds[key]

    def _unknown(self, weights: Weights) -> list[tuple[int, int]]:
        """Estimate the background from the upper bits of all scores, if only these are known."""
        key = weights.tobytes()
        return middle(self._counted[key]) if key in self._counted and key not in self._grounds else []

    def lowest(self, which: int, most: int) -> list[int]:
        """Numbers of the lowest scores: see `Scoreboard.lowest`."""
        replies = self._ask_all(lambda token: [Call("lowest", (token, which, most))])
        return merge_lowest([reply[0] for reply in replies], most)

    def verify(self, wanted: Sequence[tuple[View, Sequence[int]]]) -> list[list[Verification]]:
        """Verify some photos: see `Scoreboard.verify`. A photo whose shard has no holder is not found."""
        names = [self._name(view) for view, _ in wanted]

        def call(member: str, which: int, some: list[int]) -> Call:
            return Call("verify", (self._token, self._unsent(member, [names[which]]), names[which], some))

        return self._steadily(lambda _: self._shards.verify([numbers for _, numbers in wanted], call))

    def verify_all(self, weights: Weights) -> dict[int, Tried]:
        """Verify every photo: see `Scoreboard.verify_all`."""
        results: dict[int, Tried] = {}
        for (reply,) in self._ask_all(lambda token: [Call("verify_all", (token, weights))]):
            results |= reply
        return results

    def aligned(self, others: Sequence[Scoreboard], weights: Sequence[Weights], rule: Rule) -> list[Candidates]:
        """Return the same photos on several scoreboards: see `Scoreboard.aligned`."""
        boards = [self, *(board for board in others if isinstance(board, ShardedScoreboard))]

        def ask(placed: ShardPlacement) -> list[list[Candidates]]:
            for board in boards:
                board._catch_up(placed)
            call = Call("align", ([board._token for board in boards], list(weights), rule))
            return [reply for (reply,) in self._shards.ask({member: [call] for member in placed.keys}).values()]

        replies = self._steadily(ask)
        return [merge_candidates([reply[one] for reply in replies], board._number) for one, board in enumerate(boards)]

    def _name(self, view: View) -> int:
        """Name of a view at the holders."""
        if id(view) not in self._names:
            self._names[id(view)] = len(self._views)
            self._views[len(self._views)] = view
        return self._names[id(view)]

    def _unsent(self, member: str, names: Sequence[int]) -> dict[int, View]:
        """Views that a holder does not know yet, by name; it will."""
        known = self._sent.setdefault(member, set())
        new = set(names) - known
        known |= new
        return {name: pack(self._views[name], with_descriptors=self._engine.needs_descriptors) for name in new}

    def _ask_all(self, calls: Callable[[str], list[Call]]) -> list[list[Any]]:
        """Make the same calls to every holder; `calls` gets the holder's key of its part."""

        def ask(placed: ShardPlacement) -> list[list[Any]]:
            return list(self._shards.ask({member: calls(self._token) for member in placed.keys}).values())

        return self._steadily(ask)

    def _steadily(self, ask: Callable[[ShardPlacement], T]) -> T:
        """Make a request once holders know the search; repeat it if holders were lost."""

        def once() -> T:
            placed = self._shards.placed
            self._catch_up(placed)
            return ask(placed)

        return self._shards.steadily(once)

    def _catch_up(self, placed: ShardPlacement) -> None:
        """Send holders the parts of the search that they do not know."""
        if self._placed is not placed:
            self._placed, self._scored = placed, 0
            self._sent.clear()
            self._token = new_token()
            weakref.finalize(self, self._shards.forget, self._token)
            self._engine.open()
        while self._scored < len(self._looks):
            self._score(placed, *self._looks[self._scored])

    def _score(self, placed: ShardPlacement, which: list[int], names: list[int]) -> None:
        """Let all holders score with some views, and prefetch the usual next request."""
        begin = {}
        for member, key in placed.keys.items():
            search = self._token, key, self._engine.options, self._number
            views = self._unsent(member, names)
            begin[member] = Call("begin", (search, self._among_of(placed, member), which, names, views))
        totals: list[NDArray[np.float64]] = []
        if self._engine.adds_totals:
            replies = self._shards.ask({member: [call] for member, call in begin.items()})
            totals = [np.sum(parts, axis=0) for parts in zip(*(reply[0] for reply in replies.values()), strict=True)]
        options = self._engine.options
        wanted, depth = turned_weights(self._number, options.turned_candidate), options.verification.depth
        ranked = turned_weights(self._number, options.turned)
        ending = [
            Call("finish", (self._token, totals)),
            Call("best", (self._token, wanted, depth, [])),
            Call("count_high", (self._token, ranked)),
        ]
        first = {member: [] if self._engine.adds_totals else [call] for member, call in begin.items()}
        replies = self._shards.ask({member: [*calls, *ending] for member, calls in first.items()})
        borrowing, candidates, counted = zip(*(reply[-3:] for reply in replies.values()), strict=True)
        if self._engine.borrows and not all(borrowing):
            self._engine.borrow_nothing()
            self._scored = 0  # all is scored again
            return
        self._scored += 1
        self._likely = {(wanted.tobytes(), depth): merge_candidates(candidates, self._number)}
        self._counted = {ranked.tobytes(): merge_counted(counted)}
        self._grounds = {}

    def _among_of(self, placed: ShardPlacement, member: str) -> NDArray[np.integer] | None:
        """Numbers of the photos of one holder that may be found."""
        if self._among is None:
            return None
        held = [shard for shard, owner in placed.owners.items() if owner == member]
        return self._among[np.isin(self._shards.epoch.owners_of(self._among), held)]


def new_token() -> str:
    """Return a name that no other search has, for holders."""
    return f"{_PROCESS}-{next(_SERIAL)}"


def _median(places: Sequence[tuple[int, int]], counted: Sequence[dict[int, Counted]]) -> float:
    """Median of the scores of all parts, from their counts of the lower bits."""
    high = {one for one, _ in places}
    return median(places, {one: merge_counted([part[one] for part in counted]) for one in high})


def pack(view: View, *, with_descriptors: bool) -> View:
    """Return a view for sending: without derived data, and without descriptors unless they are needed."""
    return replace(view, descriptors=view.descriptors if with_descriptors else view.descriptors[:, :0])
