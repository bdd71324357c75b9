"""Strict links: pairs checked, pairs beyond doubt, and positions of inliers."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import CairnError
from learning.judge import strict_links
from learning.judge.strict_links import LinkOptions, StrictLinks, candidate_pairs, link_strictly, strict_pairs
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.groups.links import link_photos
from retrieval.indexing.adding import index_photos
from tests.support.judged_photos import PICTURES, collection_of
from tests.support.picture_views import SIZE, write_views

FOUND = st.dictionaries(
    st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] < pair[1]), st.integers(1, 99)
)


def test_photos_that_are_found_with_the_same_photo_are_looked_at_too() -> None:
    #  1 ═ 2 ─ 3    4 ─ 5
    assert candidate_pairs({(1, 2): 50, (2, 3): 9, (4, 5): 7}, 9) == [(1, 2), (1, 3), (2, 3), (4, 5)]
    # A number of each photo: the pairs of most inliers first.
    assert candidate_pairs({(1, 2): 50, (2, 3): 9, (4, 5): 7}, 1) == [(1, 2), (4, 5)]


@given(FOUND, st.integers(1, 4))
def test_no_photo_is_looked_at_more_often_than_is_allowed(found: dict[tuple[int, int], int], most: int) -> None:
    pairs = candidate_pairs(found, most)
    assert pairs == sorted(set(pairs)) and all(one < other for one, other in pairs)
    assert max(Counter(photo for pair in pairs for photo in pair).values(), default=0) <= most
    near = {(a, c) for a, b in found for c, d in found if {a, b} & {c, d}}
    assert all(pair in found or {(pair[0], x) for _, x in near} for pair in pairs)
    assert set(candidate_pairs(found, 99)) >= set(found)


def test_few_inliers_are_enough_where_a_third_photo_agrees() -> None:
    options = LinkOptions(inliers=40, agreed=20)
    # 1-2-3 agree; 4-5 have as many inliers without a third photo; 3-6 are agreed on by a photo that is not sure itself
    counts = {(1, 2): 40, (2, 3): 90, (1, 3): 20, (4, 5): 39, (3, 6): 25, (2, 6): 39, (1, 4): 19}
    assert strict_pairs(counts, options) == {(1, 2), (2, 3), (1, 3)}
    assert strict_pairs(counts | {(2, 6): 40}, options) == {(1, 2), (2, 3), (1, 3), (2, 6), (3, 6)}
    with pytest.raises(CairnError, match="it may be no fewer"):
        LinkOptions(inliers=10)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    with collection_of(tmp_path_factory.mktemp("strict"), PICTURES, keep_descriptors=True) as collection:
        yield collection


def linked(collection: Collection, **options: object) -> StrictLinks:
    found = {pair: link.inliers for pair, link in link_photos(collection).items()}
    return link_strictly(collection, found, LinkOptions(), **options)  # type: ignore[arg-type]


def test_views_of_one_picture_are_linked_and_their_inliers_are_where_they_belong(
    pictures: Collection, tmp_path: Path
) -> None:
    links = linked(pictures)
    rows = {row.number: Path(row.path) for row in pictures.catalogue.read(all_indexed)}
    same = {
        (one, other)
        for one in rows
        for other in rows
        if one < other and rows[one].stem.split("_")[0] == rows[other].stem.split("_")[0]
    }
    assert set(links.inliers) == same
    maps = write_views(tmp_path, PICTURES)  # from each picture to its views
    for (one, other), centres in links.inliers.items():
        assert len(centres) >= LinkOptions().agreed
        points = centres * max(SIZE) - 0.5
        first, second = (np.vstack([maps[rows[number].name], [0, 0, 1]]) for number in (one, other))
        mapped = (second @ np.linalg.inv(first) @ np.vstack([points[:, 0].T, np.ones(len(points))]))[:2].T
        assert np.median(np.linalg.norm(mapped - points[:, 1], axis=1)) < 1.5


def test_what_was_matched_before_is_not_matched_again(
    pictures: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[tuple[str, int, int]] = []
    first = linked(pictures, known=tmp_path / "known.npz", progress=lambda *step: reported.append(step))
    assert reported[-1][0] == strict_links.STEP and reported[-1][1] == reported[-1][2] == len(reported) >= len(
        first.inliers
    )
    monkeypatch.setattr(strict_links, "_match", lambda *_: pytest.fail("matched again"))
    again = linked(pictures, known=tmp_path / "known.npz")
    assert again.doubtful == first.doubtful and again.inliers.keys() == first.inliers.keys()
    assert all(np.array_equal(again.inliers[pair], centres) for pair, centres in first.inliers.items())
    (tmp_path / "known.npz").write_bytes(b"something else")
    with pytest.raises(CairnError, match=r"known\.npz is damaged"):
        linked(pictures, known=tmp_path / "known.npz")


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing(pictures: Collection) -> None:
    one, two = linked(pictures), linked(pictures, workers=2)
    assert one.doubtful == two.doubtful and list(one.inliers) == list(two.inliers)
    assert all(np.array_equal(two.inliers[pair], centres) for pair, centres in one.inliers.items())


def test_copies_of_a_file_are_no_link(tmp_path: Path) -> None:
    with collection_of(tmp_path, {"coffee": 2, "rocket": 1}, keep_descriptors=True) as collection:
        shutil.copy(tmp_path / "photos" / "coffee_0.png", tmp_path / "photos" / "copy.png")
        index_photos(collection, [tmp_path / "photos"])
        links = linked(collection)
        names = {row.number: row.name for row in collection.catalogue.read(all_indexed)}
        linked_names = {frozenset(names[number] for number in pair) for pair in links.inliers}
        assert linked_names == {frozenset(("coffee_0.png", "coffee_1.png")), frozenset(("copy.png", "coffee_1.png"))}
        assert frozenset(("coffee_0.png", "copy.png")) in {
            frozenset(names[number] for number in pair) for pair in links.doubtful
        }


def test_a_collection_without_descriptors_is_refused(linked: Path) -> None:
    with Collection.open(linked) as collection, pytest.raises(CairnError, match="keeps no descriptors"):
        link_strictly(collection, {}, LinkOptions())
