"""Objects of a photo by its links: regions of a known geometry, whichever of the two photos was asked with."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.orm import Session

from retrieval.catalogue.curation.hidden import hide
from retrieval.catalogue.curation.rejections import reject
from retrieval.catalogue.link_store import KIND_KEY, begin_links, keep_links
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.groups.links import Link, decode_links, encode_links, found_numbers
from retrieval.groups.objects import ObjectOptions, PhotoObjects, SeenObject, seen_objects


def row(number: int, width: int = 200, height: int = 100) -> Any:
    return SimpleNamespace(number=number, width=width, height=height)


def into(number: int, other: int, x: float, y: float, scale: float, inliers: int = 30) -> Link:
    """A link of another photo that was asked with: where its frame, `scale` long, lies in the photo of 200 × 100."""
    return Link(other, number, inliers, (scale, 0.0, x, 0.0, scale, y))


def inverse(link: Link) -> Link:
    """The same, found from the other side."""
    (a, b, x), (c, d, y) = np.array(link.transform).reshape(2, 3).tolist()
    matrix = np.linalg.inv([[a, b, x], [c, d, y], [0, 0, 1]])
    return Link(link.found, link.query, link.inliers, tuple(matrix[:2].ravel().tolist()))


def test_a_photo_s_frame_lies_where_the_map_says_from_either_side() -> None:
    # Its longer side is half of the photo's, from 0.25 across and 0.1 down, in units of the photo's longer side.
    link = into(1, 2, 0.25, 0.1, 0.5)
    expected = [[49.5, 19.5], [149.5, 19.5], [149.5, 69.5], [49.5, 69.5]]
    for one in (link, inverse(link)):
        (found,) = seen_objects(row(1), [one], {2: row(2)})
        assert found == SeenObject(pytest.approx(np.array(expected), abs=0.01), (2,), 30, 0.25, False)


def test_a_turned_frame_is_clipped_to_the_photo() -> None:
    """By a quarter clockwise about its corner, which lies at 0.9, 0.2: half of it is left of the photo's right edge."""
    (found,) = seen_objects(row(1), [Link(2, 1, 30, (0.0, -0.4, 0.9, 0.4, 0.0, 0.2))], {2: row(2)})
    assert sorted(map(tuple, found.region)) == [(139.5, 39.5), (139.5, 99.5), (179.5, 39.5), (179.5, 99.5)]
    assert found.share == pytest.approx(40 * 60 / 20_000)


def test_regions_that_overlap_are_one_object_and_all_of_the_photo_is_told() -> None:
    links = [
        into(1, 5, 0.0, 0.0, 0.4, 90),
        into(1, 3, 0.5, 0.2, 0.5, 60),
        into(1, 4, 0.52, 0.21, 0.5, 50),
        into(1, 6, -0.1, -0.1, 1.3, 40),
        into(1, 7, 0.5, 0.2, 0.49, 30),
    ]
    rows = {number: row(number) for number in range(3, 8)}
    found = seen_objects(row(1), links, rows)
    assert [(one.photos, one.inliers, one.whole) for one in found] == [
        ((3, 4, 7), 60, False),
        ((5,), 90, False),
        ((6,), 40, True),
    ]
    assert found[2].share == 1.0
    assert [one.photos for one in seen_objects(row(1), links, rows, ObjectOptions(most=1))] == [(3, 4, 7)]
    # What has gone since does not count.
    assert [one.photos for one in seen_objects(row(1), links, {5: row(5)})] == [(5,)]


@pytest.mark.parametrize(
    "transform",
    [
        (0.0,) * 6,
        (1e-200, 0.0, 0.0, 0.0, 1e-200, 0.0),
        (0.5, 0.0, 3.0, 0.0, 0.5, 0.0),  # next to the photo
        (-0.5, 0.0, 0.5, 0.0, 0.5, 0.0),  # mirrored
        (0.5, 0.0, 0.0, 0.0, 0.001, 0.0),  # a line
        (1e9, 0.0, 0.0, 0.0, 1e9, 0.0),
    ],
)
def test_what_is_no_view_is_no_object(transform: tuple[float, ...]) -> None:
    for link in (Link(1, 2, 30, transform), Link(2, 1, 30, transform)):
        assert [one for one in seen_objects(row(1), [link], {2: row(2)}) if one.share < 0.9] == []
    assert seen_objects(row(1, 0, 0), [into(1, 2, 0, 0, 1)], {2: row(2)}) == []


