"""Links: photos that geometry verifies with each other, the same however often the search for them was stopped."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.errors import CairnError
from retrieval.collection.collection import Collection
from retrieval.groups import links as linking
from retrieval.groups.link_log import Link, open_log
from retrieval.groups.links import components, link_photos
from retrieval.indexing.adding import index_photos
from tests.support.picture_views import LINKED, SIZE, write_views


@pytest.fixture
def photos(linked: Path) -> Iterator[Collection]:
    with Collection.open(linked) as collection:
        yield collection


def shown(name: str) -> str:
    """The object that a photo shows."""
    return name.split("_")[0]


def test_photos_are_linked_where_they_show_the_same(photos: Collection) -> None:
    told: list[tuple[str, int, int]] = []
    links = link_photos(photos, min_inliers=20, progress=lambda *step: told.append(step))
    names = {row.number: row.name or "" for row in photos.catalogue.images()}
    assert told == [("verify", done, len(names)) for done in range(1, len(names) + 1)]
    expected = {
        (one, other) for one in names for other in names if one < other and shown(names[one]) == shown(names[other])
    }
    assert set(links) == expected
    assert all(link.pair == pair and link.inliers >= 20 for pair, link in links.items())


def test_a_link_maps_one_photo_to_the_other_as_they_were_made(photos: Collection, tmp_path: Path) -> None:
    maps = {name: np.vstack([matrix, [0, 0, 1]]) for name, matrix in write_views(tmp_path, LINKED).items()}
    numbers = {row.name: row.number for row in photos.catalogue.images()}
    links = link_photos(photos, min_inliers=20)
    side = max(SIZE)
    into = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, side]]) / side  # pixels to units of the longer side
    pairs = [(one, other) for one in maps for other in maps if one < other and shown(one) == shown(other)]
    assert len(pairs) == 3 + 1 + 1
    for one, other in pairs:
        link = links[min(numbers[one], numbers[other]), max(numbers[one], numbers[other])]
        if link.asked != numbers[one]:
            one, other = other, one
        found = np.linalg.inv(into) @ np.vstack([np.reshape(link.transform, (2, 3)), [0, 0, 1]]) @ into
        truth = maps[other] @ np.linalg.inv(maps[one])
        centre = np.array([[150, 250, 250, 150], [100, 100, 200, 200], [1, 1, 1, 1]])
        assert abs(found @ centre - truth @ centre).max() < 2  # pixels


def test_a_run_that_was_stopped_goes_on_and_finds_the_same(
    photos: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = link_photos(photos, min_inliers=5)
    kept = tmp_path / "links.jsonl"

    def stop(step: str, done: int, of: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        link_photos(photos, min_inliers=5, kept=kept, progress=stop)
    kept.write_bytes(kept.read_bytes()[:-7])  # killed within a line: the fourth photo's is lost

    asked: list[int] = []
    ask = linking.ask_photos

    def ask_and_tell(collection: Collection, numbers: list[int], **more: int) -> Iterator[tuple[int, list[Link]]]:
        asked.extend(numbers)
        return ask(collection, numbers, **more)

    monkeypatch.setattr(linking, "ask_photos", ask_and_tell)
    numbers = photos.index.image_numbers.tolist()
    told: list[int] = []
    assert (
        link_photos(photos, min_inliers=5, kept=kept, workers=2, progress=lambda *step: told.append(step[1]))
        == undisturbed
    )
    assert asked == numbers[3:] and told == list(range(4, len(numbers) + 1))
    asked.clear()
    assert link_photos(photos, min_inliers=5, kept=kept) == undisturbed
    strong = {pair: link for pair, link in undisturbed.items() if link.inliers >= 40}
    assert link_photos(photos, min_inliers=40, kept=kept) == strong
    assert asked == []
    # Fewer are asked for than the log has: all photos are asked with again.
    weak = link_photos(photos, min_inliers=4, kept=kept)
    assert asked == numbers and undisturbed.items() <= weak.items()


def test_the_number_of_workers_changes_nothing(photos: Collection) -> None:
    assert link_photos(photos, workers=3) == link_photos(photos)


def test_only_photos_that_were_added_are_asked_with(
    linked: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(linked, tmp_path / "copy.cairn")
    kept = tmp_path / "copy.cairn" / "links.jsonl"
    write_views(tmp_path, {"coffee": 3})
    with Collection.open(tmp_path / "copy.cairn") as copy:
        before = link_photos(copy, min_inliers=20, kept=kept)
        gone = copy.catalogue.image_by_name("chelsea_0.png")
        assert gone is not None
        copy.catalogue.remove([gone.number])
        assert index_photos(copy, [tmp_path / "coffee_2.png"]).added == 1
    asked: list[int] = []
    ask = linking.ask_photos
    monkeypatch.setattr(linking, "ask_photos", lambda c, numbers, workers: asked.extend(numbers) or ask(c, numbers))
    with Collection.open(tmp_path / "copy.cairn") as copy:
        names = {row.number: row.name for row in copy.catalogue.images()}
        after = link_photos(copy, min_inliers=20, kept=kept)
    assert [names[number] for number in asked] == ["coffee_2.png"]
    new = {pair for pair in after if asked[0] in pair}
    assert {names[number] for pair in new for number in pair} == {"coffee_0.png", "coffee_1.png", "coffee_2.png"}
    stayed = {pair: link for pair, link in before.items() if gone.number not in pair}
    assert {pair: link for pair, link in after.items() if pair not in new} == stayed and len(stayed) < len(before)


def test_a_link_has_one_inlier_at_least(photos: Collection) -> None:
    with pytest.raises(CairnError, match="one inlier at least, not by 0"):
        link_photos(photos, min_inliers=0)


# The log

numbers_of_photos = st.integers(0, 2**40)
entries = st.lists(
    st.tuples(
        numbers_of_photos,
        st.lists(
            st.tuples(
                numbers_of_photos,
                st.integers(1, 9999),
                st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 6),
            ),
            max_size=3,
        ),
    ),
    min_size=1,
    max_size=5,
)


@settings(deadline=None)
@given(entries, st.data())
def test_a_log_that_was_cut_anywhere_keeps_what_comes_before(
    tmp_path_factory: pytest.TempPathFactory, written: list, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log") / "links.jsonl"
    expected = [(number, [Link(number, *found) for found in links]) for number, links in written]
    with open_log(path, "v", 5) as log:
        assert list(log.read()) == []
        ends = [path.stat().st_size]
        for number, links in expected:
            log.write(number, links)
            ends.append(path.stat().st_size)
    with open_log(path, "v", 9) as log:
        assert list(log.read()) == expected
    cut = data.draw(st.integers(0, ends[-1]))
    path.write_bytes(path.read_bytes()[:cut] + data.draw(st.sampled_from([b"", b"\0\0\0", b"[1,[[2]]]\n", b"{}\n"])))
    whole = sum(end <= cut for end in ends) - 1  # lines after the first
    with open_log(path, "v", 5) as log:
        assert list(log.read()) == expected[: max(0, whole)]
        log.write(*expected[0])
    with open_log(path, "v", 5) as log:
        assert list(log.read()) == [*expected[: max(0, whole)], expected[0]]


def test_a_log_is_begun_anew_where_it_lacks_something_or_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "links.jsonl"

    def lines(vocabulary: str, inliers: int) -> int:
        with open_log(path, vocabulary, inliers) as log:
            known = len(list(log.read()))
            log.write(1, [])
        return known

    assert [lines("v", 10), lines("v", 10), lines("v", 30)] == [0, 1, 2]
    assert lines("another", 30) == 0
    assert [lines("another", 29), lines("another", 30)] == [0, 1]
    for damage in (
        b"",
        b"[]\n",
        b"null\n",
        b"{}\n",
        b"\xff\xfe\n",
        b'{"format":2,"vocabulary":"another","inliers":1}\n',
    ):
        path.write_bytes(damage)
        assert [lines("another", 30), lines("another", 30)] == [0, 1]


def test_two_processes_cannot_write_one_log(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path = tmp_path / "links.jsonl"
    with open_log(path, "v", 10), pytest.raises(CairnError, match="wait until it has ended"), open_log(path, "v", 10):
        pass
    with open_log(path, "v", 10) as log:
        assert list(log.read()) == []


def test_components_are_those_of_scipy() -> None:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rng = np.random.default_rng(0)
    for links in (0, 5, 20, 60):
        pairs = rng.integers(0, 40, (links, 2))
        neighbours: dict[int, set[int]] = {number: set() for number in range(40)}
        for one, other in pairs.tolist():
            neighbours[one].add(other)
            neighbours[other].add(one)
        labels = connected_components(coo_array((np.ones(links), pairs.T), (40, 40)), directed=False)[1]
        expected = [set(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)]
        assert components(neighbours) == sorted(expected, key=min)
