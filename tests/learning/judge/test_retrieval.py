"""Photos indexed by a descriptor and searched for boxes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from index.errors import CairnError
from learning.judge.retrieval import ENGINES, STEP, index_with, search_boxes
from learning.judge.scenes import BoxQuery
from learning.measures.precision import average_precision
from retrieval.catalogue.photos import all_indexed, counts_of_photos
from retrieval.collection.collection import Collection
from retrieval.features.staging import Staging
from retrieval.search.answers import find_photo, search_photo
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher
from tests.support.judged_photos import judged_collection

BOX = (100.0, 60.0, 300.0, 240.0)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    with judged_collection(tmp_path_factory) as collection:
        yield collection


@pytest.fixture(scope="module")
def sift(pictures: Collection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_with("sift", pictures.catalogue.read(all_indexed), pictures.options, tmp_path_factory.mktemp("sift"))


def queries_of(collection: Collection) -> tuple[list[BoxQuery], dict[int, str]]:
    """A box in each photo, which finds the other views of its picture."""
    rows = collection.catalogue.read(all_indexed)
    scenes: dict[str, set[int]] = {}
    for row in rows:
        scenes.setdefault(Path(row.path).stem.split("_")[0], set()).add(row.number)
    queries = [
        BoxQuery(number, min(scene), 1.0, BOX, frozenset(scene - {number}), frozenset({number}))
        for scene in scenes.values()
        for number in sorted(scene)
    ]
    return queries, {row.number: row.path for row in rows}


def test_the_figures_are_those_of_searches_by_hand(pictures: Collection, sift: Path) -> None:
    queries, paths = queries_of(pictures)
    reported: list[tuple[str, int, int]] = []
    shown: list[frozenset[int]] = []
    found = search_boxes(sift, queries, paths, shown=shown, progress=lambda *step: reported.append(step))
    assert reported == [(STEP, done, len(queries)) for done in range(1, len(queries) + 1)]
    with Collection.open(sift) as collection:
        own = {row.path: row.number for row in collection.catalogue.read(all_indexed)}
        for which, engine in enumerate(ENGINES):
            searcher = Searcher(collection, SearchOptions(engine=engine, turns=1))
            for place, query in enumerate(queries):
                requested = find_photo(collection, paths[query.photo], query.box)
                ranking = search_photo(searcher, requested).answer.hits.ordered.tolist()
                positives = {own[paths[number]] for number in query.positives}
                expected = average_precision(ranking, positives, {own[paths[query.photo]]})
                assert found[place, which] == expected
                if engine == ENGINES[-1]:
                    sure = {hit.number for hit in search_photo(searcher, requested).answer.hits if hit.found}
                    assert {own[paths[number]] for number in shown[place]} == positives & sure
    assert found[:, 1].mean() > 0.95


@pytest.mark.slow
def test_a_photo_that_is_not_there_is_never_found(pictures: Collection, tmp_path: Path) -> None:
    queries, paths = queries_of(pictures)
    without = [row for row in pictures.catalogue.read(all_indexed) if row.name != "coffee_1.png"]
    found = search_boxes(index_with("rootsift", without, pictures.options, tmp_path), queries, paths)
    all_there = search_boxes(pictures.folder, queries, paths)
    gone = next(number for number, path in paths.items() if Path(path).name == "coffee_1.png")
    for place, query in enumerate(queries):
        if query.photo == gone:
            assert found[place].tolist() == [0, 0]
        elif gone in query.positives:
            assert (found[place] <= 0.5).all() and (all_there[place] > found[place]).all()


@pytest.mark.slow
def test_what_is_indexed_is_used_again(pictures: Collection, sift: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pictures.catalogue.read(all_indexed)
    with Collection.open(sift) as collection:
        assert collection.options == replace(pictures.options, descriptor="sift")
        assert collection.catalogue.read(counts_of_photos)["indexed"] == len(rows)
    monkeypatch.setattr("retrieval.features.extraction.Extractor.extract", lambda *_: pytest.fail("described again"))
    assert index_with("sift", rows, pictures.options, sift.parent) == sift
    monkeypatch.undo()
    others = [
        index_with("rootsift", rows, pictures.options, sift.parent),
        index_with("sift", rows[1:], pictures.options, sift.parent),
        index_with("sift", rows, replace(pictures.options, words=100), sift.parent),
    ]
    assert len({sift, *others}) == 4


def test_photos_that_nothing_can_be_indexed_of_are_refused(pictures: Collection, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no photo")
    row = pictures.catalogue.read(all_indexed)[0]
    row.path = str(tmp_path / "a.png")
    with pytest.raises(CairnError, match="None of the photos can be indexed"):
        index_with("sift", [row], pictures.options, tmp_path / "work")


def test_empty_questions_have_no_figures(sift: Path) -> None:
    assert search_boxes(sift, [], {}).shape == (0, len(ENGINES)) and np.isfinite(search_boxes(sift, [], {})).all()


@pytest.mark.slow
def test_features_that_mining_has_extracted_are_taken(
    pictures: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pictures.catalogue.read(all_indexed)
    staging = Staging(tmp_path / "staged", pictures.extractor, pictures.options.image)
    for row in rows:
        staging.stage(Path(row.path), row.sha256 or "")
    before = sorted((tmp_path / "staged").rglob("*.npy"))
    monkeypatch.setattr("retrieval.features.extraction.Extractor.extract", lambda *_: pytest.fail("described again"))
    folder = index_with("rootsift", rows, pictures.options, tmp_path / "work", staged=tmp_path / "staged")
    assert sorted((tmp_path / "staged").rglob("*.npy")) == before  # others may want them
    monkeypatch.undo()
    with Collection.open(folder) as collection:
        assert collection.vocabulary.fingerprint == pictures.vocabulary.fingerprint
    # Features of another descriptor cannot be used.
    other = index_with("sift", rows, pictures.options, tmp_path / "work", staged=tmp_path / "staged")
    with Collection.open(other) as collection:
        assert collection.catalogue.read(counts_of_photos)["indexed"] == len(rows)
