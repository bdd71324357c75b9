"""Self-join of a collection: query with many of its photos at a time, in a few messages to each holder."""

from collections.abc import Sequence

from index.errors import CairnError
from retrieval.collection.collection import Collection
from retrieval.matching.verification import Verification
from retrieval.search.engines.contract import settle
from retrieval.search.options import SearchOptions
from retrieval.search.scoreboard import Candidates, weight_of_one
from retrieval.search.views import View
from retrieval.shards.engine import ShardedEngine
from retrieval.shards.holder import SEARCHES, Call
from retrieval.shards.merging import merge_candidates
from retrieval.shards.scoreboard import new_token, pack
from retrieval.shards.shards import ShardPlacement, Shards

AT_ONCE = SEARCHES // 4
"""Photos that are asked with at a time: holders remember no more searches than `SEARCHES`, of all who ask them."""

_ONE = weight_of_one(1, 0)


class Joins:
    """Query shards with many photos, each of one view. Every shard must have a holder."""

    def __init__(self, collection: Collection, options: SearchOptions, shards: Shards) -> None:
        self._engine = ShardedEngine(collection, settle(options, collection), shards)
        if self._engine.adds_totals:
            raise ValueError(f"the engine {options.engine} adds up totals of all shards")
        self._shards = shards

    def ask(self, views: Sequence[View]) -> "JoinQueries":
        """Query with some photos, at most `AT_ONCE`."""
        return JoinQueries(self._engine, views)


class JoinQueries:
    """Photos that shards are queried with. If holders change meanwhile, the new ones receive all of it again."""

    def __init__(self, engine: ShardedEngine, views: Sequence[View]) -> None:
        self._engine, self._shards = engine, engine.shards
        self._views = [pack(view, with_descriptors=engine.needs_descriptors) for view in views]
        self._tokens: list[str] = []
        self._placed: ShardPlacement | None = None

    def __enter__(self) -> "JoinQueries":
        return self

    def __exit__(self, *_: object) -> None:
        self._release()

    def best(self, top: int) -> list[Candidates]:
        """Return the photos of the best scores with each view: see `Scoreboard.best`."""
        return self._shards.steadily(lambda: self._score(top))

    def verify(self, wanted: Sequence[Sequence[int]]) -> list[list[Verification]]:
        """Verify photos of the given numbers with each view, in order."""
        return self._shards.steadily(lambda: self._verify(wanted))

    def _score(self, top: int) -> list[Candidates]:
        placed = self._all_there()
        self._placed = placed
        self._release()  # state of holders that were replaced
        self._tokens = [new_token() for _ in self._views]
        self._engine.open()
        calls: dict[str, list[Call]] = {}
        for member, key in placed.keys.items():
            calls[member] = []
            for token, view in zip(self._tokens, self._views, strict=True):
                search = token, key, self._engine.options, 1
                calls[member] += [
                    Call("begin", (search, None, [0], [0], {0: view})),
                    Call("finish", (token, [])),
                    Call("best", (token, _ONE, top, [])),
                ]
        replies = self._shards.ask(calls)
        return [
            merge_candidates([reply[3 * one + 2] for reply in replies.values()], 1) for one in range(len(self._views))
        ]

    def _verify(self, wanted: Sequence[Sequence[int]]) -> list[list[Verification]]:
        if self._placed is not self._all_there():
            self._score(0)
        return self._shards.verify(wanted, lambda _, one, some: Call("verify", (self._tokens[one], {}, 0, some)))

    def _release(self) -> None:
        """Let holders delete the searches."""
        for token in self._tokens:
            self._shards.forget(token)
        self._tokens = []

    def _all_there(self) -> ShardPlacement:
        placed = self._shards.placed
        if placed.missing:
            self._shards.restore()
            placed = self._shards.placed
        if placed.missing:
            raise CairnError(
                f"{len(placed.missing)} of {len(self._shards.epoch.shards)} shards are missing, as workers were lost: "
                "run the same command again; it goes on where it stopped."
            )
        return placed
