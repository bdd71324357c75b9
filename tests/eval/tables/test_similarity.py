"""Tables of learnt similarities: what is learnt from, and what is measured with."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from eval.benchmark import run_benchmark
from eval.demo.synthetic import DemoCollection
from eval.tables.retrieval import Cell
from eval.tables.sets import RetrievalSet
from eval.tables.similarity import ENGINES, UNSEEN, UNSEEN_BEFORE, SimilarityTable
from learning.similarity.options import SimilarityOptions
from retrieval.collection.options import CollectionOptions
from retrieval.photos.options import ImageOptions
from retrieval.search.options import SearchOptions

OPTIONS = CollectionOptions(words=150, iterations=4, image=ImageOptions(max_side=240), signature="none")


def quiet(line: str) -> None:
    """Tell nobody."""


@pytest.fixture(scope="module")
def photos(demo: DemoCollection, tmp_path_factory: pytest.TempPathFactory) -> RetrievalSet:
    """The demo's photos with one query an object, so that the others can be learnt from."""
    folder = tmp_path_factory.mktemp("set")
    (folder / "gt").mkdir()
    for path in demo.gt.glob("*_1_*.txt"):
        shutil.copy(path, folder / "gt")
    (folder / "images").symlink_to(demo.images)
    return RetrievalSet.find(folder)


@pytest.mark.slow
def test_test_queries_are_never_learnt_from(photos: RetrievalSet, tmp_path: Path) -> None:
    table = SimilarityTable(Cell(photos, photos, OPTIONS, "tf-idf", 1), tmp_path, 1, quiet)
    plain = table.baseline()
    wanted = run_benchmark(
        [photos.images], photos.ground_truth, options=OPTIONS, search=SearchOptions(engine="tf-idf", turns=1)
    )
    assert plain["tf-idf"] == pytest.approx({score.name: score.ap for score in wanted.scores})
    assert set(plain) == set(ENGINES)
    learnt = table.learnt(SimilarityOptions(neighbours=1, iterations=2), 0, "k1")
    for way in ENGINES:
        assert learnt[way].keys() == plain[way].keys()
    # Only queries with photos that were not learnt from are in the stricter figure, and tf-idf's beside it.
    counts = table.training_photos(0)
    positives = {query.name: len(query.positives) for query in photos.asked}
    left = {name for name, count in counts.items() if count < positives[name]}
    assert learnt.get(UNSEEN, {}).keys() == learnt.get(UNSEEN_BEFORE, {}).keys() == left
    (lesson,) = table._lessons(0)
    assert lesson.labels.asked and not lesson.labels.asked & set(lesson.numbers.tolist())
    # What was measured is read again, not measured again.
    for path in table.results.glob("*.npz"):
        path.unlink()
    assert table.learnt(SimilarityOptions(neighbours=1, iterations=2), 0, "k1") == learnt


def test_query_photos_of_their_own_are_searched_for_once_each(photos: RetrievalSet, tmp_path: Path) -> None:
    """Their other parts are learnt from, and query photos take no rank."""
    folder = tmp_path / "apart"
    for name in ("images", "queries", "gt"):
        (folder / name).mkdir(parents=True)
    asked = {query.stem for query in photos.asked}
    for path in sorted(photos.images.iterdir()):
        stem, place = path.stem.rsplit("_", 1)
        query = path.stem not in asked and place != "000" and any(one.startswith(stem) for one in asked)
        shutil.copy(path, folder / ("queries" if query else "images"))
    for path in sorted((folder / "queries").iterdir()):
        (answer,) = [one for one in asked if one.startswith(path.stem.rsplit("_", 1)[0])]
        for part, text in (("query", f"{path.stem} 0 0 50 50"), ("good", answer), ("ok", ""), ("junk", "")):
            (folder / "gt" / f"{path.stem}_{part}.txt").write_text(text + "\n")
    apart = RetrievalSet.find(folder)
    table = SimilarityTable(Cell(apart, apart, OPTIONS, "tf-idf", 1), tmp_path / "work", 1, quiet)
    lessons = list(table._lessons(0))
    tested = [query.name for lesson in lessons for query in lesson.queries]
    assert sorted(tested) == sorted(query.name for query in apart.asked)
    for lesson in lessons:
        assert len(lesson.labels.asked) == len(lesson.queries)
        assert not lesson.labels.asked & frozenset[int]().union(*(one.positives for one in lesson.labels.objects))
        assert not np.isin(lesson.numbers, list(lesson.labels.asked)).any()
    assert table.baseline()["tf-idf"].keys() == set(tested)
