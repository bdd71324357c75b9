"""An epoch: groups of segments of about as many features, and what is known of all photos."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.cluster.storage import open_storage
from index.errors import CairnError
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.layout import STORAGE_KEY
from retrieval.indexing.removal import remove_photos
from retrieval.search.options import SearchOptions
from retrieval.shards.engine import sharded_searcher
from retrieval.shards.epoch import group_segments, open_epoch
from retrieval.shards.storage_place import keep_storage_place
from tests.support.sharded import SharedAlbum, local_shards, query_at_turns
from tests.support.written_photos import Album


@given(st.lists(st.integers(0, 1000), max_size=30), st.integers(1, 12))
def test_groups_have_about_as_many_features(features: list[int], groups: int) -> None:
    found = group_segments(features, groups)
    assert sorted(place for group in found for place in group) == list(range(len(features)))
    assert len(found) == max(1, min(groups, len(features)))
    totals = [sum(features[place] for place in group) for group in found]
    # As the largest came first, a group is ahead of another by no more than one segment.
    assert max(totals) - min(totals) <= max(features, default=0)


def test_each_photo_has_one_shard(shared_album: SharedAlbum) -> None:
    collection = shared_album.collection
    epoch = open_epoch(collection, 4)
    assert [shard.number for shard in epoch.shards] == [0, 1, 2, 3]
    numbers = np.concatenate([shard.image_numbers for shard in epoch.shards])
    assert sorted(numbers.tolist()) == collection.index.image_numbers.tolist()
    for shard in epoch.shards:
        assert set(epoch.owners_of(shard.image_numbers).tolist()) == {shard.number}
        norms = collection.index.norms[np.searchsorted(collection.index.image_numbers, shard.image_numbers)]
        np.testing.assert_array_equal(shard.norms, norms)
    assert epoch.basics.whole.photos == len(numbers)
    with pytest.raises(KeyError, match="99"):
        epoch.owners_of([int(numbers[0]), 99])
    with pytest.raises(CairnError, match="into one shard at least, not into 0"):
        open_epoch(collection, 0)


def test_an_epoch_is_another_when_photos_are_removed(album: Album) -> None:
    album.put(a=0, b=3, c=6, d=1)
    album.index()
    with album.open() as collection:
        before = open_epoch(collection, 2)
        assert open_epoch(collection, 2).basics.key == before.basics.key
        remove_photos(collection, ["b.jpg"])
        collection.forget()
        after = open_epoch(collection, 2)
    assert after.basics.key != before.basics.key
    assert (before.basics.whole.photos, after.basics.whole.photos) == (4, 3)


def test_shards_are_found_in_the_storage_of_the_collection(album: Album) -> None:
    """What is not there yet is sent."""
    album.put(a=0, b=3, c=6, d=1)
    album.index()
    place = album.folder / "storage"
    with album.open() as collection:
        collection.catalogue.write(keep_setting, STORAGE_KEY, str(place))
        with pytest.raises(CairnError, match="which you have not named"):  # whoever sent the collection may have
            local_shards(collection, 2, 2)
        assert not place.exists()
        keep_storage_place(collection, str(place))
        shards = local_shards(collection, 2, 2)
        assert shards.epoch.basics.place == str(place)
        assert open_storage(str(place)).names("segments") == [one.folder.name for one in collection.segments]
        query = query_at_turns(collection, 0, 0)
        hits = sharded_searcher(collection, SearchOptions(engine="tf-idf"), shards).search(query.views).hits
        assert len(hits) == 4
