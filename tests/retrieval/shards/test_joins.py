"""A collection joined with itself, by shard: the links are those that one machine finds, whatever is lost meanwhile."""

import numpy as np
import pytest

from index.errors import CairnError
from learning.mining.proposals import LocalRanker, ShardedRanker
from retrieval.groups.links import _OPTIONS, ask_photos, ask_shards
from retrieval.search.options import SearchOptions
from retrieval.search.views import indexed_view
from retrieval.shards.joins import AT_ONCE, Joins
from retrieval.shards.shards import ShardTimeouts
from tests.support.sharded import LocalHolders, SharedAlbum, local_shards


@pytest.mark.slow
@pytest.mark.parametrize(("shards", "holders"), [(1, 1), (3, 2), (8, 3)])
def test_links_are_those_of_one_machine(shared_album: SharedAlbum, shards: int, holders: int) -> None:
    collection = shared_album.collection
    numbers = collection.index.image_numbers.tolist()
    assert len(numbers) > AT_ONCE
    there = dict(ask_shards(collection, numbers, shared_album.sharded(shards, holders)))
    assert there == dict(ask_photos(collection, numbers))
    assert any(there.values())
    assert list(there) == numbers


def test_what_holders_know_is_forgotten(shared_album: SharedAlbum) -> None:
    collection = shared_album.collection
    shards = local_shards(collection, 3, 2)
    list(ask_shards(collection, collection.index.image_numbers.tolist(), shards))
    assert isinstance(shards.holders, LocalHolders)
    assert all(len(holder._searches) <= AT_ONCE for holder in shards.holders.there.values())


def test_a_holder_that_is_lost_between_two_messages(shared_album: SharedAlbum) -> None:
    collection = shared_album.collection
    numbers = collection.index.image_numbers.tolist()[:6]
    shards = local_shards(collection, 4, 3)
    with Joins(collection, _OPTIONS, shards).ask(
        [indexed_view(image) for image in shards.epoch.index.images.features_of(numbers)]
    ) as requested:
        best = requested.best(4)
        wanted = [candidates.numbers.tolist() for candidates in best]
        before = requested.verify(wanted)
        assert isinstance(shards.holders, LocalHolders)
        del shards.holders.there[min(shards.placed.keys)]
        after = requested.verify(wanted)
    assert [[one.inliers for one in some] for some in before] == [[one.inliers for one in some] for some in after]
    assert len(shards.placed.keys) == 2


def test_nothing_is_said_without_all_shards(shared_album: SharedAlbum) -> None:
    collection = shared_album.collection
    shards = local_shards(collection, 4, 2, ShardTimeouts(opening=0.1, loading=0.1, look=0.0))
    placed = shards.placed
    object.__setattr__(placed, "missing", (2,))
    shards.restore = lambda: None  # type: ignore[method-assign]
    with pytest.raises(CairnError, match="1 of 4 shards are missing"):
        list(ask_shards(collection, collection.index.image_numbers.tolist(), shards))


def test_an_engine_that_needs_totals_is_no_engine_for_it(shared_album: SharedAlbum) -> None:
    with pytest.raises(ValueError, match="totals"):
        Joins(shared_album.collection, SearchOptions(engine="signatures-sp"), shared_album.sharded(3, 2))


@pytest.mark.parametrize(("shards", "holders"), [(1, 1), (4, 3)])
def test_photos_are_ranked_for_each_other_as_on_one_machine(
    shared_album: SharedAlbum, shards: int, holders: int
) -> None:
    collection = shared_album.collection
    numbers = collection.index.image_numbers.astype(np.int64)[::-1].copy()
    photos = [3, *range(len(numbers) - 4, 0, -1), 3]
    here = LocalRanker(collection, numbers).best_of(photos)
    assert ShardedRanker(collection, numbers, shared_album.sharded(shards, holders)).best_of(photos) == here
    assert any(here)
