"""Links: photos that geometry verifies with each other, the same however often the search for them was stopped."""

import contextlib
import math
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import CairnError
from index.segments.segment import ImageFeatures
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import make_tombstones
from retrieval.catalogue.link_store import begin_links, keep_links, links_in
from retrieval.catalogue.photos import all_indexed, photo_of_name
from retrieval.collection.collection import Collection
from retrieval.collection.layout import LINKS_LOCK
from retrieval.collection.locking import lock_file
from retrieval.groups import links
from retrieval.groups.links import Link, components, decode_links, encode_links, link_photos
from retrieval.indexing.adding import index_photos
from retrieval.indexing.compaction import compact
from retrieval.matching.verification import NOTHING, Verification
from retrieval.search.options import SearchOptions
from retrieval.search.views import View
from tests.support.paths import ROOT
from tests.support.picture_views import LINKED, SIZE, write_views


@pytest.fixture
def copy(linked: Path, tmp_path: Path) -> Iterator[Collection]:
    """A copy of the collection, in which links may be kept."""
    shutil.copytree(linked, tmp_path / "copy.cairn")
    with Collection.open(tmp_path / "copy.cairn") as collection:
        yield collection


@pytest.fixture
def photos(linked: Path) -> Iterator[Collection]:
    with Collection.open(linked) as collection:
        yield collection


def shown(name: str) -> str:
    """The object that a photo shows."""
    return name.split("_")[0]


def test_photos_are_linked_where_they_show_the_same(photos: Collection) -> None:
    reported: list[tuple[str, int, int]] = []
    found = link_photos(photos, min_inliers=20, progress=lambda *step: reported.append(step))
    names = {row.number: row.name or "" for row in photos.catalogue.read(all_indexed)}
    assert reported == [("verify", done, len(names)) for done in range(1, len(names) + 1)]
    expected = {
        (one, other) for one in names for other in names if one < other and shown(names[one]) == shown(names[other])
    }
    assert set(found) == expected
    assert all(link.pair == pair and link.inliers >= 20 for pair, link in found.items())


def test_a_link_maps_one_photo_to_the_other_as_they_were_made(photos: Collection, tmp_path: Path) -> None:
    maps = {name: np.vstack([matrix, [0, 0, 1]]) for name, matrix in write_views(tmp_path, LINKED).items()}
    numbers = {row.name: row.number for row in photos.catalogue.read(all_indexed)}
    every = link_photos(photos, min_inliers=20)
    side = max(SIZE)
    into = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, side]]) / side  # pixels to units of the longer side
    pairs = [(one, other) for one in maps for other in maps if one < other and shown(one) == shown(other)]
    assert len(pairs) == 3 + 1 + 1
    for one, other in pairs:
        link = every[min(numbers[one], numbers[other]), max(numbers[one], numbers[other])]
        if link.query != numbers[one]:
            one, other = other, one
        found = np.linalg.inv(into) @ np.vstack([np.reshape(link.transform, (2, 3)), [0, 0, 1]]) @ into
        truth = maps[other] @ np.linalg.inv(maps[one])
        centre = np.array([[150, 250, 250, 150], [100, 100, 200, 200], [1, 1, 1, 1]])
        assert abs(found @ centre - truth @ centre).max() < 2  # pixels


KILLED = """
import os, sys
from pathlib import Path
from retrieval.collection.collection import Collection
from retrieval.groups import links

links._PAUSE = 0.0

def kill(step, done, of):
    if done == 4:
        os._exit(9)

links.link_photos(Collection.open(Path(sys.argv[1])), min_inliers=5, keep=True, progress=kill)
"""