@given(st.lists(st.floats(-3, 3), min_size=6, max_size=6), st.integers(20, 400), st.integers(20, 400))
def test_regions_never_leave_the_photo(transform: list[float], width: int, height: int) -> None:
    for link in (Link(1, 2, 30, tuple(transform)), Link(2, 1, 30, tuple(transform))):
        for one in seen_objects(row(1, width, height), [link], {2: row(2, 300, 200)}):
            corners = np.array(one.region)
            assert 3 <= len(corners) <= 8 and 0 < one.share <= 1
            assert (corners >= -0.51).all() and (corners <= [width - 0.49, height - 0.49]).all()


@pytest.fixture
def collection(tmp_path: Path) -> Any:
    """Of five photos, whose links are written by hand."""
    with Collection.create(tmp_path / "c.cairn", CollectionOptions(signature="none")) as opened:
        yield opened


def keep(collection: Collection, links: dict[int, list[Link]]) -> None:
    collection.catalogue.write(begin_links, "kind")
    collection.catalogue.write(keep_links, "kind", {number: encode_links(found) for number, found in links.items()})
    (collection.folder / "groups.json").write_text("{}" + " " * len(links))


def test_links_are_found_from_both_sides(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Photos that were added later know the earlier ones, which do not know them."""

    def there(_: Session, numbers: list[int]) -> list[ImageRow]:
        return [row(number) for number in numbers if number != 4]

    monkeypatch.setattr("retrieval.groups.objects.rows_there", there)
    objects = PhotoObjects(collection)
    assert objects.of(row(1)) == [] and not objects.is_grouped
    own, later, gone, weak = (into(1, n, 0.1 * n, 0.0, 0.3, 30) for n in (2, 3, 4, 5))
    keep(collection, {1: [inverse(own)], 2: [], 3: [later], 4: [gone], 5: [weak._replace(inliers=19)]})
    assert objects.is_grouped and collection.catalogue.setting(KIND_KEY) == "kind"
    assert sorted(number for one in objects.of(row(1)) for number in one.photos) == [2, 3]
    assert [one.photos for one in objects.of(row(3))] == [(1,)]
    assert objects.of(row(9)) == []
    # Another run of `cairn group` is seen.
    keep(collection, {1: [inverse(own)], 2: []})
    assert [one.photos for one in objects.of(row(1))] == [(2,)]


def test_numbers_are_read_without_the_maps() -> None:
    links = [into(1, 2, 0, 0, 1, 25), Link(2, 7, 19, (0.0,) * 6), Link(2, 2**40, 20, (0.0,) * 6)]
    kept = [(2, encode_links(links)), (5, b""), (6, encode_links([inverse(links[0])]) + b"torn"), (7, b"short")]
    requested, found, inliers = found_numbers(kept, 20)
    assert (requested.tolist(), found.tolist(), inliers.tolist()) == ([2, 2, 6], [1, 2**40, 2], [25, 20, 25])
    assert [values.tolist() for values in found_numbers([], 20)] == [[], [], []]


def test_links_to_one_photo_are_decoded_without_the_others() -> None:
    links = [into(1, 2, 0.1, 0, 1, 25), Link(2, 7, 19, (0.0,) * 6), into(1, 2, 0.2, 0, 1, 30)]
    assert decode_links(2, encode_links(links), 1) == [links[0], links[2]]
    assert decode_links(2, encode_links(links), 3) == []
    assert decode_links(2, encode_links(links)[:-1], 1) is None


def test_links_of_many_photos_are_read_in_the_background(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer tells what the photo's own links tell; photos that were called no match are in none."""
    monkeypatch.setattr("retrieval.groups.objects._AT_ONCE", 2)
    monkeypatch.setattr("retrieval.groups.objects.rows_there", lambda _, numbers: [row(number) for number in numbers])
    with collection.catalogue.writing() as session:
        session.add_all(ImageRow(number=number, path=f"/{number}", name=str(number)) for number in range(6))
    mutual, later, rejected, hidden = (into(1, n, 0.1 * n, 0.0, 0.3) for n in (2, 3, 4, 5))
    keep(collection, {1: [inverse(mutual)], 2: [mutual], 3: [later], 4: [rejected], 5: [hidden]})
    collection.catalogue.write(reject, 1, [4])
    collection.catalogue.write(hide, [5])
    objects = PhotoObjects(collection)
    assert [one.photos for one in objects.of(row(1))] == [(2,)]
    for thread in threading.enumerate():
        if thread.name == "links":
            thread.join()
    assert sorted(number for one in objects.of(row(1)) for number in one.photos) == [2, 3]
