"""The shards of an epoch on their holders: distribution, redistribution if a holder is lost, and calls."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from index.cluster.connection import ClusterError
from index.errors import CairnError
from index.similarity import SimilarityMatrix
from retrieval.collection.collection import CollectionChanged
from retrieval.matching.verification import NOTHING, Verification
from retrieval.search.options import SearchOptions
from retrieval.shards.epoch import Epoch
from retrieval.shards.holder import Call
from retrieval.shards.holders import Holders, Lost
from retrieval.shards.part import Gone
from retrieval.shards.placement import place_shards

T = TypeVar("T")
_TRIES = 5  # attempts of one request
_LEAST = 2.0  # least seconds for loading shards


@dataclass(frozen=True)
class ShardTimeouts:
    """How long is waited, in seconds."""

    opening: float = 300.0  # for the shards when they are first loaded
    loading: float = 5.0  # for shards of a lost holder; then searches go on without them
    answer: float = 20.0  # for an answer of a holder; then it counts as lost
    look: float = 2.0  # between two checks of the members
    avoided: float = 30.0  # before a holder that did not answer gets shards again


@dataclass(frozen=True)
class ShardPlacement:
    """Which holder has which shards."""

    generation: int  # differs from that of any other
    keys: dict[str, str]  # each holder's key of its part, by the name of the holder
    owners: dict[int, str]  # holder of each shard
    missing: tuple[int, ...]  # shards without a holder, ascending


class Shards:
    """The shards of an epoch."""

    def __init__(self, epoch: Epoch, holders: Holders, patience: ShardTimeouts | None = None) -> None:
        self.epoch = epoch
        self.holders = holders
        self.patience = patience or ShardTimeouts()
        self._placed: ShardPlacement | None = None
        self._members: frozenset[str] = frozenset()
        self._avoided: dict[str, float] = {}  # until when a holder gets nothing, of time.monotonic
        self._looked = 0.0
        self._generation = 0
        self._opened: set[tuple[int, SearchOptions]] = set()
        self._over: list[str] = []  # searches that holders may delete

    @property
    def placed(self) -> ShardPlacement:
        """Places of the shards; they are distributed on first use."""
        if self._placed is None:
            self._place(self.patience.opening)
            assert self._placed is not None
        return self._placed

    def place(self) -> ShardPlacement:
        """Distribute the shards, if not done yet; see `placed`."""
        return self.placed

    def refresh(self) -> None:
        """Check the members from time to time, and redistribute shards if members changed or shards are missing."""
        if self._placed is None or time.monotonic() - self._looked < self.patience.look:
            return
        if self._free(self._there()) != self._members or self._placed.missing:
            self._place(self.patience.loading)

    def lose(self, members: Iterable[str]) -> None:
        """Redistribute the shards of holders that did not answer."""
        until = time.monotonic() + self.patience.avoided
        self._avoided |= dict.fromkeys(members, until)
        self._place(self.patience.loading)

    def restore(self) -> None:
        """Reload parts that a holder has lost."""
        self._place(self.patience.loading)

    def open_engine(self, options: SearchOptions, similarity: SimilarityMatrix | None) -> None:
        """Let all holders open an engine, if not open yet; raises `Lost` if one does not answer."""
        placed = self.placed
        if (placed.generation, options) not in self._opened:
            self.ask({member: [Call("open_engine", (key, options, similarity))] for member, key in placed.keys.items()})
            self._opened.add((placed.generation, options))

    def ask(self, calls: Mapping[str, Sequence[Call]]) -> dict[str, list[Any]]:
        """Call holders, and return the results of each. Raises Lost if some did not answer, Gone if one no longer has
        an object, or the error of one.
        """
        over, self._over = self._over, []
        if over:
            calls = {member: [*some, Call("release", (over,))] for member, some in calls.items()}
        replies = self.holders.ask(calls, self.patience.answer)
        lost = [member for member, reply in replies.items() if isinstance(reply, Lost)]
        if lost:
            raise Lost(lost)
        answers: dict[str, list[Any]] = {}
        for member, reply in replies.items():
            if isinstance(reply, Exception):
                raise reply
            answers[member] = reply[: len(reply) - bool(over)]
        return answers

    def steadily(self, ask: Callable[[], T]) -> T:
        """Make a request; if holders are lost, redistribute their shards and repeat it."""
        for _ in range(_TRIES):
            try:
                return ask()
            except Lost as error:
                self.lose(error.members)
            except Gone:
                self.restore()
        raise ClusterError("Workers of the cluster are lost one after another: see their logs, and ask again.")

    def by_owner(self, numbers: Sequence[int]) -> tuple[dict[str, list[int]], list[int]]:
        """Positions of photos in a list by holder, and of those without a holder. Raises KeyError."""
        owners = self.placed.owners
        groups: dict[str, list[int]] = {}
        missing = []
        for place, shard in enumerate(self.epoch.owners_of(numbers).tolist()):
            if shard in owners:
                groups.setdefault(owners[shard], []).append(place)
            else:
                missing.append(place)
        return groups, missing

    def verify(
        self, wanted: Sequence[Sequence[int]], call: Callable[[str, int, list[int]], Call]
    ) -> list[list[Verification]]:
        """Verify some photos for each of several queries. A photo whose shard has no holder is not found.

        `call` makes the call of a holder: of its name, the place of a query, and numbers of its photos.
        """
        calls: dict[str, list[Call]] = {}
        requests: dict[str, list[tuple[int, list[int]]]] = {}  # of each call: the query, and places of its photos
        for one, numbers in enumerate(wanted):
            for member, places in self.by_owner(numbers)[0].items():
                calls.setdefault(member, []).append(call(member, one, [numbers[place] for place in places]))
                requests.setdefault(member, []).append((one, places))
        results = [[NOTHING] * len(numbers) for numbers in wanted]
        for member, replies in (self.ask(calls) if calls else {}).items():
            for (one, places), several in zip(requests[member], replies, strict=True):
                for place, verification in zip(places, several, strict=True):
                    results[one][place] = verification
        return results

    def forget(self, token: str) -> None:
        """Let holders delete a search, with the next message."""
        self._over.append(token)

    def _there(self) -> list[str]:
        self._looked = time.monotonic()
        return self.holders.members()

    def _free(self, members: Iterable[str]) -> frozenset[str]:
        """Holders that may get shards."""
        now = time.monotonic()
        return frozenset(member for member in members if self._avoided.get(member, now) <= now)

    def _place(self, seconds: float) -> None:
        """Distribute all shards, or as many as can be loaded in time."""
        end = time.monotonic() + seconds
        failing: set[str] = set()
        refused: dict[str, Exception] = {}
        held: dict[str, tuple[int, ...]] = {}
        while members := self._free(self._there()) - failing:
            late = time.monotonic() > end  # one more attempt with those that answer
            wanted = place_shards(len(self.epoch.shards), sorted(members))
            now: dict[str, tuple[int, ...]] = {}
            failed = self._load(wanted, max(_LEAST, end - time.monotonic()), now)
            held = max(held, now, key=lambda one: sum(map(len, one.values())))
            failing |= failed.keys()
            for member, error in failed.items():
                if isinstance(error, Lost):
                    self._avoided[member] = time.monotonic() + self.patience.avoided
                else:
                    refused[member] = error
            if not failed or late:
                break
        self._members = self._free(self._there())
        nobody = not self._members - failing
        owners = {shard: member for member, shards in held.items() for shard in shards}
        missing = tuple(shard.number for shard in self.epoch.shards if shard.number not in owners)
        if not owners or (missing and refused and nobody):
            self._placed = None
            raise _refusal(refused)
        self._generation += 1
        self._opened.clear()
        self._placed = ShardPlacement(
            self._generation, {member: self._key(shards) for member, shards in held.items()}, owners, missing
        )

    def _load(
        self, wanted: Mapping[str, tuple[int, ...]], seconds: float, held: dict[str, tuple[int, ...]]
    ) -> dict[str, Exception]:
        """Have holders load shards; note which have, and return the errors of the others."""
        keys = {member: self._key(shards) for member, shards in wanted.items()}
        failed: dict[str, Exception] = {}
        known = self.holders.ask({member: [Call("has", (key,))] for member, key in keys.items()}, seconds)
        loads: dict[str, list[Call]] = {}
        for member, reply in known.items():
            if isinstance(reply, Exception):
                failed[member] = reply
            elif reply[0]:
                held[member] = wanted[member]
            else:
                shards = [self.epoch.shards[one] for one in wanted[member]]
                loads[member] = [Call("load", (keys[member], self.epoch.basics, shards))]
        for member, reply in self.holders.ask(loads, seconds).items():
            if isinstance(reply, Exception):
                failed[member] = reply
            else:
                held[member] = wanted[member]
        return failed

    def _key(self, shards: Iterable[int]) -> str:
        return f"{self.epoch.basics.key}:{','.join(map(str, shards))}"


def _refusal(refused: Mapping[str, Exception]) -> CairnError:
    """The error that says why a shard has no holder."""
    for member, error in refused.items():
        if isinstance(error, CairnError):  # a file is missing, maybe as segments were merged
            return CollectionChanged(
                "The worker {member} cannot open its shards: {reason}.", member=member, reason=error.message
            )
        raise error
    return ClusterError("No worker of the cluster holds a shard of the collection: start some, and ask again.")