@pytest.mark.parametrize("killed", [True, False])
def test_a_run_that_was_stopped_goes_on_and_finds_the_same(
    copy: Collection, killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = link_photos(copy, min_inliers=5)

    def stop(step: str, done: int, of: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    if killed:
        ran = subprocess.run([sys.executable, "-c", KILLED, copy.folder], cwd=ROOT, capture_output=True, text=True)
        assert ran.returncode == 9, ran.stderr
    else:
        with pytest.raises(KeyboardInterrupt):
            link_photos(copy, min_inliers=5, keep=True, progress=stop)

    requested: list[int] = []
    ask = links.ask_photos

    def ask_and_tell(collection: Collection, numbers: list[int], **more: int) -> Iterator[tuple[int, list[Link]]]:
        requested.extend(numbers)
        return ask(collection, numbers, **more)

    monkeypatch.setattr(links, "ask_photos", ask_and_tell)
    numbers = copy.index.image_numbers.tolist()
    reported: list[int] = []
    again = link_photos(copy, min_inliers=5, keep=True, workers=2, progress=lambda *step: reported.append(step[1]))
    assert again == undisturbed
    assert requested == numbers[4:] and reported == list(range(5, len(numbers) + 1))
    requested.clear()
    assert link_photos(copy, min_inliers=5, keep=True) == undisturbed
    strong = {pair: link for pair, link in undisturbed.items() if link.inliers >= 40}
    assert link_photos(copy, min_inliers=40, keep=True) == strong
    assert requested == []
    # Fewer are asked for than are kept: all photos are asked with again.
    weak = link_photos(copy, min_inliers=4, keep=True)
    assert requested == numbers and undisturbed.items() <= weak.items()


def test_the_number_of_workers_changes_nothing(photos: Collection) -> None:
    assert link_photos(photos, workers=3) == link_photos(photos)


def test_only_photos_that_were_added_are_asked_with(
    copy: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_views(tmp_path, {"coffee": 3})
    before = link_photos(copy, min_inliers=20, keep=True)
    gone = copy.catalogue.read(photo_of_name, "chelsea_0.png")
    assert gone is not None
    copy.catalogue.write(make_tombstones, [gone.number])
    assert index_photos(copy, [tmp_path / "coffee_2.png"]).added == 1
    requested: list[int] = []
    ask = links.ask_photos
    monkeypatch.setattr(links, "ask_photos", lambda c, numbers, workers: requested.extend(numbers) or ask(c, numbers))
    names = {row.number: row.name for row in copy.catalogue.read(all_indexed)}
    after = link_photos(copy, min_inliers=20, keep=True)
    assert [names[number] for number in requested] == ["coffee_2.png"]
    new = {pair for pair in after if requested[0] in pair}
    assert {names[number] for pair in new for number in pair} == {"coffee_0.png", "coffee_1.png", "coffee_2.png"}
    stayed = {pair: link for pair, link in before.items() if gone.number not in pair}
    assert {pair: link for pair, link in after.items() if pair not in new} == stayed and len(stayed) < len(before)
    # With the photo its links leave the catalogue.
    assert gone.number in copy.catalogue.read(links_in)
    compact(copy)
    assert gone.number not in copy.catalogue.read(links_in) and len(copy.catalogue.read(links_in)) == len(names)


class Listed:
    """An engine whose photo 0 is linked with some others, which it finds less and less alike: 1, 2, and so on."""

    def __init__(self, shown: set[int], photos: int) -> None:
        self.options = SearchOptions()
        features = ImageFeatures(np.zeros(0, np.uint8), {"position": np.zeros((0, 2)), "shape": np.zeros((0, 3))})
        self.index = SimpleNamespace(
            image_numbers=np.arange(photos, dtype=np.uint32), images=SimpleNamespace(features=lambda number: features)
        )
        self.shown, self.verified = shown, list[int]()

    def score(self, view: View) -> np.ndarray:
        return -np.arange(len(self.index.image_numbers), dtype=np.float32)

    def verify_many(self, view: View, numbers: list[int]) -> list[Verification]:
        self.verified += numbers
        found = Verification(np.zeros((30, 2), np.int32), np.eye(2, 3))
        return [found if number in self.shown else NOTHING for number in numbers]


def test_photos_are_verified_while_there_is_something_to_be_found() -> None:
    look = links._LOOK
    for same, verified in (
        (set(), look),
        ({1, 2, 3}, 2 * look),
        ({look}, 2 * look),
        ({1, look + 1}, 3 * look),
        ({2 * look + 1}, look),  # among those that are less alike than many that show something else
        (set(range(1, 1000)), SearchOptions().verification.depth),
    ):
        engine = Listed(same, 1000)
        found = links._ask(engine, 0)  # type: ignore[arg-type]
        assert engine.verified == list(range(1, 1 + verified))
        assert [link.found for link in found] == sorted(same.intersection(engine.verified))


def test_a_small_collection_is_verified_whole() -> None:
    engine = Listed({1, 2}, 3)
    assert [link.found for link in links._ask(engine, 0)] == engine.verified == [1, 2]  # type: ignore[arg-type]


def test_a_link_has_one_inlier_at_least(photos: Collection) -> None:
    with pytest.raises(CairnError, match="one inlier at least, not by 0"):
        link_photos(photos, min_inliers=0)


# How they are kept

numbers_of_photos = st.integers(0, 2**40)
finite = st.floats(allow_nan=False, allow_infinity=False)
kept_links = st.lists(st.tuples(numbers_of_photos, st.integers(1, 9999), st.tuples(*[finite] * 6)), max_size=3)


@given(numbers_of_photos, kept_links)
def test_links_are_read_as_they_were_written(number: int, found: list[tuple[int, int, tuple[float, ...]]]) -> None:
    expected = [Link(number, *link) for link in found]
    contents = encode_links(expected)
    assert len(contents) == 60 * len(found)
    assert decode_links(number, contents) == expected
    assert decode_links(number, contents + b"\0") is None


@pytest.mark.parametrize("link", [(-1, 30, (0.0,) * 6), (1, -1, (0.0,) * 6), (1, 30, (0.0, math.nan, 0, 0, 0, 0))])
def test_links_that_cannot_be_are_none(link: tuple[int, int, tuple[float, ...]]) -> None:
    assert decode_links(3, encode_links([Link(3, *link)])) is None


@pytest.fixture(params=["sqlite", "postgresql"])
def catalogue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalogue]:
    if request.param == "postgresql":
        with Catalogue.open(request.getfixturevalue("postgresql")(), create=True) as opened:
            yield opened
    else:
        with Catalogue.open(tmp_path, create=True) as opened:
            yield opened


def test_links_of_another_kind_take_the_place_of_those_that_are_kept(catalogue: Catalogue) -> None:
    catalogue.write(begin_links, "one")
    catalogue.write(keep_links, "one", {3: b"", 1: b"first"})
    catalogue.write(keep_links, "one", {1: b"second"})
    assert list(catalogue.read(links_in).items()) == [(1, b"second"), (3, b"")]
    catalogue.write(begin_links, "other")
    assert catalogue.read(links_in) == {}
    with pytest.raises(CairnError, match="other links"):
        catalogue.write(keep_links, "one", {1: b"late"})
    assert catalogue.read(links_in) == {}


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ("UPDATE links SET found = x'00' WHERE number = 1", [2]),
        ("UPDATE links SET found = 'text' WHERE number = 1", [2]),
        ("UPDATE links SET number = 3 WHERE number = 1", [2]),
        ("UPDATE settings SET value = '[]' WHERE key = 'cairn.links'", [1, 2]),
    ],
)
def test_damaged_links_are_not_believed(tmp_path: Path, change: str, left: list[int]) -> None:
    with Catalogue.open(tmp_path, create=True) as catalogue:
        catalogue.write(begin_links, "{}")
        catalogue.write(keep_links, "{}", {1: b"\1" * 60, 2: b""})
        with contextlib.closing(sqlite3.connect(tmp_path / "catalogue.sqlite")) as connection:
            connection.execute(change)
            connection.commit()
        assert list(catalogue.read(links_in)) == left


