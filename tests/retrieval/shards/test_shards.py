"""Shards whose holders come and go: they move, and what cannot be had is reported."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from index.cluster.connection import ClusterError
from index.errors import CairnError
from retrieval.collection.collection import CollectionChanged
from retrieval.search.options import SearchOptions
from retrieval.search.photos import NotHere
from retrieval.search.searcher import Searcher
from retrieval.shards.engine import sharded_searcher
from retrieval.shards.epoch import open_epoch
from retrieval.shards.holder import PARTS, SEARCHES, Call, Holder
from retrieval.shards.holders import Lost
from retrieval.shards.part import Gone
from retrieval.shards.shards import Shards, ShardTimeouts
from tests.support.sharded import LocalHolders, SharedAlbum, query_at_turns

QUICK = ShardTimeouts(loading=0.2, look=0.0, avoided=0.0)
OPTIONS = SearchOptions(engine="signatures-sp")


def numbers_of(searcher: Searcher, views: Any) -> list[tuple[int, float, int]]:
    hits = searcher.search(views, top=50).hits
    return [(hit.number, hit.score, hit.verification.inliers) for hit in hits if hit.score > 0]


class Unsteady(LocalHolders):
    """Holders of which one goes when it is asked to do something for the nth time."""

    def __init__(self, number: int, method: str, nth: int = 1) -> None:
        super().__init__(number)
        self.method, self.left = method, nth

    def ask(self, calls: Any, seconds: float) -> dict[str, list[Any] | Exception]:
        """Ask, but for the one that goes."""
        for member, some in calls.items():
            if any(call.method == self.method for call in some):
                self.left -= 1
                if self.left == 0:
                    del self.there[member]
        return super().ask(calls, seconds)


@pytest.mark.parametrize("method", ["load", "begin", "finish", "verify", "best", "count_low", "open_engine"])
@pytest.mark.parametrize("nth", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_shards_of_a_lost_holder_move_during_a_search(shared_album: SharedAlbum, method: str, nth: int) -> None:
    collection = shared_album.collection
    holders = Unsteady(3, method, nth)
    searcher = sharded_searcher(collection, OPTIONS, Shards(open_epoch(collection, 6), holders, QUICK))
    views = query_at_turns(collection, 3, 4).views
    answer = searcher.search(views, top=50)
    assert len(holders.there) == 2 and answer.missing == ()
    assert numbers_of(searcher, views) == numbers_of(Searcher(collection, OPTIONS), views)


def test_a_holder_that_comes_takes_shards(shared_album: SharedAlbum) -> None:
    collection = shared_album.collection
    holders = LocalHolders(1)
    shards = Shards(open_epoch(collection, 4), holders, QUICK)
    searcher, views = sharded_searcher(collection, OPTIONS, shards), query_at_turns(collection, 3, 4).views
    expected = numbers_of(searcher, views)
    holders.there["another"] = Holder()
    assert numbers_of(searcher, views) == expected
    assert set(shards.placed.keys) == {"holder-0", "another"}


class Refusing(LocalHolders):
    """Holders of which some never load some shards."""

    def __init__(self, number: int, shards: Sequence[int]) -> None:
        super().__init__(number)
        self.lost = set(shards)

    def ask(self, calls: Any, seconds: float) -> dict[str, list[Any] | Exception]:
        """Ask, but load no part with one of the shards."""
        refused = {
            member
            for member, some in calls.items()
            for call in some
            if call.method == "load" and {shard.number for shard in call.arguments[2]} & self.lost
        }
        time.sleep(0.05 * len(refused))
        found = super().ask({member: some for member, some in calls.items() if member not in refused}, seconds)
        return found | {member: Lost([member]) for member in refused}


def test_an_answer_says_what_is_missing(shared_album: SharedAlbum) -> None:
    """And has of the other photos what they have among all."""
    collection = shared_album.collection
    holders = Refusing(3, [1])
    shards = Shards(
        open_epoch(collection, 3), holders, ShardTimeouts(opening=0.3, loading=0.1, look=100.0, avoided=0.0)
    )
    options = SearchOptions(engine="tf-idf")
    searcher, views = sharded_searcher(collection, options, shards), query_at_turns(collection, 3, 4).views
    answer = searcher.search(views, top=50)
    assert answer.missing == (1,)
    whole = numbers_of(Searcher(collection, options), views)
    there = {number for shard in (0, 2) for number in shards.epoch.shards[shard].image_numbers.tolist()}
    assert [(hit.number, hit.score, 0) for hit in answer.hits if hit.score > 0] == [
        one for one in whole if one[0] in there
    ]
    gone = int(shards.epoch.shards[1].image_numbers[0])
    with pytest.raises(NotHere, match="no worker holds now"):
        searcher.index.images.features(gone)
    assert len(searcher.search(views, np.array([gone])).hits) == 0
    # It is there again as soon as somebody takes it.
    holders.lost.clear()
    shards.patience = QUICK
    assert numbers_of(searcher, views) == whole
    assert searcher.search(views).missing == ()


def test_without_holders_nothing_is_answered(shared_album: SharedAlbum) -> None:
    collection = shared_album.collection
    shards = Shards(open_epoch(collection, 2), LocalHolders(0), QUICK)
    with pytest.raises(ClusterError, match="No worker of the cluster holds a shard"):
        sharded_searcher(collection, OPTIONS, shards).search(query_at_turns(collection, 3, 4).views)


def test_segments_that_are_gone_are_those_of_a_collection_that_has_changed(shared_album: SharedAlbum) -> None:
    collection = shared_album.collection
    epoch = open_epoch(collection, 2)
    epoch = replace(epoch, shards=(epoch.shards[0], replace(epoch.shards[1], segments=("segments/000099",))))
    with pytest.raises(CollectionChanged, match=r"cannot open its shards: .*000099"):
        Shards(epoch, LocalHolders(2), QUICK).place()


def test_a_holder_forgets_what_is_long_ago(shared_album: SharedAlbum, monkeypatch: pytest.MonkeyPatch) -> None:
    """And learns of it again where it is not over."""
    collection = shared_album.collection
    shards = Shards(open_epoch(collection, 2), LocalHolders(1), QUICK)
    searcher, views = sharded_searcher(collection, OPTIONS, shards), query_at_turns(collection, 3, 4).views
    expected = numbers_of(searcher, views)
    (holder,) = shards.holders.there.values()  # type: ignore[attr-defined]
    for one in range(PARTS):
        holder.load(str(one), shards.epoch.basics, shards.epoch.shards)
    assert not holder.has(next(iter(shards.placed.keys.values())))
    assert numbers_of(searcher, views) == expected
    monkeypatch.setattr("retrieval.shards.holder.SEARCHES", 1)
    boards = [searcher.search(views, top=3) for _ in range(3)]
    assert SEARCHES > 1 and [list(one) for one in searcher.aligned(boards[:1], match_all=True, top=3)]
    with pytest.raises(Gone):
        holder.run([Call("best", ("nothing", np.ones(2, np.float32), 1, []))])


def test_searches_that_are_over_are_let_go_of(shared_album: SharedAlbum) -> None:
    collection = shared_album.collection
    shards = Shards(open_epoch(collection, 2), LocalHolders(1), QUICK)
    searcher, views = sharded_searcher(collection, OPTIONS, shards), query_at_turns(collection, 3, 4).views
    for _ in range(5):
        searcher.search(views)
    (holder,) = shards.holders.there.values()  # type: ignore[attr-defined]
    assert len(holder._searches) <= 2


def test_what_is_borrowed_and_damaged_is_borrowed_by_nobody(
    shared_album: SharedAlbum, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = shared_album.collection
    if collection.augmentation is None:
        pytest.skip("nothing is borrowed")
    shards = Shards(open_epoch(collection, 4), LocalHolders(2), QUICK)
    options = SearchOptions(engine="tf-idf")
    searcher, views = sharded_searcher(collection, options, shards), query_at_turns(collection, 3, 4).views
    with_loans = numbers_of(searcher, views)
    assert searcher.index.borrows
    plain = numbers_of(Searcher(collection, SearchOptions(engine="tf-idf", augmented=False)), views)
    assert with_loans != plain
    (lent, *_) = shards.epoch.basics.borrowers or ()
    first = next(iter(shards.holders.there.values()))  # type: ignore[attr-defined]
    damage(first, lent[0], monkeypatch)
    assert numbers_of(searcher, views) == plain
    assert not searcher.index.borrows


def damage(holder: Holder, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one holder find what is borrowed damaged."""
    for part in holder._parts.values():
        assert part.borrowed is not None
        for segment in part.borrowed.segments:
            monkeypatch.setattr(type(segment), "add_products", _failing(segment.folder.name, segment.add_products))
            assert name.endswith(segment.folder.name)


def _failing(name: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    kept = otherwise.__func__  # type: ignore[attr-defined]

    def add_products(self: Any, *arguments: Any) -> Any:
        if self.folder.parent.name == "augmentation" and self.folder.name == name:
            raise CairnError("damaged")
        return kept(self, *arguments)

    return add_products
