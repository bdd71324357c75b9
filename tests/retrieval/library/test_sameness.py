"""A quick look at how many photos show the same, with links and without."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrieval.collection.collection import Collection
from retrieval.groups.groups import group_photos, read_groups
from retrieval.library.sameness import look
from retrieval.library.searches import Searches
from tests.conftest import Indexed


@pytest.fixture
def searches(indexed: Indexed, tmp_path: Path) -> Iterator[Searches]:
    with Collection.open(Path(shutil.copytree(indexed.folder, tmp_path / "copy.cairn"))) as collection:
        yield Searches(collection)


def test_a_sample_is_searched_for_and_links_are_counted_where_there_are_some(searches: Searches) -> None:
    photos = len(searches.collection.index.image_numbers)
    sampled = look(searches, sample=5)
    assert (sampled.photos, sampled.looked, sampled.scenes) == (photos, 5, None)
    assert 0 < sampled.alike <= 5 and "Of 5 photos that were looked at" in sampled.sentence
    assert look(searches, sample=5, seconds=0).looked == 1  # a word, whatever the time
    group_photos(searches.collection)
    linked = look(searches)
    groups = read_groups(searches.collection).groups
    own = [{*one.photos} - {*one.duplicates} for one in groups]
    assert linked.looked == linked.photos == photos
    assert linked.scenes == sum(len(one) > 1 for one in own)
    assert linked.alike == sum(len(one) for one in own if len(one) > 1)
