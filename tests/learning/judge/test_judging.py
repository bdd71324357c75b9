"""The judge on small photos: reports worse descriptors, and missing evidence."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from index.errors import CairnError
from learning.judge.judging import TITLES, JudgeOptions, choose_photos, judge
from learning.judge.scenes import QueryOptions
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.descriptors.learnt import LearntModel, save_model
from tests.support.judged_photos import APART, MANY, PICTURES, collection_of, judged_collection

OPTIONS = JudgeOptions(queries=QueryOptions(photos=2))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    with judged_collection(tmp_path_factory) as collection:
        yield collection


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that shares rootSIFT's part."""
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def blind(tmp_path_factory: pytest.TempPathFactory) -> str:
    """File of an uninformative descriptor: one of rootSIFT's 128 numbers."""
    file = tmp_path_factory.mktemp("blind") / "blind.npz"
    save_model(file, LearntModel("rootsift", projection=np.eye(128, dtype=np.float32)[:1]))
    return str(file)


def paths_of(collection: Collection, *names: str) -> set[str]:
    return {row.path for row in collection.catalogue.read(all_indexed) if Path(row.path).name.startswith(names)}


@pytest.mark.slow
def test_a_descriptor_that_finds_less_is_worse_and_nothing_is_done_twice(
    tmp_path: Path, blind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[tuple[str, int, int]] = []
    with collection_of(tmp_path, MANY, words=200) as collection:
        verdict = judge(collection, blind, [], tmp_path / "work", OPTIONS, progress=lambda *step: reported.append(step))
        monkeypatch.setattr(
            "retrieval.features.extraction.Extractor.extract", lambda *_: pytest.fail("described twice")
        )
        monkeypatch.setattr("learning.judge.strict_links._match", lambda *_: pytest.fail("matched twice"))
        again = judge(collection, blind, [], tmp_path / "work", OPTIONS)
    assert (verdict.photos, verdict.scenes, verdict.held_out) == (16, 8, 8)
    assert verdict.outcome == "worse" and "stay with rootsift" in verdict.sentence
    assert (verdict.other.mean(axis=0) > 0.9).all() and (verdict.learnt.mean(axis=0) < (0.7, 0.9)).all()
    assert np.array_equal(again.learnt, verdict.learnt) and np.array_equal(again.other, verdict.other)
    assert {step for step, _, _ in reported} == set(TITLES)
    assert all(0 < done <= of for _, done, of in reported if of)


@pytest.mark.slow
def test_rootsift_is_no_better_than_itself(pictures: Collection, work: Path) -> None:
    verdict = judge(pictures, "rootsift", [], work, OPTIONS)
    assert verdict.outcome == "same" and np.array_equal(verdict.learnt, verdict.other)


@pytest.mark.slow
def test_it_may_be_compared_with_another_than_rootsift(pictures: Collection, work: Path) -> None:
    usual = judge(pictures, "sift", [], work, OPTIONS)
    turned = judge(pictures, "rootsift", [], work, replace(OPTIONS, rival="sift"))
    assert (usual.name, turned.name) == ("rootsift", "sift")
    assert np.array_equal(turned.learnt, usual.other) and np.array_equal(turned.other, usual.learnt)
    assert turned.queries == usual.queries and turned.lost == usual.won


@pytest.mark.slow
def test_scenes_that_were_learnt_from_are_not_asked_for(pictures: Collection, work: Path) -> None:
    verdict = judge(pictures, "rootsift", paths_of(pictures, "coffee_1", "rocket_0"), work, OPTIONS)
    assert (verdict.scenes, verdict.held_out) == (4, 2)
    seen = paths_of(pictures, "astronaut_2", "coffee_1", "rocket_0")
    one = judge(pictures, "rootsift", seen, work, OPTIONS)
    assert one.outcome == "cannot say" and "only one is free" in one.sentence and one.queries > 0
    none = judge(pictures, "rootsift", paths_of(pictures, *PICTURES), work, OPTIONS)
    assert none.outcome == "cannot say" and "none is free" in none.sentence and none.queries == 0


@pytest.mark.slow
def test_where_nothing_overlaps_nothing_can_be_said(tmp_path: Path) -> None:
    with collection_of(tmp_path, APART, words=200) as collection:
        verdict = judge(collection, "sift", [], tmp_path / "work", OPTIONS)
    assert (verdict.outcome, verdict.scenes, verdict.queries) == ("cannot say", 0, 0)
    assert "No two of 4 photos surely show the same" in verdict.sentence
    assert "stay with rootsift" in verdict.sentence


@pytest.mark.slow
def test_photos_that_are_gone_are_left_out(tmp_path: Path) -> None:
    with collection_of(tmp_path, {"coffee": 2, "rocket": 2}, words=100) as collection:
        (tmp_path / "photos" / "rocket_1.png").unlink()
        verdict = judge(collection, "rootsift", [], tmp_path / "work", OPTIONS)
        assert (verdict.photos, verdict.scenes) == (3, 1)
        shutil.rmtree(tmp_path / "photos")
        with pytest.raises(CairnError, match=r"No photo of .* is where it was"):
            judge(collection, "rootsift", [], tmp_path / "work", OPTIONS)


def test_photos_that_were_learnt_from_are_always_among_those_searched(pictures: Collection) -> None:
    rows = pictures.catalogue.read(all_indexed)
    needed = paths_of(pictures, "coffee", "rocket_1")
    for most, expected in ((0, 12), (12, 12), (7, 7), (2, 4)):
        chosen = choose_photos(rows, needed, replace(OPTIONS, photos=most))
        assert len(chosen) == expected and needed <= {row.path for row in chosen}
        assert [row.number for row in chosen] == sorted(row.number for row in chosen)
        assert chosen == choose_photos(rows, needed, replace(OPTIONS, photos=most))