@pytest.mark.parametrize(
    "kind", ["", "[]", "null", "{}", '{"format":2,"vocabulary":"v","inliers":"1"}', "[" * 100_000, '{"format":2}']
)
def test_a_kind_that_is_none_does_not_fit(kind: str) -> None:
    assert not links._has_all(kind, "v", 5)
    assert links._has_all('{"format":2,"vocabulary":"v","inliers":5}', "v", 5)
    assert not links._has_all('{"format":2,"vocabulary":"v","inliers":5}', "v", 4)
    assert not links._has_all('{"format":2,"vocabulary":"v","inliers":5}', "w", 5)


def test_two_processes_cannot_look_for_links_to_keep(copy: Collection) -> None:
    pytest.importorskip("fcntl")
    with lock_file(copy.folder / LINKS_LOCK, ""), pytest.raises(CairnError, match="wait until it has ended"):
        link_photos(copy, keep=True)
    assert len(link_photos(copy, keep=True)) > 0


def test_components_are_what_can_be_reached_and_come_by_their_smallest_numbers() -> None:
    assert components([]) == []
    assert components([(7, 3), (9, 2), (3, 5), (4, 4)], [8, 3, 1]) == [{1}, {2, 9}, {3, 5, 7}, {4}, {8}]
    rng = np.random.default_rng(0)
    for count in (0, 5, 20, 60):
        pairs = rng.integers(0, 40, (count, 2))
        # Which numbers reach which in at most 40 steps.
        joined = np.eye(40, dtype=bool)
        joined[tuple(pairs.T)] = True
        reached = np.linalg.matrix_power((joined | joined.T).astype(float), 40) > 0
        expected = [set(np.flatnonzero(row).tolist()) for number, row in enumerate(reached) if row.argmax() == number]
        assert components(map(tuple, pairs.tolist()), range(40)) == expected
