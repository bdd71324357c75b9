"""A collection that lives: whatever happens, it answers as a fresh one of the same photos does, to the last bit."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Collection as Collection_
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from eval.demo.synthetic import DemoCollection
from retrieval.catalogue.failures import failures_in
from retrieval.catalogue.metadata_store import import_values, metadata_of
from retrieval.catalogue.photos import all_indexed, missing_photos, names_in_order, numbers_of_names, paths_of
from retrieval.catalogue.segment_rows import segments_in, tombstones_in
from retrieval.collection.collection import Collection, CollectionChanged
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.add_options import AddOptions
from retrieval.indexing.adding import index_photos
from retrieval.indexing.compaction import CompactOptions, compact
from retrieval.indexing.removal import remove_photos
from retrieval.indexing.retrain_options import RetrainOptions
from retrieval.indexing.retraining import retrain
from retrieval.photos.options import ImageOptions
from retrieval.search.expansion import ExpansionOptions
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher
from tests.support.patience import patience
from tests.support.processes import clean_forks
from tests.support.searching import answer_to, read_query
from tests.support.written_photos import (
    WORDS,
    Album,
    counts_of,
    extraction_from_files,
    query_of,
    rankings,
    similarity,
    write_photo,
    write_vocabulary,
)

NAMES = [f"{letter}.jpg" for letter in "abcdefghij"]
NUMBERS = st.integers(0, 24)
QUERIES = (0, 7, 29)  # one that may be in the collection, of each thing, and one that is not

_names = st.sampled_from(NAMES)


class Life(RuleBasedStateMachine):
    """What people do to a folder of photos, what Cairn does then, and a model of what has to come of it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.photos = self.folder / "photos"
        self.photos.mkdir()
        self.vocabulary = write_vocabulary(self.folder / "words")
        similarity(self.vocabulary).save(self.folder / "similarity.npz")
        self.clock = itertools.count(10**18, 10**9)
        self.disk: dict[str, int] = {}  # by name, the number of the photo that is there
        self.held: dict[str, int] = {}  # the same of the collection, photos that are missing included
        self.missing: set[str] = set()

    @initialize(batch=st.integers(1, 5), first=st.lists(NUMBERS, min_size=1, max_size=len(NAMES)))
    def create(self, batch: int, first: list[int]) -> None:
        self.options = CollectionOptions(batch=batch, signature="none")
        self.collection = Collection.create(self.folder / "c.cairn", self.options)
        for name, number in zip(NAMES, first, strict=False):
            self.put(name, number)
        index_photos(self.collection, [self.photos], AddOptions(vocabulary=self.folder / "words"))
        self.held = dict(self.disk)
        self.check()

    def teardown(self) -> None:
        if hasattr(self, "collection"):
            self.answers_are_those_of_a_fresh_collection()
            self.collection.catalogue.close()
        shutil.rmtree(self.folder)

    # What happens to the files

    @rule(name=_names, number=NUMBERS)
    def put(self, name: str, number: int) -> None:
        write_photo(self.photos / name, number, next(self.clock))
        self.disk[name] = number

    @precondition(lambda self: self.disk)
    @rule(data=st.data(), there=_names)
    def rename(self, data: st.DataObject, there: str) -> None:
        here = data.draw(st.sampled_from(sorted(self.disk)))
        (self.photos / here).replace(self.photos / there)
        self.disk[there] = self.disk.pop(here)

    @precondition(lambda self: len(self.disk) > 1)
    @rule(data=st.data())
    def swap(self, data: st.DataObject) -> None:
        here, there = data.draw(st.lists(st.sampled_from(sorted(self.disk)), min_size=2, max_size=2, unique=True))
        (self.photos / here).rename(self.photos / "aside")
        (self.photos / there).rename(self.photos / here)
        (self.photos / "aside").rename(self.photos / there)
        self.disk[here], self.disk[there] = self.disk[there], self.disk[here]

    @precondition(lambda self: self.disk)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.disk)))
        (self.photos / name).unlink()
        del self.disk[name]

    # What Cairn does

    @rule()
    def index_all(self) -> None:
        self._index(set(self.disk), [self.photos])
        self.missing = set(self.held) - set(self.disk)
        self.check()

    @precondition(lambda self: self.disk)
    @rule(data=st.data())
    def index_some(self, data: st.DataObject) -> None:
        some = data.draw(st.sets(st.sampled_from(sorted(self.disk)), min_size=1))
        self._index(some, [self.photos / name for name in sorted(some)])
        self.check()

    def _index(self, looked_at: set[str], paths: list[Path]) -> None:
        numbers = {row.name: row.number for row in self.collection.catalogue.read(all_indexed)}
        new = {name for name in looked_at if self.held.get(name) != self.disk[name]}
        # Photos that are no longer where they were, the oldest first: each may be where a new one is.
        displaced = [name for name in self.held if name in new or name not in self.disk]
        displaced.sort(key=lambda name: numbers[name])
        moved = {}
        for name in sorted(new):
            known = next((one for one in displaced if self.held[one] == self.disk[name]), None)
            if known is not None:
                displaced.remove(known)
                moved[known] = name
        back = {name for name in looked_at & self.held.keys() if name not in new}
        report = index_photos(self.collection, paths)
        assert sorted(report.moved) == sorted(moved.values())
        assert (report.added, report.unchanged) == (len(new) - len(moved), len(back))
        assert report.failed == []
        after = {name: number for name, number in self.held.items() if name not in moved}
        self.held = after | {name: self.disk[name] for name in looked_at}
        self.missing = (self.missing & after.keys()) - looked_at
        for known, name in moved.items():  # a photo that has moved keeps its number
            assert self.collection.catalogue.read(numbers_of_names, [name])[name] == numbers[known]

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        names = data.draw(st.sets(st.sampled_from(sorted(self.held)), min_size=1))
        assert remove_photos(self.collection, sorted(names)) == sorted(names)
        for name in names:
            del self.held[name]
        self.missing -= names
        self.check()

    @rule()
    def remove_missing(self) -> None:
        gone = self.missing - self.disk.keys()  # those that are there again stay
        away = [] if self.disk else [self.photos]  # an empty folder may be a drive that is away, unless it is named
        assert remove_photos(self.collection, [], missing=True, gone=away) == sorted(gone)
        for name in gone:
            del self.held[name]
        self.missing -= gone
        self.check()

    @rule(features=st.sampled_from([1, 60, 200, 10**6]))
    def compact(self, features: int) -> None:
        removed = len(self.collection.catalogue.read(tombstones_in))
        report = compact(self.collection, CompactOptions(features=features))
        assert report.removed == removed
        assert self.collection.catalogue.read(tombstones_in) == frozenset()
        folders = {path.name for path in (self.collection.folder / "segments").iterdir()}
        assert folders == {row.folder for row in self.collection.catalogue.read(segments_in)}
        assert all(segment.verify() == [] for segment in self.collection.segments)
        again = compact(self.collection, CompactOptions(features=features))
        assert (again.segments["before"], again.removed) == (len(folders), 0)
        assert folders == {path.name for path in (self.collection.folder / "segments").iterdir()}
        self.check()

    @rule()
    def open_again(self) -> None:
        self.collection.catalogue.close()
        self.collection = Collection.open(self.folder / "c.cairn")

    # What has to hold

    def check(self) -> None:
        """Compare the collection with the model, and the index with one that is computed from scratch."""
        rows = self.collection.catalogue.read(all_indexed)
        assert {row.name for row in rows} == self.held.keys()
        assert {row.path for row in rows} == {str(self.photos / name) for name in self.held}
        assert {row.name for row in self.collection.catalogue.read(missing_photos)} == self.missing
        index = self.collection.index
        assert index.image_numbers.tolist() == [row.number for row in rows]
        counts = np.array([counts_of(self.held[str(row.name)]) for row in rows]).reshape(-1, WORDS)
        assert [row.features for row in rows] == counts.sum(1).tolist()
        frequency = (counts > 0).sum(0)
        assert index.document_frequency.tolist() == frequency.tolist()
        idf = np.where(frequency > 0, np.log(max(len(rows), 1) / np.maximum(frequency, 1)), 0.0)
        np.testing.assert_allclose(index.idf, idf, rtol=1e-12, atol=1e-15)
        norms = np.linalg.norm(counts * idf, axis=1)
        np.testing.assert_allclose(index.norms, norms, rtol=1e-12, atol=1e-15)
        vector = counts_of(QUERIES[0]) * idf
        product = norms * np.linalg.norm(vector)
        cosines = np.divide(counts * idf @ vector, product, out=np.zeros(len(rows)), where=product > 0)
        words = query_of(self.collection, QUERIES[0]).views[0].words
        np.testing.assert_allclose(index.score(words).scores, cosines, rtol=1e-6, atol=1e-7)

    @rule()
    def answers_are_those_of_a_fresh_collection(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            fresh_photos = Path(place) / "photos"
            fresh_photos.mkdir()
            for name, number in self.held.items():
                write_photo(fresh_photos / name, number, next(self.clock))
            with Collection.create(Path(place) / "c.cairn", CollectionOptions(signature="none")) as fresh:
                index_photos(fresh, [fresh_photos], AddOptions(vocabulary=self.folder / "words"))
                for options in self._searches():
                    assert rankings(self.collection, QUERIES, options) == rankings(fresh, QUERIES, options)

    def _searches(self) -> list[SearchOptions]:
        learnt = self.folder / "similarity.npz"
        expansion = ExpansionOptions(photos=3, min_inliers=5)
        return [
            SearchOptions(engine="tf-idf"),
            SearchOptions(engine="tf-idf-sp"),
            SearchOptions(engine="tf-idf-sp", expand="average", expansion=expansion),
            SearchOptions(engine="tf-idf", similarity=learnt),
            SearchOptions(engine="tf-idf-sp", expand="average", expansion=expansion, similarity=learnt),
        ]


def _live(examples: int, steps: int, phases: Collection_[Phase] = tuple(Phase)) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    with extraction_from_files():
        run_state_machine_as_test(
            Life,
            settings=settings(
                phases=phases,
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                suppress_health_check=checks,
            ),
        )


@pytest.mark.slow
def test_a_life_leaves_no_traces() -> None:
    _live(4, 8, [Phase.generate])  # to find a smaller failure takes minutes: the slow test does


@pytest.mark.slow
def test_many_lives_leave_no_traces() -> None:
    _live(200, 30)


# What a run of indexing tells


def test_a_photo_that_moves_keeps_its_number_and_what_is_known_of_it(album: Album) -> None:
    album.put(a__x=0, a__y=1, b=3)
    album.index()
    before = album.held()
    with album.open() as collection:
        collection.catalogue.write(import_values, {before["b.jpg"]: {"place": ["Ghent"]}})
    (album.photos / "a").rename(album.photos / "c")
    (album.photos / "b.jpg").rename(album.photos / "d.jpg")
    report = album.index()
    assert (report.added, report.unchanged, report.failed, report.vanished) == (0, 0, [], [])
    assert sorted(report.moved) == ["c/x.jpg", "c/y.jpg", "d.jpg"]
    after = album.held()
    assert after == {"c/x.jpg": before["a/x.jpg"], "c/y.jpg": before["a/y.jpg"], "d.jpg": before["b.jpg"]}
    with album.open() as collection:
        number = after["d.jpg"]
        assert collection.catalogue.read(paths_of, [number]) == {number: str(album.photos / "d.jpg")}
        assert collection.catalogue.read(metadata_of, [number])[number].others == {"place": ("Ghent",)}
        assert len(collection.catalogue.read(segments_in)) == 1
    assert album.index().unchanged == 3


def test_photos_may_take_each_others_names(album: Album) -> None:
    album.put(a=0, b=1, c=2, d=3)
    album.index()
    before = album.held()
    for here, there in (("a", "aside"), ("b", "a"), ("c", "b"), ("aside", "c")):
        (album.photos / f"{here}.jpg").rename(album.photos / f"{there}.jpg")
    report = album.index()
    assert (sorted(report.moved), report.added) == (["a.jpg", "b.jpg", "c.jpg"], 0)
    assert album.held() == {f"{there}.jpg": before[f"{here}.jpg"] for here, there in zip("bcad", "abcd", strict=True)}
    assert album.answers() == album.fresh(a=1, b=2, c=0, d=3).answers()


def test_a_photo_that_another_one_overwrites_is_gone(album: Album) -> None:
    album.put(a=0, b=1, c=2)
    album.index()
    before = album.held()
    (album.photos / "a.jpg").replace(album.photos / "b.jpg")
    report = album.index()
    assert (report.moved, report.added, report.vanished) == (["b.jpg"], 0, [])
    assert album.held() == {"b.jpg": before["a.jpg"], "c.jpg": before["c.jpg"]}
    assert album.answers() == album.fresh(b=0, c=2).answers()


def test_a_photo_that_vanishes_is_found_until_it_is_removed_and_comes_back(album: Album) -> None:
    album.put(a=0, b=1, sub__c=2)
    album.index()
    before, answers = album.held(), album.answers()
    for name in ("a.jpg", "sub/c.jpg"):
        (album.photos / name).unlink()
    assert album.index("sub").vanished == ["sub/c.jpg"]  # nobody has looked for the other
    report = album.index()
    assert (report.vanished, report.unchanged, report.added) == (["a.jpg"], 1, 0)
    assert album.index().vanished == []
    assert (album.held(), album.answers()) == (before, answers)
    album.put(a=0)
    report = album.index()
    assert (report.unchanged, report.back, report.added, report.moved) == (2, ["a.jpg"], 0, [])
    assert album.index().back == []
    with album.open() as collection:
        assert [row.name for row in collection.catalogue.read(missing_photos)] == ["sub/c.jpg"]
    album.put(e=2)  # it comes back under another name
    assert album.index().moved == ["e.jpg"]
    assert album.held() == {"a.jpg": before["a.jpg"], "b.jpg": before["b.jpg"], "e.jpg": before["sub/c.jpg"]}


def test_copies_of_a_photo_are_photos_of_their_own(album: Album) -> None:
    album.put(a=0, b=0)
    album.index()
    before = album.held()
    album.put(c=0)
    assert (album.index().added, len(album.held())) == (1, 3)
    (album.photos / "a.jpg").rename(album.photos / "d.jpg")
    report = album.index()
    assert (report.moved, report.added) == (["d.jpg"], 0)
    assert album.held()["d.jpg"] == before["a.jpg"]


def test_a_damaged_file_hides_no_photo(album: Album) -> None:
    album.put(a=0, b=1, c=2)
    album.index()
    before = album.held()
    stamp = (album.photos / "b.jpg").stat().st_mtime_ns
    for name in "abc":
        (album.photos / f"{name}.jpg").write_bytes(b"damaged")
    report = album.index()
    assert (len(report.failed), report.vanished) == (3, [])
    assert album.held() == before  # they stay as they were

    album.put(elsewhere=0)
    write_photo(album.photos / "b.jpg", 1, stamp)
    (album.photos / "c.jpg").unlink()
    report = album.index()
    assert (report.moved, report.unchanged, report.added, report.vanished) == (["elsewhere.jpg"], 1, 0, ["c.jpg"])
    assert [Path(entry["path"]).name for entry in report.failed] == ["a.jpg"]
    assert album.held() == {
        "elsewhere.jpg": before["a.jpg"],
        "b.jpg": before["b.jpg"],
        "c.jpg": before["c.jpg"],
    }
    with album.open() as collection:
        assert [Path(failure.path).name for failure in collection.catalogue.read(failures_in)] == ["a.jpg"]


# Real photos, and a real server


def _rankings(collection: Collection, photos: list[Path]) -> list[Any]:
    answers = []
    for options in (
        SearchOptions(engine="tf-idf"),
        SearchOptions(engine="tf-idf-sp", expand="average", expansion=ExpansionOptions(min_inliers=8)),
    ):
        searcher = Searcher(collection, options)
        for photo in photos:
            hits = answer_to(read_query(collection, photo, turns=2), searcher).hits
            names = collection.catalogue.read(names_in_order, [hit.number for hit in hits])
            shared = [
                (name, hit.score, hit.verification.inliers, hit.view)
                for name, hit in zip(names, hits, strict=True)
                if hit.score > 0
            ]
            answers.append((shared, len(hits)))
    return answers


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_real_photos_come_and_go(
    demo: DemoCollection, tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    address = request.getfixturevalue("postgresql")() if database == "postgresql" else None
    options = CollectionOptions(words=80, iterations=3, batch=2, image=ImageOptions(max_side=140), signature="none")
    sources = sorted(demo.images.iterdir())
    photos = tmp_path / "photos"
    photos.mkdir()
    for path in sources[:5]:
        shutil.copy2(path, photos)
    with Collection.create(tmp_path / "c.cairn", options, catalogue=address) as collection:
        assert index_photos(collection, [photos]).added == 5
        remove_photos(collection, [sources[1].name])
        (photos / sources[1].name).unlink()
        shutil.copy2(sources[5], photos)
        shutil.copy2(sources[6], photos / sources[0].name)  # another photo under its name
        (photos / sources[2].name).rename(photos / "renamed.jpg")
        report = index_photos(collection, [photos])
        assert (report.added, report.unchanged, report.moved) == (2, 2, ["renamed.jpg"])
        queries = [sources[0], sources[3]]
        with Collection.create(tmp_path / "fresh.cairn", options) as fresh:
            index_photos(fresh, [photos], AddOptions(vocabulary=collection.vocabulary_folder))
            expected = _rankings(fresh, queries)
        assert _rankings(collection, queries) == expected
        assert compact(collection).segments == {"before": 4, "after": 1}
        assert _rankings(collection, queries) == expected
        # With the seed and the photos the same, so is a new vocabulary, whatever came before.
        retrain(collection, RetrainOptions(words=80))
        fingerprint = collection.vocabulary.fingerprint
        assert len(collection.index.image_numbers) == 5
        assert retrain(collection, RetrainOptions(words=80)).words == {"before": 80, "after": 80}
        assert collection.vocabulary.fingerprint == fingerprint


# Readers, while another process writes


def _change(folder: Path, catalogue: str | None, reported: Any) -> None:
    """Change a collection in all ways, and tell what it answers after each."""
    album = Album(
        folder, CollectionOptions(batch=100, signature="none"), catalogue, itertools.count(11 * 10**17, 10**9)
    )
    with extraction_from_files():
        _change_in_all_ways(album, reported)
    reported.send(None)


def _change_in_all_ways(album: Album, reported: Any) -> None:
    for turn in range(2):
        for name, number in ((f"new{turn}", 12 + turn), (f"more{turn}", 15 + turn)):
            album.put(**{name: number})
            album.index()
            reported.send(album.answers())
        with album.open() as collection:
            remove_photos(collection, [f"new{turn}.jpg", f"p{turn}.jpg"])
            reported.send(album.answers())
            compact(collection, CompactOptions(features=[60, 10**6][turn]))
            reported.send(album.answers())
            retrain(collection, RetrainOptions(words=30 + turn))
            reported.send(album.answers())


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process that begins at once")
@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_whoever_searches_meanwhile_sees_the_collection_of_one_moment(
    album: Album,
    database: str,
    request: pytest.FixtureRequest,
) -> None:
    """Never half a change, and never an error: what is answered is what the collection answered after some command."""
    if database == "postgresql":
        album.catalogue = request.getfixturevalue("postgresql")()
    album.put(**{f"p{i}": i for i in range(6)})
    album.index()
    context = clean_forks(__name__)
    ours, theirs = context.Pipe()
    states = [album.answers()]
    writer = context.Process(target=_change, args=(album.folder, album.catalogue, theirs))
    writer.start()
    theirs.close()
    seen, again, done = [], 0, False
    while not done:
        while ours.poll():
            state = ours.recv()
            done = done or state is None
            states += [state] if state is not None else []
            if done:
                break
        try:
            seen.append(album.answers())
        except (CollectionChanged, KeyError):  # `cairn query` looks again then
            again += 1
    writer.join(patience(60))
    assert writer.exitcode == 0
    places = []
    for answer in seen:
        assert answer in states
        places.append(max(place for place, state in enumerate(states) if state == answer))
    assert places[-1] == len(states) - 1 == 10
    assert len(seen) > again
