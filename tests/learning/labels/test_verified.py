"""Labels by verification: mutually verified photos, and all others."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.errors import CairnError
from learning.labels.labels import hold_out
from learning.labels.verified import relate, verified_relevance
from retrieval.catalogue.changes import make_tombstones
from retrieval.catalogue.photos import all_indexed, photo_of_name
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.adding import index_photos
from tests.support.picture_views import write_views

OBJECTS = {"astronaut": 3, "chelsea": 3, "coffee": 2, "rocket": 1}


def test_photos_are_positives_where_enough_inliers_speak_for_them() -> None:
    #  2 ═ 3 ═ 5 ─ 9    4 ═ 8    6 ─ 7    1
    inliers = {(2, 3): 30, (3, 5): 20, (5, 9): 19, (4, 8): 25, (6, 7): 5, (4, 5): 4}
    relevance, first = relate(np.arange(1, 11), inliers, 20)
    assert relevance.database.tolist() == list(range(1, 11))
    assert relevance.queries.tolist() == [2, 3, 5, 4, 8]
    assert relevance.objects.tolist() == [0, 0, 0, 1, 1] and first == [2, 4]
    assert [positives.tolist() for positives in relevance.positives] == [[3], [2, 5], [3], [8], [4]]
    # 2 and 5 are of one component; what too few inliers speak for is neither right nor wrong.
    assert [ignored.tolist() for ignored in relevance.ignored] == [[2, 5], [3], [2, 4, 5, 9], [4, 5], [8]]


@settings(deadline=None)
@given(st.dictionaries(st.tuples(st.integers(0, 14), st.integers(0, 14)), st.integers(1, 40), max_size=30))
def test_relations_are_symmetric_and_stay_within_their_object(found: dict[tuple[int, int], int]) -> None:
    inliers = {pair: count for pair, count in found.items() if pair[0] < pair[1]}
    relevance, first = relate(np.arange(15), inliers, 20)
    of = dict(zip(relevance.queries.tolist(), relevance.objects.tolist(), strict=True))
    positives = dict(zip(of, (set(row.tolist()) for row in relevance.positives), strict=True))
    strong = {pair for pair, count in inliers.items() if count >= 20}
    assert {(one, other) for one in of for other in positives[one] if one < other} == strong
    assert all(one in positives[other] for one in of for other in positives[one])
    assert all(of[one] == of[other] for one, other in strong)
    assert first == [min(photo for photo in of if of[photo] == number) for number in range(len(first))] == sorted(first)
    for query, row, ignored in zip(relevance.queries.tolist(), relevance.positives, relevance.ignored, strict=True):
        assert query in ignored and not set(row.tolist()) & set(ignored.tolist())
        assert {photo for photo in of if of[photo] == of[query]} <= {*row.tolist(), *ignored.tolist()}
    training, held = hold_out(relevance, np.random.default_rng(0))
    assert all(len(row) for row in (*training.positives, *held.positives))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """A collection of photos that show the same only where they show the same object."""
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "photos").mkdir()
    write_views(folder / "photos", OBJECTS)
    with Collection.create(folder / "pictures.cairn", CollectionOptions(signature="none")) as collection:
        index_photos(collection, [folder / "photos"])
    with Collection.open(folder / "pictures.cairn") as collection:
        yield collection


def test_photos_of_one_picture_verify_each_other_and_no_others(pictures: Collection) -> None:
    reported: list[tuple[str, int, int]] = []
    relevance = verified_relevance(pictures, progress=lambda *step: reported.append(step))
    photos = sum(OBJECTS.values())
    assert reported == [("verify", done, photos) for done in range(1, photos + 1)]
    names = {row.number: Path(row.path).stem.rpartition("_")[0] for row in pictures.catalogue.read(all_indexed)}
    assert relevance.database.tolist() == sorted(names)
    assert relevance.names == ("astronaut_0.png", "chelsea_0.png", "coffee_0.png")
    assert np.bincount(relevance.objects).tolist() == [3, 3, 2]
    for query, positives in zip(relevance.queries.tolist(), relevance.positives, strict=True):
        others = [number for number in names if names[number] == names[query] and number != query]
        assert positives.tolist() == others


def test_the_number_of_workers_changes_nothing(pictures: Collection) -> None:
    one, two = (verified_relevance(pictures, min_inliers=5, workers=workers) for workers in (1, 2))
    for name in ("queries", "database", "objects", "names"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    for name in ("positives", "ignored"):
        assert [row.tolist() for row in getattr(one, name)] == [row.tolist() for row in getattr(two, name)]


def test_a_collection_in_which_nothing_is_verified_is_refused(pictures: Collection) -> None:
    with pytest.raises(CairnError, match=r"^No two photos of .* are verified by 100000 inliers: ask for fewer, .*\.$"):
        verified_relevance(pictures, min_inliers=100_000)
    with pytest.raises(CairnError, match="one inlier at least, not by 0"):
        verified_relevance(pictures, min_inliers=0)


def test_a_photo_that_was_removed_is_not_asked_with(pictures: Collection, tmp_path: Path) -> None:
    shutil.copytree(pictures.folder, tmp_path / "copy.cairn")
    with Collection.open(tmp_path / "copy.cairn") as copy:
        gone = copy.catalogue.read(photo_of_name, "coffee_0.png")
        assert gone is not None
        copy.catalogue.write(make_tombstones, [gone.number])
    with Collection.open(tmp_path / "copy.cairn") as copy:
        relevance = verified_relevance(copy)
    assert gone.number not in relevance.database
    assert relevance.names == ("astronaut_0.png", "chelsea_0.png")


def test_of_a_large_object_a_part_is_issued() -> None:
    chain = {(photo, photo + 1): 30 for photo in range(299)}
    relevance, first = relate(np.arange(320), chain, 20, most=80)
    assert len(relevance.queries) == 80 and first == [0]
    again, _ = relate(np.arange(320), chain, 20, most=80)
    other, _ = relate(np.arange(320), chain, 20, most=80, seed=1)
    np.testing.assert_array_equal(relevance.queries, again.queries)
    assert not np.array_equal(relevance.queries, other.queries)
    for photo, positives, ignored in zip(
        relevance.queries.tolist(), relevance.positives, relevance.ignored, strict=True
    ):
        assert set(positives.tolist()) == {photo - 1, photo + 1} & set(range(300))
        assert set(ignored.tolist()) == set(range(300)) - set(positives.tolist())
